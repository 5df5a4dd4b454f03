"""InterPodAffinity: affinity and anti-affinity to other pods, and the terms of existing pods.

Counts of pods by topology value come from the cluster's count columns (:mod:`kemu.emulated.scheduler.cache.counts`). In
a simulation (nominated pods, victims) only the pods of one node change, so the state of a simulation is the shared
counts plus small differences for the domains of that node.

Verdicts: 1 required affinity, 2 required anti-affinity of the pod, 3 anti-affinity of pods that exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache import terms
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import BoolArray, IntArray
from kemu.emulated.scheduler.cache.counts import (
    PREFERRED,
    REQUIRED_AFFINITY,
    REQUIRED_ANTI_AFFINITY,
    CountColumn,
    TermColumn,
)
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.cache.terms import AffinityTerm
from kemu.emulated.scheduler.framework.events import Event, Hint, of_the_pod_itself
from kemu.emulated.scheduler.framework.interfaces import (
    MAX_SCORE,
    SKIP,
    Cycle,
    FilterPlugin,
    Handle,
    ScorePlugin,
    SignPlugin,
)
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable, unschedulable
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
_ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
_EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
_STATUSES = (_AFFINITY, _ANTI_AFFINITY, _EXISTING)

Domain = tuple[str, int]
"""Topology key and number of the value."""


class DomainCounts:
    """Counts of pods by topology value, for several keys, with the differences of a simulation on top."""

    __slots__ = ("by_key", "cluster", "difference", "total", "total_difference")

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.by_key: dict[str, IntArray] = {}
        self.total = 0
        """Over all keys and values."""
        self.difference: dict[Domain, int] = {}
        self.total_difference = 0

    def include(self, key: str, column: CountColumn | TermColumn) -> None:
        counts = column.by_domain(self.cluster.label(key), len(self.cluster))
        self.total += int(counts[1:].sum())
        known = self.by_key.get(key)
        if known is not None:
            wider = counts.copy()
            wider[: len(known)] += known
            counts = wider
        self.by_key[key] = counts

    def fork(self) -> DomainCounts:
        twin = DomainCounts.__new__(DomainCounts)
        twin.cluster, twin.by_key, twin.total = self.cluster, self.by_key, self.total
        twin.difference = dict(self.difference)
        twin.total_difference = self.total_difference
        return twin

    def change(self, key: str, node: NodeInfo, amount: int) -> None:
        value = self.cluster.label(key).number(node.labels)
        if value:
            self.difference[key, value] = self.difference.get((key, value), 0) + amount
            self.total_difference += amount

    def at(self, key: str, node: NodeInfo) -> int | None:
        """The count of the node's domain; None when the node has no such label."""
        value = self.cluster.label(key).number(node.labels)
        if not value:
            return None
        counts = self.by_key.get(key)
        count = int(counts[value]) if counts is not None and value < len(counts) else 0
        return count + self.difference.get((key, value), 0)

    def column(self, key: str) -> IntArray:
        """The count of each node's domain by row; 0 without the label."""
        ids = self.cluster.label(key).ids[: len(self.cluster)]
        counts = self.by_key[key].copy()
        counts[0] = 0
        return counts[ids]

    @property
    def empty(self) -> bool:
        return self.total + self.total_difference == 0


