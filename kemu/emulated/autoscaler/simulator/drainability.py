"""Whether the pods of a node can move, and which pod keeps it (``simulator/drainability/rules``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.autoscaler import pod_rules
from kemu.emulated.autoscaler.settings import ScaleDown
from kemu.emulated.objects import meta, selectors
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

OK, SKIP, WAIT, UNDECIDED = "ok", "skip", "wait", ""
"""What a rule may say; anything else is the reason for which a pod keeps its node."""
CONTROLLER_NOT_FOUND, MIN_REPLICAS = "ControllerNotFound", "MinReplicasReached"
NOT_REPLICATED, LOCAL_STORAGE = "NotReplicated", "LocalStorageRequested"
NOT_SAFE, SYSTEM_POD, NO_BUDGET = "NotSafeToEvictAnnotation", "UnmovableKubeSystemPod", "NotEnoughPdb"

_REPLICATED = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")
OWNERS = {
    "DaemonSet": "daemonsets",
    "Job": "jobs",
    "ReplicaSet": "replicasets",
    "ReplicationController": "replicationcontrollers",
    "StatefulSet": "statefulsets",
}


class Budgets:
    """Disruption budgets, used up as simulations go on (``basicRemainingPdbTracker``)."""

    def __init__(self, budgets: Iterable[Any]) -> None:
        self._all = [
            (budget.metadata.namespace, selectors.compile_labels_field(budget.spec, "selector"), budget)
            for budget in budgets
        ]
        self._left = [budget.status.disruptionsAllowed for _, _, budget in self._all]

    def of(self, pod: core_v1_pb2.Pod) -> list[int]:
        """The places of those that cover a pod."""
        metadata = pod.metadata
        return [
            place
            for place, (namespace, selector, _) in enumerate(self._all)
            if namespace == metadata.namespace and selector.matches(metadata.labels)
        ]

    def blocks(self, pod: core_v1_pb2.Pod) -> bool:
        return any(self._left[place] < 1 for place in self.of(pod))

    def allows_together(self, pods: Sequence[core_v1_pb2.Pod]) -> bool:
        """Whether all of them may go at the same time."""
        counts: dict[int, int] = {}
        for pod in pods:
            for place in self.of(pod):
                counts[place] = counts.get(place, 0) + 1
        return all(self._left[place] >= count for place, count in counts.items())

    def take(self, pods: Sequence[core_v1_pb2.Pod]) -> None:
        for pod in pods:
            for place in self.of(pod):
                self._left[place] -= 1


@dataclass
class Moves:
    """What becomes of the pods of a node (``PodMoveInfo``)."""

    pods: list[Any] = field(default_factory=list)
    """They have to run elsewhere."""
    daemons: list[Any] = field(default_factory=list)
    waits_for: list[Any] = field(default_factory=list)
    """The node goes when they have finished by themselves."""
    blocking: tuple[Any, str] | None = None
    """The pod that keeps the node, and why."""


class Rules:
    """The rules in their order."""

    def __init__(self, settings: ScaleDown, owners: Mapping[str, Mapping[str, Any]]) -> None:
        """``owners``: objects that control pods, by plural and ``namespace/name``."""
        self._settings = settings
        self._owners = owners

    def moves(self, pods: Iterable[core_v1_pb2.Pod], budgets: Budgets, unix_ns: int) -> Moves:
        """``GetPodsToMove``."""
        found = Moves()
        for pod in pods:
            answer = self.judge(pod, budgets, unix_ns)
            if answer in (OK, UNDECIDED):
                (found.daemons if pod_rules.of_daemon_set(pod) else found.pods).append(pod)
            elif answer == WAIT:
                found.waits_for.append(pod)
            elif answer != SKIP:
                found.blocking = pod, answer
                break
        return found

    def judge(self, pod: core_v1_pb2.Pod, budgets: Budgets, unix_ns: int) -> str:
        """Judge one pod."""
        settings, annotations = self._settings, pod.metadata.annotations
        if pod_rules.is_mirror(pod) or pod_rules.terminates_long(pod, unix_ns):
            return SKIP
        if settings.skip_nodes_with_custom_controller_pods and (reason := self._lost_owner(pod)):
            return reason
        if pod_rules.of_daemon_set(pod) or annotations.get(pod_rules.SAFE_TO_EVICT) == "true":
            return OK
        if pod_rules.is_terminal(pod):
            return OK
        if annotations.get(pod_rules.SAFE_TO_EVICT) == "on-completion":
            return WAIT
        owner = meta.controller_of(pod)
        if owner is None or (settings.skip_nodes_with_custom_controller_pods and owner.kind not in _REPLICATED):
            return NOT_REPLICATED
        if settings.skip_nodes_with_system_pods and pod.metadata.namespace == "kube-system" and not budgets.of(pod):
            since_ns = meta.unix_ns(pod.metadata.creationTimestamp)
            patience_ns = round(settings.system_pod_disruption_time_s * SECOND_NS)
            return OK if unix_ns > since_ns + patience_ns else SYSTEM_POD
        if annotations.get(pod_rules.SAFE_TO_EVICT) == "false":
            return NOT_SAFE
        if settings.skip_nodes_with_local_storage and pod_rules.has_blocking_local_storage(pod):
            return LOCAL_STORAGE
        return NO_BUDGET if budgets.blocks(pod) else UNDECIDED

    def _lost_owner(self, pod: core_v1_pb2.Pod) -> str:
        """The rule ``ReplicaCount``."""
        reference = meta.controller_of(pod)
        plural = OWNERS.get(reference.kind) if reference is not None else None
        if reference is None or plural is None or plural not in self._owners:
            return ""
        is_of_apps = reference.apiVersion.startswith("apps/")
        if plural in ("daemonsets", "statefulsets") and not is_of_apps:
            return ""
        if pod_rules.of_daemon_set(pod) and plural not in ("daemonsets", "replicationcontrollers"):
            return ""
        owner = self._owners[plural].get(f"{pod.metadata.namespace}/{reference.name}")
        if owner is None:
            return CONTROLLER_NOT_FOUND
        counts = plural in ("replicasets", "replicationcontrollers")
        few = counts and owner.spec.replicas < self._settings.min_replica_count
        return MIN_REPLICAS if few else ""
