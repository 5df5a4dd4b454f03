"""Columns that count pods: how many pods on each node satisfy a predicate, kept up to date pod by pod.

Inter-pod affinity and topology spread ask, for every pending pod, how many pods of some kind run in each zone, rack
or node. Instead of walking over all pods each time, the question is registered once as a column of counts per node;
a pod that is added or removed changes one element. Counts per domain follow from a column by one ``bincount``.

Two kinds of column: pods that *match selectors* (asked by a pending pod), and pods that *own a term* (terms of existing
pods that a pending pod may match). Both are found by label (:mod:`kemu.emulated.scheduler.cache.indexes`), so that a
pod costs nothing for the columns that do not concern it, and a new column nothing for the pods that it cannot count.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

import numpy as np

from kemu.emulated.scheduler.cache import columns
from kemu.emulated.scheduler.cache.columns import IntArray, LabelColumn
from kemu.emulated.scheduler.cache.indexes import PodIndex, SelectorIndex
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cache.terms import AffinityTerm, PodSelector

_COLUMN_LIMIT = 256
_FEW_NODES = 64
"""A term that pods on no more nodes own is counted node by node, not in a column."""

REQUIRED_ANTI_AFFINITY = "required anti-affinity"
REQUIRED_AFFINITY = "required affinity"
PREFERRED = "preferred"


class CountColumn:
    """Pods per node. ``total`` is the sum over all nodes."""

    __slots__ = ("_domains", "column", "total", "version")

    def __init__(self, column: IntArray) -> None:
        self.column = column
        self.total = int(column.sum())
        self.version = 0
        self._domains: dict[str, tuple[int, int, IntArray]] = {}

    def add(self, row: int, amount: int) -> None:
        self.column[row] += amount
        self.total += amount
        self.version += 1

    def by_row(self, rows: int) -> IntArray:
        """Counts of the first so many rows; not to be written."""
        return self.column[:rows]

    def by_domain(self, labels: LabelColumn, rows: int) -> IntArray:
        """Counts by the number of the label's value; element 0 holds the nodes without the label. Not to be written."""
        known = self._domains.get(labels.key)
        if known is not None and known[0] == self.version and known[1] == labels.version:
            return known[2]
        counts = np.bincount(labels.ids[:rows], weights=self.column[:rows], minlength=labels.size).astype(np.int64)
        self._domains[labels.key] = (self.version, labels.version, counts)
        return counts


class TermColumn:
    """Pods that own a term, per node. Most terms are owned on few nodes; a column is made for those that are not."""

    __slots__ = ("_few", "_many", "term", "total", "weight")

    def __init__(self, term: AffinityTerm, weight: int) -> None:
        self.term = term
        self.weight = weight
        """The weight of a preferred term, negative for anti-affinity; else 0."""
        self.total = 0
        self._few: dict[NodeInfo, int] = {}
        self._many: CountColumn | None = None

    def add(self, node: NodeInfo, amount: int, capacity: int) -> None:
        self.total += amount
        if self._many is not None:
            self._many.add(node.row, amount)
            return
        count = self._few.get(node, 0) + amount
        if count:
            self._few[node] = count
        else:
            del self._few[node]
        if len(self._few) > _FEW_NODES:
            self._many = CountColumn(self.by_row(capacity))
            self._few.clear()

    def by_row(self, rows: int) -> IntArray:
        """Counts of the first so many rows; not to be written."""
        if self._many is not None:
            return self._many.by_row(rows)
        counts = np.zeros(rows, dtype=np.int64)
        counts[[node.row for node in self._few]] = list(self._few.values())
        return counts

    def by_domain(self, labels: LabelColumn, rows: int) -> IntArray:
        """As :meth:`CountColumn.by_domain`."""
        if self._many is not None:
            return self._many.by_domain(labels, rows)
        ids = labels.ids[[node.row for node in self._few]]
        return np.bincount(ids, weights=list(self._few.values()), minlength=labels.size).astype(np.int64)

    def kept(self) -> Iterator[CountColumn]:
        """The column, if there is one."""
        if self._many is not None:
            yield self._many