class _State:
    """What the filter knows of the pending pod."""

    __slots__ = ("affinity", "anti_affinity", "cycle", "existing", "namespace_labels", "selectors", "wanted")

    def __init__(self, cycle: Cycle) -> None:
        cluster = cycle.cluster
        self.cycle = cycle
        self.namespace_labels = cluster.namespaces.get(cycle.namespace, {})
        template = cycle.template
        self.wanted = tuple(terms.pod_selector(term, cluster.namespaces) for term in template.affinity_terms)
        self.selectors = tuple(terms.pod_selector(term, cluster.namespaces) for term in template.anti_affinity_terms)
        self.affinity = DomainCounts(cluster)
        self.anti_affinity = DomainCounts(cluster)
        self.existing = DomainCounts(cluster)

    def fork(self) -> _State:
        twin = _State.__new__(_State)
        twin.cycle, twin.namespace_labels = self.cycle, self.namespace_labels
        twin.wanted, twin.selectors = self.wanted, self.selectors
        twin.affinity = self.affinity.fork()
        twin.anti_affinity = self.anti_affinity.fork()
        twin.existing = self.existing.fork()
        return twin

    def repelled_by(self, pod: PodInfo) -> Iterator[str]:
        """The keys of the terms by which the pending pod and this one repel each other."""
        pending = self.cycle.pod
        for term in pod.template.anti_affinity_terms:
            if term.matches(pending.namespace, pending.labels, self.namespace_labels):
                yield term.key
        for term, selector in zip(self.cycle.template.anti_affinity_terms, self.selectors, strict=True):
            if selector.matches(pod.namespace, pod.labels):
                yield term.key

    def change(self, node: NodeInfo, pod: PodInfo, amount: int) -> None:
        pending = self.cycle.pod
        for term in pod.template.anti_affinity_terms:
            if term.matches(pending.namespace, pending.labels, self.namespace_labels):
                self.existing.change(term.key, node, amount)
        template = self.cycle.template
        if self.wanted and all(one.matches(pod.namespace, pod.labels) for one in self.wanted):
            for term in template.affinity_terms:
                self.affinity.change(term.key, node, amount)
        for term, selector in zip(template.anti_affinity_terms, self.selectors, strict=True):
            if selector.matches(pod.namespace, pod.labels):
                self.anti_affinity.change(term.key, node, amount)


