"""Which controllers a scenario runs, and with what settings.

Role: one step of :mod:`kemu.scenario.loading.loader`, and the table from which :mod:`kemu.scenario.playing.plans` makes
the actors. What is not chosen by the scenario follows from what stands in it: a controller without anything to do costs
time all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.controllers import node_lifecycle, pod_gc
from kemu.k8s import policy_v1_pb2
from kemu.objects import resources
from kemu.runtime.env import SECOND_NS
from kemu.scenario import scenarios
from kemu.scenario.format.keys.distributions import TIME
from kemu.scenario.format.shapes import DURATION, PERIOD, Choice, Key, ListOf, Number, Record, ScalarOr, Shape, Whole
from kemu.scenario.loading import manifests

SETTLES_AFTER_NS = 120 * SECOND_NS
"""After the last fault: by then a lost node is known to be lost."""


@dataclass(frozen=True)
class Kind:
    """One controller."""

    factory: str
    doc: str
    fields: Mapping[str, Key]
    """Settings besides the lag."""


_LAG = Key(TIME, "From what it hears until it acts.")

NODE_LIFECYCLE, TAINT_EVICTION, POD_GC = "node-lifecycle", "taint-eviction", "pod-gc"
RESCHEDULER, DISRUPTION = "rescheduler", "disruption"
DAEMON_SET, STATEFUL_SET, REPLICA_SET = "daemonset", "statefulset", "replicaset"

_DOCS = {
    "nodeMonitorPeriod": "How often it looks at all nodes; 5s by default.",
    "nodeMonitorGracePeriod": "How long nothing may be heard of a node; 40s by default.",
    "nodeStartupGracePeriod": "The same of a node that has just come; 60s by default.",
    "nodeEvictionRate": "Lost nodes that are tainted NoExecute, per second and zone; 0.1 by default.",
    "secondaryNodeEvictionRate": "The same where much of a large zone is lost; 0.01 by default.",
    "largeClusterSizeThreshold": "From more nodes on a zone counts as large; 50 by default.",
    "unhealthyZoneThreshold": "The share of lost nodes from which much of a zone is lost; 0.55 by default.",
}
_SHAPES: dict[str, Shape] = {
    name: DURATION if name.endswith("Period") else Whole(0) if name.startswith("large") else Number(0)
    for name in node_lifecycle.FIELDS
}
_SHAPES["nodeMonitorPeriod"] = PERIOD

KINDS: dict[str, Kind] = {
    NODE_LIFECYCLE: Kind(
        "kemu.controllers.node_lifecycle:NodeLifecycleController",
        "Marks silent nodes; taints nodes by their conditions.",
        {name: Key(_SHAPES[name], doc) for name, doc in _DOCS.items()},
    ),
    TAINT_EVICTION: Kind(
        "kemu.controllers.taint_eviction:TaintEvictionController",
        "Deletes pods that do not tolerate a NoExecute taint.",
        {},
    ),
    POD_GC: Kind(
        "kemu.controllers.pod_gc:PodGarbageCollector",
        "Removes the pods of nodes that are gone, and the oldest of very many that have ended.",
        {
            "terminatedPodThreshold": Key(
                Whole(0), f"So many ended pods may stay; {pod_gc.TERMINATED_PODS} by default, 0: all."
            )
        },
    ),
    DAEMON_SET: Kind(
        "kemu.controllers.workloads.daemon_sets:DaemonSetController",
        "Sees that every node has its pod of a DaemonSet.",
        {},
    ),
    STATEFUL_SET: Kind(
        "kemu.controllers.workloads.stateful_sets:StatefulSetController",
        "Sees that the pods of a StatefulSet are there, each under its name.",
        {},
    ),
    REPLICA_SET: Kind(
        "kemu.controllers.workloads.replica_sets:ReplicaSetController",
        "Sees that a ReplicaSet has its number of pods.",
        {},
    ),
    DISRUPTION: Kind(
        "kemu.controllers.disruption:DisruptionController", "Keeps the status of PodDisruptionBudgets.", {}
    ),
    RESCHEDULER: Kind(
        "kemu.scheduler.experiments.rescheduler:Rescheduler",
        "Preempts for schedulers with preemptor: rescheduler; runs if there are such. Its lag is 1s by default.",
        {},
    ),
}
"""By the names that a scenario uses, in the order in which they are launched."""

NOT_BUILT = ("deployment", "job", "resourcequota", "cluster-autoscaler")
_NEEDED_BY = {"DaemonSet": DAEMON_SET, "StatefulSet": STATEFUL_SET, "ReplicaSet": REPLICA_SET}
"""Kinds of objects that need a controller."""

SHAPE = ScalarOr(
    ListOf(Choice(tuple(KINDS), NOT_BUILT)),
    Record(
        {
            **{name: Key(Record({"lag": _LAG, **kind.fields}), kind.doc) for name, kind in KINDS.items()},
            **{name: Key(Record({}), "", built=False) for name in NOT_BUILT},
        }
    ),
)


def chosen(
    checked: Any,
    nodes: Sequence[scenarios.Node],
    setup: Sequence[scenarios.Manifest],
    events: Sequence[scenarios.Event],
    workloads: Sequence[scenarios.Workload],
    is_chaotic: bool,
) -> dict[str, dict[str, Any]]:
    """Name → settings. ``checked``: what the scenario says; None: nothing, so that the rest decides."""
    if checked is None:
        return {name: {} for name in _needed(nodes, setup, events, workloads, is_chaotic)}
    if isinstance(checked, list):
        return {name: {} for name in KINDS if name in checked}
    return {name: _plain(checked[name]) for name in KINDS if name in checked}


def _plain(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Durations in seconds."""
    return {name: value / SECOND_NS if name.endswith("Period") else value for name, value in (settings or {}).items()}


