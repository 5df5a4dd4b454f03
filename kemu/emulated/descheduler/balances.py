"""RemoveDuplicates and RemovePodsViolatingTopologySpreadConstraint (extension point ``balance``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kemu.emulated.descheduler import policies
from kemu.emulated.descheduler.clusters import Node, Pod, grouped, matches_node, tolerates
from kemu.emulated.descheduler.evictions import NODE, TOTAL
from kemu.emulated.descheduler.strategies import Strategy
from kemu.emulated.objects import meta, selectors
from kemu.emulated.scheduler.preemption import sorts
from kemu.messages.k8s import core_v1_pb2

Owner = tuple[str, str, str, tuple[str, ...]]
"""Namespace, kind, name, images."""


class Duplicates(Strategy):
    """Pods of one owner with the same images are duplicates where they share a node."""

    args: policies.RemoveDuplicates

    async def run(self, nodes: Sequence[Node]) -> None:
        is_meant = self.selects()
        count: dict[Owner, int] = {}
        found: dict[Owner, dict[str, list[Pod]]] = {}
        for node in nodes:
            pods = [pod for pod in self.cluster.pods_on(node.metadata.name) if is_meant(pod)]
            self._find(node.metadata.name, [pod for pod in pods if self.handle.filter.both(pod)], count, found)
        for owner, by_node in found.items():
            targets = _targets([pod for pods in by_node.values() for pod in pods], nodes)
            if targets < 2:
                continue
            most = math.ceil(count[owner] / targets)
            for pods in by_node.values():
                # One more is there than was found: that of which they are duplicates.
                if len(pods) + 1 > most and not await self.evict_all(pods[most - 1 :]):
                    return

    def _find(
        self, node: str, pods: Sequence[Pod], count: dict[Owner, int], found: dict[Owner, dict[str, list[Pod]]]
    ) -> None:
        """The duplicates of one node; ``count``: pods of each owner on all nodes."""
        known: set[tuple[Any, ...]] = set()
        for pod in pods:
            owners = pod.metadata.ownerReferences
            if not owners or any(one.kind in self.args.exclude_owner_kinds for one in owners):
                continue
            images = tuple(sorted(one.image for one in pod.spec.containers))
            keys: list[Owner] = [(pod.metadata.namespace, one.kind, one.name, images) for one in owners]
            for key in keys:
                count[key] = count.get(key, 0) + 1
            same = tuple(sorted(keys))
            if same in known:
                for key in keys:
                    found.setdefault(key, {}).setdefault(node, []).append(pod)
            known.add(same)


def _targets(pods: Sequence[Pod], nodes: Sequence[Node]) -> int:
    """How many nodes would take one of the pods; one that only its own node takes counts none."""
    found: set[str] = set()
    for pod in {_placement(pod): pod for pod in reversed(pods)}.values():
        suitable = [one.metadata.name for one in nodes if tolerates(pod, one.spec.taints) and matches_node(pod, one)]
        if len(suitable) > 1:
            found.update(suitable)
    return len(found)


def _placement(pod: Pod) -> tuple[Any, ...]:
    """What makes pods alike for :func:`_targets`."""
    spec = pod.spec
    return (
        tuple(sorted((one.key, one.value, one.effect, one.operator) for one in spec.tolerations)),
        tuple(sorted(spec.nodeSelector.items())),
        spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.SerializeToString(deterministic=True),
    )


class _Constraint(NamedTuple):
    """A topology spread constraint as the pods of one namespace state it."""

    max_skew: int
    key: str
    selector: selectors.LabelSelector
    affinity: bytes
    """The node selector and affinity of the pod, where they say which nodes count."""
    tolerations: bytes
    honours_affinity: bool
    honours_taints: bool


@dataclass
class _Domain:
    value: str
    pods: list[Pod]


class TopologySpread(Strategy):
    args: policies.RemovePodsViolatingTopologySpreadConstraint

    async def run(self, nodes: Sequence[Node]) -> None:
        is_meant = self.selects()
        pods = [
            pod
            for node in nodes
            for pod in self.cluster.pods_on(node.metadata.name)
            if is_meant(pod) and self.handle.filter.filter(pod)
        ]
        going: dict[str, Pod] = {}
        """By key."""
        for members in grouped(pods, lambda pod: pod.metadata.namespace).values():
            for constraint, pod in self._constraints(members).items():
                self._balance(constraint, pod, members, nodes, going)
        full: set[str] = set()
        for pod in going.values():
            if pod.spec.nodeName in full or not is_meant(pod) or not self.handle.filter.both(pod):
                continue
            limit = await self.handle.evict(pod, self.name)
            if limit == NODE:
                full.add(pod.spec.nodeName)
            elif limit == TOTAL:
                return

    def _constraints(self, pods: Sequence[Pod]) -> dict[_Constraint, Pod]:
        """Each with the first pod that states it."""
        found: dict[_Constraint, Pod] = {}
        for pod in pods:
            for stated in pod.spec.topologySpreadConstraints:
                if stated.whenUnsatisfiable in self.args.constraints:
                    found.setdefault(_read(stated, pod), pod)
        return found

    def _balance(
        self, constraint: _Constraint, stating: Pod, pods: Sequence[Pod], nodes: Sequence[Node], going: dict[str, Pod]
    ) -> None:
        """Add the pods that have to go for one constraint (``balanceDomains``)."""
        eligible = [node for node in nodes if _counts(node, constraint, stating)]
        named = {node.metadata.name: node for node in nodes}
        by_value: dict[str, list[Pod]] = {}
        for node in eligible:
            if constraint.key in node.metadata.labels:
                by_value.setdefault(node.metadata.labels[constraint.key], [])
        total = 0
        for pod in pods:
            labels = named[pod.spec.nodeName].metadata.labels
            if pod.metadata.HasField("deletionTimestamp") or not constraint.selector.matches(pod.metadata.labels):
                continue
            if constraint.key in labels:
                by_value.setdefault(labels[constraint.key], []).append(pod)
                total += 1
        sizes = [len(one) for one in by_value.values()]
        if not sizes or max(sizes) - min(sizes) <= constraint.max_skew:
            return
        average = total / len(by_value)
        domains = self._sorted(by_value)
        small = [one.value for one in domains if len(one.pods) < average]
        targets = [node for value in small for node in eligible if node.metadata.labels.get(constraint.key) == value]
        low, high = 0, len(domains) - 1
        while low < high:
            if len(domains[high].pods) <= average:
                high -= 1
            larger, smaller = domains[high].pods, domains[low].pods
            skew = len(larger) - len(smaller)
            if skew <= constraint.max_skew:
                low += 1
                continue
            moved = min(
                math.ceil(len(larger) - average),
                math.ceil(average - len(smaller)),
                math.ceil((skew - constraint.max_skew) / 2),
            )
            if moved <= 0:
                low += 1
                continue
            # Those that fit on nodes of smaller domains stand at the end, from which pods go.
            larger.sort(key=lambda pod: self.cluster.fits_elsewhere(pod, targets))
            leaving = larger[-moved:]
            for pod in leaving:
                if not self.args.topology_balance_node_fit or self.cluster.fits_elsewhere(pod, targets):
                    going.setdefault(meta.namespaced_name(pod), pod)
            del larger[-moved:]
            smaller.extend(leaving)

    def _sorted(self, by_value: dict[str, list[Pod]]) -> list[_Domain]:
        """From the smallest; in each, pods that cannot go, then those that choose nodes, then by priority."""
        domains = []
        for value, pods in by_value.items():
            can_go = {id(pod): self.handle.filter.filter(pod) for pod in pods}

            def key(pod: Pod, can_go: dict[int, bool] = can_go) -> tuple[int, int, float]:
                if not can_go[id(pod)]:
                    return 0, 0, 0.0
                has = pod.spec.HasField("priority")
                return 1, int(not _chooses_nodes(pod)), pod.spec.priority if has else -math.inf

            def is_eager(pod: Pod, can_go: dict[int, bool] = can_go) -> bool:
                return not can_go[id(pod)] or pod.spec.HasField("priority")

            sorts.sort(pods, key, is_eager)
            domains.append(_Domain(value, pods))
        sorts.sort(domains, lambda one: len(one.pods))
        return domains


def _chooses_nodes(pod: Pod) -> bool:
    return bool(pod.spec.nodeSelector) or pod.spec.affinity.HasField("nodeAffinity")


def _read(stated: core_v1_pb2.TopologySpreadConstraint, pod: Pod) -> _Constraint:
    selector = selectors.compile_labels_field(stated, "labelSelector")
    labels = {key: pod.metadata.labels[key] for key in stated.matchLabelKeys if key in pod.metadata.labels}
    if labels and selector is not selectors.NOTHING:
        selector = selectors.LabelSelector([*selectors.labels_equal(labels).requirements, *selector.requirements])
    honours_affinity = (stated.nodeAffinityPolicy or "Honor") == "Honor"
    honours_taints = stated.nodeTaintsPolicy == "Honor"
    spec = pod.spec
    wanted = core_v1_pb2.PodSpec(nodeSelector=spec.nodeSelector)
    if spec.affinity.nodeAffinity.HasField("requiredDuringSchedulingIgnoredDuringExecution"):
        wanted.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.CopyFrom(
            spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
        )
    tolerated = core_v1_pb2.PodSpec(tolerations=spec.tolerations)
    return _Constraint(
        stated.maxSkew,
        stated.topologyKey,
        selector,
        wanted.SerializeToString(deterministic=True) if honours_affinity else b"",
        tolerated.SerializeToString(deterministic=True) if honours_taints else b"",
        honours_affinity,
        honours_taints,
    )


def _counts(node: Node, constraint: _Constraint, pod: Pod) -> bool:
    """Whether the node is one of those over which the constraint spreads."""
    if constraint.honours_affinity and not matches_node(pod, node):
        return False
    return not constraint.honours_taints or tolerates(pod, node.spec.taints)