class InterPodAffinity(FilterPlugin, ScorePlugin, SignPlugin):
    normalizes = True

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.hard_weight: int = args["hardPodAffinityWeight"]
        self.ignores_existing: bool = args["ignorePreferredTermsOfExistingPods"]

    # Filter ---------------------------------------------------------------------------------------------------------

    def prepare(self, cycle: Cycle) -> Any:
        template, cluster = cycle.template, cycle.cluster
        owners = cluster.counts.owners[REQUIRED_ANTI_AFFINITY]
        if not owners and not template.affinity_terms and not template.anti_affinity_terms:
            return SKIP
        state = _State(cycle)
        for owner in cluster.counts.owning(REQUIRED_ANTI_AFFINITY, cycle.labels):
            if owner.term.matches(cycle.namespace, cycle.labels, state.namespace_labels):
                state.existing.include(owner.term.key, owner)
        for term in template.affinity_terms:
            state.affinity.include(term.key, cluster.matching(*state.wanted))
        for term, selector in zip(template.anti_affinity_terms, state.selectors, strict=True):
            state.anti_affinity.include(term.key, cluster.matching(selector))
        if not template.affinity_terms and not template.anti_affinity_terms and state.existing.empty:
            return SKIP
        return state

    def verdict(self, state: _State, node: NodeInfo) -> int:
        missing = False
        for term in state.cycle.template.affinity_terms:
            count = state.affinity.at(term.key, node)
            if count is None:
                return 1
            missing = missing or count <= 0
        if missing and not self._is_first_of_its_kind(state):
            return 1
        for term in state.cycle.template.anti_affinity_terms:
            if (state.anti_affinity.at(term.key, node) or 0) > 0:
                return 2
        for key in node.labels:
            if (key in state.existing.by_key or state.existing.difference) and (state.existing.at(key, node) or 0) > 0:
                return 3
        return 0

    def verdicts(self, state: _State, cluster: Cluster) -> IntArray:
        rows = len(cluster)
        verdicts = np.zeros(rows, dtype=np.int64)
        for key in state.existing.by_key:
            verdicts[state.existing.column(key) > 0] = 3
        for key in state.anti_affinity.by_key:
            verdicts[state.anti_affinity.column(key) > 0] = 2
        if state.cycle.template.affinity_terms:
            lonely = self._is_first_of_its_kind(state)
            for key in state.affinity.by_key:
                if lonely:
                    verdicts[cluster.label(key).ids[:rows] == 0] = 1
                else:
                    verdicts[state.affinity.column(key) <= 0] = 1
        return verdicts

    def _is_first_of_its_kind(self, state: _State) -> bool:
        """No pod matches the affinity terms yet, and the pod itself does: it may be the first."""
        pod = state.cycle.pod
        return state.affinity.empty and all(one.matches(pod.namespace, pod.labels) for one in state.wanted)

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        """Not a pod with terms of its own. The labels count for the terms of others; the namespace is left out."""
        affinity = pod.template.spec.affinity
        if affinity.HasField("podAffinity") or affinity.HasField("podAntiAffinity"):
            return None
        return {} if self.ignores_existing else {"labels": tuple(sorted(pod.labels.items()))}

    def explain(self, state: _State, verdict: int) -> Status:
        return _STATUSES[verdict - 1]

    def fork(self, state: _State) -> _State:
        return state.fork()

    def add_pod(self, state: _State, node: NodeInfo, pod: PodInfo) -> None:
        state.change(node, pod, 1)

    def remove_pod(self, state: _State, node: NodeInfo, pod: PodInfo) -> None:
        state.change(node, pod, -1)

    def reach(self, state: _State, node: NodeInfo, pod: PodInfo) -> Collection[tuple[str, str]] | None:
        """Affinity reaches all nodes: the pod may be the only one that matches."""
        if state.wanted and all(one.matches(pod.namespace, pod.labels) for one in state.wanted):
            return None
        return {(key, node.labels[key]) for key in state.repelled_by(pod) if key in node.labels}

    def passes_anyway(self, state: _State, node: NodeInfo) -> bool:
        """Removing pods never violates anti-affinity; it may violate affinity in a domain with few matching pods."""
        template = state.cycle.template
        if _may_repel(template, node):
            return False
        # A pod counts once for each term of the same key.
        most = len(node.pods) * len(template.affinity_terms)
        for term in template.affinity_terms:
            if (state.affinity.at(term.key, node) or 0) <= most:
                return False
        if not template.anti_affinity_terms and not state.existing.by_key:
            return True
        return self.verdict(state, node) == 0

    def passing_anyway(self, state: _State, cluster: Cluster) -> BoolArray:
        template, rows = state.cycle.template, len(cluster)
        passing = np.ones(rows, dtype=np.bool_)
        if template.affinity_terms:
            most = cluster.resources().pods[:rows] * len(template.affinity_terms)
            for key in state.affinity.by_key:
                passing &= state.affinity.column(key) > most
        if template.anti_affinity_terms or state.existing.by_key:
            passing &= self.verdicts(state, cluster) == 0
        if template.anti_affinity_terms or cluster.nominator.repelling:
            # Nominated pods are added before the filters are asked: those may keep others away, or be kept away.
            for node in cluster.nominated_nodes():
                if passing[node.row] and _may_repel(template, node):
                    passing[node.row] = False
        return passing

    # Score ----------------------------------------------------------------------------------------------------------

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> Any:
        template, cluster = cycle.template, cycle.cluster
        preferred = template.preferred_affinity_terms
        if template.preferred_anti_affinity_terms:
            preferred += tuple([(-weight, term) for weight, term in template.preferred_anti_affinity_terms])
        if self.ignores_existing and not preferred:
            return SKIP
        owners = cluster.counts.owners
        if not preferred and not owners[PREFERRED] and not (self.hard_weight and owners[REQUIRED_AFFINITY]):
            return SKIP
        scores: dict[str, IntArray] = {}

        def include(key: str, column: CountColumn | TermColumn, weight: int) -> None:
            if column.total:
                by_domain = column.by_domain(cluster.label(key), len(cluster)) * np.int64(weight)
                scores[key] = scores[key] + by_domain if key in scores else by_domain

        for weight, term in preferred:
            include(term.key, cluster.matching(terms.pod_selector(term, cluster.namespaces)), weight)
        namespace_labels = cluster.namespaces.get(cycle.namespace, {})
        labels = cycle.labels
        for owner in cluster.counts.owning(PREFERRED, labels):
            if owner.term.matches(cycle.namespace, labels, namespace_labels):
                include(owner.term.key, owner, owner.weight)
        if self.hard_weight:
            for owner in cluster.counts.owning(REQUIRED_AFFINITY, labels):
                if owner.term.matches(cycle.namespace, labels, namespace_labels):
                    include(owner.term.key, owner, self.hard_weight)
        if not scores:
            return SKIP
        for by_domain in scores.values():
            by_domain[0] = 0
        return scores

    def score(self, state: dict[str, IntArray], node: NodeInfo) -> int:
        cluster = self.handle.cluster
        return sum(int(by_domain[cluster.label(key).number(node.labels)]) for key, by_domain in state.items())

    def scores(self, state: dict[str, IntArray], cluster: Cluster, rows: IntArray | None) -> IntArray:
        total = np.zeros(len(cluster) if rows is None else len(rows), dtype=np.int64)
        for key, by_domain in state.items():
            ids = cluster.label(key).ids
            total += by_domain[ids[: len(cluster)] if rows is None else ids[rows]]
        return total

    def normalize(self, state: Mapping[str, IntArray], scores: IntArray) -> IntArray:
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            return np.zeros_like(scores)
        return (float(MAX_SCORE) * ((scores - lowest) / (highest - lowest))).astype(np.int64)

    # Events ---------------------------------------------------------------------------------------------------------

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.ASSIGNED_POD_ADD, lambda pod, old, new: self._is_wanted(pod, new)),
            (Event.ASSIGNED_POD_LABELS, self._relabelled),
            (Event.ASSIGNED_POD_DELETE, lambda pod, old, new: self._is_in_the_way(pod, old)),
            (Event.POD_LABELS, of_the_pod_itself),
            (Event.NODE_ADD, _has_a_key),
            (Event.NODE_LABELS, _key_changed),
            (Event.NODE_TAINTS, None),
        ]

    def _is_wanted(self, pod: PodInfo, other: KubernetesObject) -> bool:
        """Whether another pod matches all affinity terms of the waiting pod."""
        terms = pod.template.affinity_terms
        return bool(terms) and _matches_all(terms, other.metadata.namespace, other.metadata.labels)

    def _is_in_the_way(self, pod: PodInfo, other: core_v1_pb2.Pod) -> bool:
        """Whether the anti-affinity of either pod concerns the other; all terms must match, there must be some."""
        terms = pod.template.anti_affinity_terms
        if terms and _matches_all(terms, other.metadata.namespace, other.metadata.labels):
            return True
        others = self.handle.cluster.templates.of(other).anti_affinity_terms
        return bool(others) and _matches_all(others, pod.namespace, pod.labels)

    def _relabelled(self, pod: PodInfo, old: KubernetesObject, new: KubernetesObject) -> bool:
        if self._is_wanted(pod, new) and not self._is_wanted(pod, old):
            return True
        terms = pod.template.anti_affinity_terms
        return (
            bool(terms)
            and _matches_all(terms, old.metadata.namespace, old.metadata.labels)
            and not _matches_all(terms, new.metadata.namespace, new.metadata.labels)
        )


def _matches_all(terms: Iterable[AffinityTerm], namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether a pod matches all terms, as the hints of v1.36 ask it: of namespaces as if they had no labels.

    So an event in a namespace that only a namespaceSelector selects requeues no pod.
    """
    return all(term.matches(namespace, labels, {}) for term in terms)


def _has_a_key(pod: PodInfo, old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> bool:
    if pod.template.anti_affinity_terms:
        return True
    return any(term.key in new.metadata.labels for term in pod.template.affinity_terms)


def _key_changed(pod: PodInfo, old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> bool:
    before, after = old.metadata.labels, new.metadata.labels
    for term in pod.template.affinity_terms:
        if term.key in after and after[term.key] != before.get(term.key):
            return True
    return any(
        term.key in before and before[term.key] != after.get(term.key) for term in pod.template.anti_affinity_terms
    )


def _may_repel(template: Template, node: NodeInfo) -> bool:
    """Whether the pods nominated to a node may keep this one away, or it them."""
    if not node.nominated:
        return False
    return bool(template.anti_affinity_terms) or any(other.template.anti_affinity_terms for other in node.nominated)
