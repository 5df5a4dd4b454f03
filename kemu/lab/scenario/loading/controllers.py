"""Which controllers a scenario runs, and with what settings.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`; :mod:`kemu.lab.scenario.format.keys.controller_keys` lists
the controllers. A scenario that does not choose gets the controllers that its content needs: one without anything to do
still costs time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from kemu.emulated.controllers import node_health, pod_gc
from kemu.emulated.controllers.settings import Controller
from kemu.emulated.objects import resources
from kemu.emulated.objects.pods import planned_fields
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.format.clusters import Node
from kemu.lab.scenario.format.events import OF_MACHINES, Event
from kemu.lab.scenario.format.keys import controller_keys
from kemu.lab.scenario.format.workloads import Workload
from kemu.lab.scenario.loading.objects import devices, manifests, volumes
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2, rbac_v1_pb2
from kemu.runtime.env import SECOND_NS

T = TypeVar("T")

SETTLES_AFTER_NS = 120 * SECOND_NS
"""After the last fault: by then a lost node is known to be lost."""


_NEEDED_BY = {
    "DaemonSet": (controller_keys.DAEMON_SET,),
    "StatefulSet": (controller_keys.STATEFUL_SET,),
    "ReplicaSet": (controller_keys.REPLICA_SET,),
    "ReplicationController": (controller_keys.REPLICATION_CONTROLLER,),
    "Deployment": (controller_keys.REPLICA_SET, controller_keys.DEPLOYMENT),
    "Job": (controller_keys.JOB,),
    "CronJob": (controller_keys.JOB, controller_keys.CRON_JOB),
    "ResourceQuota": (controller_keys.RESOURCE_QUOTA,),
}
"""Kinds of objects that need controllers."""


def chosen(
    checked: Any,
    nodes: Sequence[Node],
    setup: Sequence[scenarios.Manifest],
    events: Sequence[Event],
    workloads: Sequence[Workload],
    is_chaotic: bool,
    *,
    has_volumes: bool = False,
    has_devices: bool = False,
) -> dict[str, Controller]:
    """Name → settings. ``checked``: what the scenario says; None: nothing, so that the rest decides."""
    if checked is None:
        needed = _needed(nodes, setup, events, workloads, is_chaotic)
        needed += controller_keys.OF_VOLUMES if has_volumes else ()
        needed += controller_keys.OF_DEVICES if has_devices else ()
        return {name: controller_keys.default(name) for name in needed}
    if isinstance(checked, list):
        return {name: controller_keys.default(name) for name in controller_keys.KINDS if name in checked}
    return {name: checked[name] for name in controller_keys.KINDS if name in checked}


def check(
    checked: object,
    controllers: Mapping[str, Controller],
    report: Report,
    *,
    has_autoscaler: bool,
    has_descheduler: bool,
    has_queues: bool,
) -> None:
    """Complain of what client-go would refuse, of an autoscaler without anything to scale and of a descheduler without
    a policy. ``checked``: what the
    scenario says."""
    path = ("spec", "controllers")
    for name, section, has_section, what in (
        (controller_keys.CLUSTER_AUTOSCALER, "autoscaler", has_autoscaler, "what node groups there are"),
        (controller_keys.DESCHEDULER, "descheduler", has_descheduler, "what its policy is"),
        (controller_keys.KUEUE, "queues", has_queues, "what queues there are"),
    ):
        if name not in controllers or has_section:
            continue
        place = checked.index(name) if isinstance(checked, list) else name
        report.add(
            (*path, place),
            f"there is no spec.{section}, which says {what}",
            f"add spec.{section}; the controller then runs without being named",
            key=not isinstance(place, int),
        )
    for name, settings in controllers.items():
        found = settings.election(name)
        if found is not None and (mistake := found.mistake()):
            report.add((*path, name, "leaderElection", mistake[0]), mistake[1])


def _needed(
    nodes: Sequence[Node],
    setup: Sequence[scenarios.Manifest],
    events: Sequence[Event],
    workloads: Sequence[Workload],
    is_chaotic: bool,
) -> list[str]:
    """What the parts of a scenario call for."""
    objects = [each.message for each in setup] + [one for event in events for one in event.objects]
    kinds = {resources.of(message).kind for message in objects}
    tainted = any(taint.effect == "NoExecute" for node in nodes for taint in node.message.spec.taints)
    restless = (
        is_chaotic
        or tainted
        or any(event.what in ("taint", *OF_MACHINES) for event in events)
        or any(_states_usage(workload.template) for workload in workloads)
        or any(_states_usage(message) for message in objects)
        or any(node.usage for node in nodes)
        or "DaemonSet" in kinds
    )
    found = [controller_keys.NODE_LIFECYCLE, controller_keys.TAINT_EVICTION, controller_keys.POD_GC] if restless else []
    templates = [workload.template for workload in workloads if workload.template is not None]
    is_cordoned = any(event.what in ("cordon", "drain") for event in events)
    # Of a cordoned node such pods see only the taint.
    if is_cordoned and not restless and any(_honours_taints(one) for one in (*objects, *templates)):
        found.append(controller_keys.NODE_LIFECYCLE)
    if any(_stays_only_where_it_matches(one) for one in (*objects, *templates)):
        found.append(controller_keys.NODE_AFFINITY_EVICTION)
    found += dict.fromkeys(name for kind, names in _NEEDED_BY.items() if kind in kinds for name in names)
    if any(isinstance(one, rbac_v1_pb2.ClusterRole) and one.HasField("aggregationRule") for one in objects):
        found.append(controller_keys.CLUSTER_ROLE_AGGREGATION)
    if any(_has_time_to_live(one) for one in objects):
        found.append(controller_keys.TTL_AFTER_FINISHED)
    own_claims = any(volumes.own_claims(one) or devices.own_claims(one) for one in (*objects, *templates))
    ends_by_itself = {controller_keys.CRON_JOB, controller_keys.TTL_AFTER_FINISHED} & set(found)
    if own_claims or ends_by_itself or _leaves_garbage(objects, events):
        found.append(controller_keys.GARBAGE_COLLECTOR)
    if any(event.what == "delete" and event.target.resource == "namespaces" for event in events):
        found.append(controller_keys.NAMESPACE)
    if "PodDisruptionBudget" in kinds:
        found.append(controller_keys.DISRUPTION)
    return found


def _leaves_garbage(objects: Sequence[Any], events: Sequence[Event]) -> bool:
    """An object that may own others is deleted, or an object refers to its owner."""
    return any(event.what == "delete" and event.target.resource != "pods" for event in events) or any(
        one.metadata.ownerReferences for one in objects
    )


def _has_time_to_live(message: Message) -> bool:
    """A Job, or one that makes Jobs, that are deleted after their end."""
    if isinstance(message, batch_v1_pb2.CronJob):
        return message.spec.jobTemplate.spec.HasField("ttlSecondsAfterFinished")
    return isinstance(message, batch_v1_pb2.Job) and message.spec.HasField("ttlSecondsAfterFinished")


def _honours_taints(message: Any) -> bool:
    """A pod whose spread constraints leave out nodes with taints, or an object that is a template of such pods."""
    parts = (message, manifests.template(message))
    return any(
        isinstance(one, core_v1_pb2.Pod | core_v1_pb2.PodTemplateSpec)
        and any(constraint.nodeTaintsPolicy == "Honor" for constraint in one.spec.topologySpreadConstraints)
        for one in parts
    )


def _stays_only_where_it_matches(message: Any) -> bool:
    """A pod whose node affinity counts during execution, or an object that is a template of such pods."""
    parts = (message, manifests.template(message))
    return any(
        one is not None and planned_fields.REQUIRED_DURING_EXECUTION in one.metadata.annotations for one in parts
    )


def _states_usage(message: Any) -> bool:
    """A pod, or the pods that an object is a template of: usage may bring a node under pressure."""
    if message is None:
        return False
    template = manifests.template(message)
    return any(manifests.USAGE in one.metadata.annotations for one in (message, template) if one is not None)


def node_lifecycle(scenario: scenarios.Scenario) -> node_health.Settings:
    """The settings of the node lifecycle controller, also where it does not run."""
    return _own(scenario, controller_keys.NODE_LIFECYCLE, node_health.Settings)


def terminated_pods(scenario: scenarios.Scenario) -> int:
    """How many pods may stay when they have ended; 0: any number."""
    return _own(scenario, controller_keys.POD_GC, pod_gc.Settings).terminated_pod_threshold


def _own(scenario: scenarios.Scenario, name: str, kind: type[T]) -> T:
    found = scenario.controllers.get(name)
    return kind() if found is None else cast("T", found.own)


def settles_ns(scenario: scenarios.Scenario) -> int:
    """Until then a node may fall silent, or be found to have: the run must not end because nothing is heard."""
    last_ns = max((each.at_ns + SETTLES_AFTER_NS for each in scenario.events if each.what == "shutdownNode"), default=0)
    for fault in scenario.chaos:
        begins_ns = fault.until_ns if fault.until_ns is not None else fault.at_ns
        if begins_ns is None:
            return scenario.duration_ns
        last_ns = max(last_ns, begins_ns + (fault.for_ns or 0) + SETTLES_AFTER_NS)
    return min(last_ns, scenario.duration_ns)