class Counts:
    """All count columns of one cluster."""

    def __init__(self) -> None:
        self._matching: dict[Hashable, tuple[tuple[PodSelector, ...], CountColumn]] = {}
        """Those used last stand last."""
        self._questions: SelectorIndex[tuple[tuple[PodSelector, ...], CountColumn]] = SelectorIndex()
        self.owners: dict[str, dict[Hashable, TermColumn]] = {
            REQUIRED_ANTI_AFFINITY: {},
            REQUIRED_AFFINITY: {},
            PREFERRED: {},
        }
        """Columns of the terms that pods on nodes have, by kind of term."""
        self._terms: dict[str, SelectorIndex[TermColumn]] = {kind: SelectorIndex() for kind in self.owners}
        self._pods: PodIndex | None = None
        """Made when a column is first asked for."""

    # Written by the cluster -----------------------------------------------------------------------------------------

    def pod_came(self, pod: PodInfo, node: NodeInfo, capacity: int) -> None:
        if self._pods is not None:
            self._pods.add(pod)
            for wanted, column in self._questions.candidates(pod.labels):
                if matches(wanted, pod):
                    column.add(node.row, 1)
        if not pod.template.has_terms:
            return
        for kind, signature, term, weight in _owned(pod):
            owners = self.owners[kind]
            owner = owners.get(signature)
            if owner is None:
                owner = owners[signature] = TermColumn(term, weight)
                self._terms[kind].add(signature, term.selector, owner)
            owner.add(node, 1, capacity)

    def pod_went(self, pod: PodInfo, node: NodeInfo, capacity: int) -> None:
        if self._pods is not None:
            self._pods.remove(pod)
            for wanted, column in self._questions.candidates(pod.labels):
                if matches(wanted, pod):
                    column.add(node.row, -1)
        if not pod.template.has_terms:
            return
        for kind, signature, _term, _weight in _owned(pod):
            owner = self.owners[kind][signature]
            owner.add(node, -1, capacity)
            if owner.total == 0:
                del self.owners[kind][signature]
                self._terms[kind].remove(signature)

    def forget_domains(self, key: str) -> None:
        """The column of a label was dropped."""
        for column in self.kept():
            column._domains.pop(key, None)

    def grow(self, capacity: int) -> None:
        for column in self.kept():
            column.column = columns.grown(column.column, capacity)

    def permute(self, sources: IntArray) -> None:
        for column in self.kept():
            column.column = columns.permuted(column.column, sources)

    def kept(self) -> Iterable[CountColumn]:
        """All columns."""
        for _wanted, column in self._matching.values():
            yield column
        for owners in self.owners.values():
            for owner in owners.values():
                yield from owner.kept()

    @property
    def indexed_pods(self) -> int:
        """How many pods are found by label."""
        return 0 if self._pods is None else len(self._pods)

    # Read by plugins ------------------------------------------------------------------------------------------------

    def owning(self, kind: str, labels: Mapping[str, str]) -> Iterator[TermColumn]:
        """The terms of a kind that may be about a pod with these labels."""
        return self._terms[kind].candidates(labels)

    def matching(self, wanted: tuple[PodSelector, ...], nodes: Mapping[str, NodeInfo], capacity: int) -> CountColumn:
        """How many pods on each node all of these selectors match. ``nodes``: all, by name."""
        signature = tuple([one.signature for one in wanted])
        known = self._matching.pop(signature, None)
        if known is None:
            if len(self._matching) >= _COLUMN_LIMIT:
                oldest = next(iter(self._matching))
                del self._matching[oldest]
                self._questions.remove(oldest)
            known = (wanted, CountColumn(self._count(wanted, nodes, capacity)))
            self._questions.add(signature, wanted[0].selector, known)
        self._matching[signature] = known
        return known[1]

    def _count(self, wanted: tuple[PodSelector, ...], nodes: Mapping[str, NodeInfo], capacity: int) -> IntArray:
        if self._pods is None:
            self._pods = PodIndex()
            for node in nodes.values():
                if node.row >= 0:
                    for pod in node.pods.values():
                        self._pods.add(pod)
        rows: list[int] = []
        for group in self._pods.candidates(wanted):
            rows += [nodes[pod.node_name].row for pod in group.values() if matches(wanted, pod)]
        return np.bincount(np.array(rows, dtype=np.int64), minlength=capacity)


def matches(wanted: tuple[PodSelector, ...], pod: PodInfo) -> bool:
    """Whether all of these selectors match a pod."""
    for one in wanted:  # noqa: SIM110 - a generator costs more than the usual single selector
        if (one.live_only and pod.terminating) or not one.matches(pod.namespace, pod.labels):
            return False
    return True


def _owned(pod: PodInfo) -> Iterable[tuple[str, Hashable, AffinityTerm, int]]:
    """The terms of a pod: kind, signature, term, weight."""
    template = pod.template
    for term in template.anti_affinity_terms:
        yield REQUIRED_ANTI_AFFINITY, term.signature, term, 0
    for term in template.affinity_terms:
        yield REQUIRED_AFFINITY, term.signature, term, 0
    for weight, term in template.preferred_affinity_terms:
        yield PREFERRED, (weight, term.signature), term, weight
    for weight, term in template.preferred_anti_affinity_terms:
        yield PREFERRED, (-weight, term.signature), term, -weight
