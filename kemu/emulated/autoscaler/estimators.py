"""How many nodes of a group it takes for pods: first fit, the largest kinds of pods first.

Mirrors ``estimator/binpacking_estimator.go`` and ``decreasing_pod_orderer.go``. Pods are grouped by what schedulers
can tell apart (``core/scaleup/equivalence``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.autoscaler import pod_rules
from kemu.emulated.autoscaler.simulator import placements
from kemu.emulated.autoscaler.simulator.snapshots import SPREAD_REASON, Snapshot
from kemu.emulated.autoscaler.templates import HOSTNAME, Template
from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import requests
from kemu.messages.k8s import core_v1_pb2

MAX_KINDS = 10
"""Most kinds of pods of one controller that are told apart (``maxEquivalenceGroupsByController``)."""


@dataclass
class PodGroup:
    """Pods that are equal to a scheduler (``equivalence.PodGroup``)."""

    pods: list[core_v1_pb2.Pod]
    rejections: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By node group: the reasons for which they do not fit on its nodes."""
    schedulable: bool = False


def pod_groups(pods: Iterable[core_v1_pb2.Pod]) -> list[PodGroup]:
    """``BuildPodGroups``. A pod without a controller is a group of its own."""
    groups: list[PodGroup] = []
    known: dict[str, dict[bytes, PodGroup]] = {}
    for pod in pods:
        owner = meta.controller_of(pod)
        if owner is None or pod_rules.of_daemon_set(pod):
            groups.append(PodGroup([pod]))
            continue
        kinds = known.setdefault(owner.uid, {})
        kind = placements.kind_of(pod)
        if kind in kinds:
            kinds[kind].pods.append(pod)
            continue
        group = PodGroup([pod])
        groups.append(group)
        if len(kinds) < MAX_KINDS:
            kinds[kind] = group
    return groups


def estimate(snapshot: Snapshot, groups: Sequence[PodGroup], template: Template, limit: int) -> tuple[int, list[Any]]:
    """How many nodes like the template, ``limit`` at most, and which of the pods run on them."""
    packing = _Packing(snapshot, template, limit)
    snapshot.fork()
    try:
        more = True
        for group in sorted(groups, key=lambda group: -_score(group.pods[0], template.node)):
            left = packing.on_existing(group.pods)
            if more:
                more = packing.on_new(left)
    finally:
        snapshot.revert()
    return len(packing.used), packing.scheduled


class _Packing:
    """The nodes that a simulation has added."""

    def __init__(self, snapshot: Snapshot, template: Template, limit: int) -> None:
        self._snapshot = snapshot
        self._template = template
        self._limit = limit
        self._nodes: dict[str, None] = {}
        self._last = ""
        self.used: dict[str, None] = {}
        """Those with at least one of the pods."""
        self.scheduled: list[Any] = []

    def on_existing(self, pods: Sequence[core_v1_pb2.Pod]) -> Sequence[core_v1_pb2.Pod]:
        """On the nodes added before; returns the pods from the first on that does not fit there."""
        for index, pod in enumerate(pods):
            node = self._snapshot.schedule_anywhere(pod, self._nodes.__contains__) if self._nodes else ""
            if not node:
                return pods[index:]
            self._note(pod, node)
        return ()

    def on_new(self, pods: Sequence[core_v1_pb2.Pod]) -> bool:
        """On the last node, and on further ones; False: no more may be added (tryToScheduleOnNewNodes)."""
        snapshot = self._snapshot
        for pod in pods:
            if self._last:
                rejection = snapshot.schedule(pod, self._last)
                if rejection is None:
                    self._note(pod, self._last)
                    continue
                if _spreads_over_hosts(pod) and SPREAD_REASON in rejection.reasons:
                    last = self._last
                    node = snapshot.schedule_anywhere(pod, lambda name, last=last: name != last)  # type: ignore[misc]
                    if node:
                        self._note(pod, node)
                        continue
                if self._last not in self.used:
                    return True  # It would not fit on another empty node either.
            if len(self._nodes) >= self._limit:
                return False
            self._add_node()
            if snapshot.schedule(pod, self._last) is not None:
                break
            self._note(pod, self._last)
        return True

    def _add_node(self) -> None:
        added = self._template.named(f"e-{len(self._nodes)}")
        self._snapshot.add_node(added.node, added.pods, added.slices)
        self._last = added.node.metadata.name
        self._nodes[self._last] = None

    def _note(self, pod: core_v1_pb2.Pod, node: str) -> None:
        self.used[node] = None
        self.scheduled.append(pod)


def _score(pod: core_v1_pb2.Pod, node: core_v1_pb2.Node) -> float:
    """``calculatePodScore``."""
    wanted = requests.pod_requests(pod)
    offered = requests.resource_list(node.status.allocatable)
    shares = (wanted.get(name, 0) / offered[name] for name in (requests.CPU, requests.MEMORY) if offered.get(name))
    return sum(shares)


def _spreads_over_hosts(pod: core_v1_pb2.Pod) -> bool:
    return any(constraint.topologyKey == HOSTNAME for constraint in pod.spec.topologySpreadConstraints)