def _needed(
    nodes: Sequence[scenarios.Node],
    setup: Sequence[scenarios.Manifest],
    events: Sequence[scenarios.Event],
    workloads: Sequence[scenarios.Workload],
    is_chaotic: bool,
) -> list[str]:
    """What the parts of a scenario call for."""
    objects = [each.message for each in setup] + [event.object for event in events if event.object is not None]
    kinds = {resources.of(message).kind for message in objects}
    tainted = any(taint.effect == "NoExecute" for node in nodes for taint in node.message.spec.taints)
    restless = (
        is_chaotic
        or tainted
        or any(event.what in ("taint", *scenarios.OF_MACHINES) for event in events)
        or any(_states_usage(workload.template) for workload in workloads)
        or any(_states_usage(message) for message in objects)
        or any(node.usage for node in nodes)
        or "DaemonSet" in kinds
    )
    found = [NODE_LIFECYCLE, TAINT_EVICTION, POD_GC] if restless else []
    found += [name for kind, name in _NEEDED_BY.items() if kind in kinds]
    # A budget whose status is stated shall keep it.
    budgets = [one for one in objects if isinstance(one, policy_v1_pb2.PodDisruptionBudget)]
    return found + [DISRUPTION] * any(not budget.HasField("status") for budget in budgets)


def _states_usage(message: Any) -> bool:
    """A pod, or the pods that an object is a template of: usage may bring a node under pressure."""
    if message is None:
        return False
    template = getattr(getattr(message, "spec", None), "template", None)
    return any(manifests.USAGE in one.metadata.annotations for one in (message, template) if one is not None)


def node_eviction_rate(scenario: scenarios.Scenario) -> float:
    """How many lost nodes of a zone may be tainted, per second: the faster one of the two rates."""
    given = {**node_lifecycle.FIELDS, **scenario.controllers.get(NODE_LIFECYCLE, {})}
    return max(float(given["nodeEvictionRate"]), float(given["secondaryNodeEvictionRate"]))


def settles_ns(scenario: scenarios.Scenario) -> int:
    """Until then a node may fall silent, or be found to have: the run must not end because nothing is heard."""
    last_ns = max((each.at_ns + SETTLES_AFTER_NS for each in scenario.events if each.what == "shutdownNode"), default=0)
    for fault in scenario.chaos:
        begins_ns = fault.until_ns if fault.until_ns is not None else fault.at_ns
        if begins_ns is None:
            return scenario.duration_ns
        last_ns = max(last_ns, begins_ns + (fault.for_ns or 0) + SETTLES_AFTER_NS)
    return min(last_ns, scenario.duration_ns)
