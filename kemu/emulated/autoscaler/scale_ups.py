"""Which groups grow for pods that fit nowhere, and by how much (``core/scaleup/orchestrator``).

What is decided here is plain data; :mod:`kemu.emulated.autoscaler.autoscaler` carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.autoscaler import estimators, expanders
from kemu.emulated.autoscaler.cluster_states import ClusterState
from kemu.emulated.autoscaler.expanders import Option
from kemu.emulated.autoscaler.providers import NodeGroup, Provider, Tell
from kemu.emulated.autoscaler.settings import Settings
from kemu.emulated.autoscaler.simulator.snapshots import Snapshot
from kemu.emulated.autoscaler.templates import Template
from kemu.emulated.objects.amounts import requests
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Random

BACKED_OFF = "in backoff after failed scale-up"
MAX_SIZE = "max node group size reached"
NOT_READY = "not ready for scale-up"
MAX_NODES = "max total nodes in cluster reached"

_IGNORED_LABELS = (
    "kubernetes.io/hostname", "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "beta.kubernetes.io/fluentd-ds-ready",
    "kops.k8s.io/instancegroup",
)  # fmt: skip


@dataclass(frozen=True)
class Resize:
    """Resize of one group (``ScaleUpInfo``)."""

    group: NodeGroup
    current: int
    new: int

    def __str__(self) -> str:
        return f"{{{self.group.name} {self.current}->{self.new} (max: {self.group.max_size})}}"


@dataclass
class Plan:
    """What is to be done; without ``resizes`` nothing can be."""

    resizes: list[Resize] = field(default_factory=list)
    pods: Sequence[core_v1_pb2.Pod] = ()
    """Those for which it is done."""
    hopeless: list[tuple[Any, str]] = field(default_factory=list)
    """Pods that no group can take, and why, in the words of the event."""
    limited: bool = False
    """The cluster may not have so many nodes."""


def plan(
    snapshot: Snapshot,
    pods: Sequence[core_v1_pb2.Pod],
    templates: Mapping[str, Template],
    provider: Provider,
    state: ClusterState,
    settings: Settings,
    rng: Random,
    now_ns: int,
    tell: Tell,
) -> Plan:
    """``ScaleUp`` up to its execution."""
    cluster_size = len(snapshot.nodes())
    groups = estimators.pod_groups(pods)
    skipped: dict[str, str] = {}
    valid: list[NodeGroup] = []
    for group in provider.groups.values():
        reason = _unfit(group, state, now_ns)
        if reason:
            skipped[group.name] = reason
        else:
            valid.append(group)
    fitting = {group.name: _fitting(snapshot, groups, group, templates[group.name]) for group in valid}
    options = []
    for group in valid:
        similar = _similar(group, valid, fitting, templates) if settings.balance_similar_node_groups else []
        limit = _limit(group, similar, cluster_size, settings)
        if fitting[group.name] and limit:
            nodes, taken = estimators.estimate(snapshot, fitting[group.name], templates[group.name], limit)
            if nodes and taken:
                options.append(Option(group, templates[group.name], nodes, taken))
    best = expanders.best(options, settings, cluster_size, rng, tell)
    hopeless = [(pod, _why(group, skipped)) for group in groups if not group.schedulable for pod in group.pods]
    if best is None:
        return Plan(hopeless=hopeless)
    wanted = best.nodes
    limited = bool(settings.max_nodes_total) and wanted + cluster_size > settings.max_nodes_total
    if limited:
        wanted = settings.max_nodes_total - cluster_size
        if wanted < 1:
            return Plan(hopeless=hopeless, limited=True)
    similar = _similar(best.group, valid, fitting, templates) if settings.balance_similar_node_groups else []
    return Plan(balanced([best.group, *similar], wanted), best.pods, hopeless, limited)


def to_minimum(provider: Provider, state: ClusterState, now_ns: int) -> list[Resize]:
    """``ScaleUpToNodeGroupMinSize``."""
    return [
        Resize(group, group.target_size, group.min_size)
        for group in provider.groups.values()
        if group.target_size < group.min_size and _unfit(group, state, now_ns) in ("", MAX_SIZE)
    ]


def _unfit(group: NodeGroup, state: ClusterState, now_ns: int) -> str:
    """Why a group cannot grow now (``filterValidScaleUpNodeGroups``)."""
    if not state.is_group_healthy(group):
        return NOT_READY
    if state.is_backed_off(group, now_ns):
        return BACKED_OFF
    return MAX_SIZE if group.target_size >= group.max_size else ""


def _fitting(
    snapshot: Snapshot, groups: Sequence[estimators.PodGroup], group: NodeGroup, template: Template
) -> list[estimators.PodGroup]:
    """The pods that fit on an empty node of the group (``SchedulablePodGroups``)."""
    found = []
    snapshot.fork()
    snapshot.add_node(template.node, template.pods, template.slices)
    for each in groups:
        rejection = snapshot.check(each.pods[0], template.node.metadata.name)
        if rejection is None:
            found.append(each)
            each.schedulable = True
        else:
            each.rejections[group.name] = rejection.reasons
    snapshot.revert()
    return found


def _limit(group: NodeGroup, similar: Sequence[NodeGroup], cluster_size: int, settings: Settings) -> int:
    """How many nodes an estimate may add (``thresholdBasedEstimationLimiter``)."""
    room = sum(max(0, each.max_size - each.target_size) for each in (group, *similar))
    limits = [room]
    if settings.max_nodes_per_scale_up:
        limits.append(settings.max_nodes_per_scale_up)
    if settings.max_nodes_total:
        limits.append(max(0, settings.max_nodes_total - cluster_size))
    return min(limits)


def _why(group: estimators.PodGroup, skipped: Mapping[str, str]) -> str:
    """``ReasonsMessage``; the real one joins in the order of a Go map."""
    counts: dict[str, int] = {}
    for reasons in group.rejections.values():
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    for reason in skipped.values():
        counts[reason] = counts.get(reason, 0) + 1
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())


# --- groups that are alike ------------------------------------------------------------------------------------------


def _similar(
    group: NodeGroup,
    valid: Sequence[NodeGroup],
    fitting: Mapping[str, Sequence[estimators.PodGroup]],
    templates: Mapping[str, Template],
) -> list[NodeGroup]:
    """Other groups of such nodes, for the same pods (``ComputeSimilarNodeGroups``)."""
    mine = fitting[group.name]
    return [
        other
        for other in valid
        if other is not group
        and _are_alike(templates[group.name], templates[other.name])
        and all(any(each is one for one in fitting[other.name]) for each in mine)
    ]


def _are_alike(one: Template, other: Template) -> bool:
    """``IsCloudProviderNodeInfoSimilar``."""
    first, second = one.node, other.node
    capacities = [requests.resource_list(node.status.capacity) for node in (first, second)]
    if capacities[0].keys() != capacities[1].keys():
        return False
    for name, amount in capacities[0].items():
        share = 0.015 if name == requests.MEMORY else 0.0
        if not _within(amount, capacities[1][name], share):
            return False
    amounts = [requests.resource_list(node.status.allocatable) for node in (first, second)]
    if amounts[0].keys() != amounts[1].keys():
        return False
    for name, amount in amounts[0].items():
        free = [
            offered[name] - sum(requests.pod_requests(pod).get(name, 0) for pod in template.pods)
            for offered, template in zip(amounts, (one, other), strict=True)
        ]
        if not _within(amount, amounts[1][name], 0.05) or not _within(free[0], free[1], 0.05):
            return False
    labels = [
        {key: value for key, value in node.metadata.labels.items() if key not in _IGNORED_LABELS}
        for node in (first, second)
    ]
    return labels[0] == labels[1]


def _within(one: int, other: int, share: float) -> bool:
    return abs(one - other) <= max(one, other) * share


def balanced(groups: Sequence[NodeGroup], wanted: int) -> list[Resize]:
    """One node after the other to the smallest group that may grow (``BalanceScaleUpBetweenGroups``)."""
    sizes = {group.name: group.target_size for group in groups}
    order = sorted((group for group in groups if group.target_size < group.max_size), key=lambda one: one.target_size)
    for _ in range(wanted):
        growing = [group for group in order if sizes[group.name] < group.max_size]
        if not growing:
            break
        sizes[min(growing, key=lambda group: sizes[group.name]).name] += 1
    return [
        Resize(group, group.target_size, sizes[group.name]) for group in order if sizes[group.name] != group.target_size
    ]
