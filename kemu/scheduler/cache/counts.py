"""Columns that count pods: how many pods on each node satisfy a predicate, kept up to date pod by pod.

Inter-pod affinity and topology spread ask, for every pending pod, how many pods of some kind stand in each zone, rack
or node. Instead of walking over all pods each time, the question is registered once as a column of counts per node;
a pod that comes or goes changes one element. Counts per domain follow from a column by one ``bincount``.

Two kinds of column: pods that *match a selector* (asked by a pending pod), and pods that *own a term* (terms of
existing pods that a pending pod may match).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

import numpy as np

from kemu.scheduler.cache import columns
from kemu.scheduler.cache.columns import IntArray, LabelColumn
from kemu.scheduler.cache.nodes import NodeInfo
from kemu.scheduler.cache.pods import PodInfo
from kemu.scheduler.cache.terms import AffinityTerm

_COLUMN_LIMIT = 256

REQUIRED_ANTI_AFFINITY = "required anti-affinity"
REQUIRED_AFFINITY = "required affinity"
PREFERRED = "preferred"


class CountColumn:
    """Pods per node. ``total`` is the sum over all nodes."""

    __slots__ = ("_domains", "column", "total", "used", "version")

    def __init__(self, capacity: int) -> None:
        self.column: IntArray = np.zeros(capacity, dtype=np.int64)
        self.total = 0
        self.version = 0
        self.used = 0
        self._domains: dict[str, tuple[int, int, IntArray]] = {}

    def add(self, row: int, amount: int) -> None:
        self.column[row] += amount
        self.total += amount
        self.version += 1

    def by_domain(self, labels: LabelColumn, rows: int) -> IntArray:
        """Counts by the number of the label's value; element 0 holds the nodes without the label."""
        known = self._domains.get(labels.key)
        if known is not None and known[0] == self.version and known[1] == labels.version:
            return known[2]
        counts = np.bincount(labels.ids[:rows], weights=self.column[:rows], minlength=labels.size).astype(np.int64)
        self._domains[labels.key] = (self.version, labels.version, counts)
        return counts


class TermColumn(CountColumn):
    """Pods that own a term, per node."""

    __slots__ = ("term", "weight")

    def __init__(self, capacity: int, term: AffinityTerm, weight: int) -> None:
        super().__init__(capacity)
        self.term = term
        self.weight = weight
        """Of a preferred term, negative for anti-affinity; else 0."""


class Counts:
    """All count columns of one cluster."""

    def __init__(self) -> None:
        self._matching: dict[Hashable, tuple[Callable[[PodInfo], bool], CountColumn]] = {}
        self.owners: dict[str, dict[Hashable, TermColumn]] = {
            REQUIRED_ANTI_AFFINITY: {},
            REQUIRED_AFFINITY: {},
            PREFERRED: {},
        }
        """Columns of the terms that pods on nodes have, by kind of term."""
        self._clock = 0

    # Written by the cluster -----------------------------------------------------------------------------------------

    def pod_came(self, pod: PodInfo, row: int, capacity: int) -> None:
        for predicate, column in self._matching.values():
            if predicate(pod):
                column.add(row, 1)
        for kind, signature, term, weight in _owned(pod):
            owners = self.owners[kind]
            owner = owners.get(signature)
            if owner is None:
                owner = owners[signature] = TermColumn(capacity, term, weight)
            owner.add(row, 1)

    def pod_went(self, pod: PodInfo, row: int) -> None:
        for predicate, column in self._matching.values():
            if predicate(pod):
                column.add(row, -1)
        for kind, signature, _term, _weight in _owned(pod):
            owner = self.owners[kind][signature]
            owner.add(row, -1)
            if owner.total == 0:
                del self.owners[kind][signature]

    def forget_domains(self, key: str) -> None:
        """The column of a label is gone."""
        for column in self._all():
            column._domains.pop(key, None)

    def grow(self, capacity: int) -> None:
        for column in self._all():
            column.column = columns.grown(column.column, capacity)

    def permute(self, sources: IntArray) -> None:
        for column in self._all():
            column.column = columns.permuted(column.column, sources)

    def _all(self) -> Iterable[CountColumn]:
        for _predicate, column in self._matching.values():
            yield column
        for owners in self.owners.values():
            yield from owners.values()

    # Read by plugins ------------------------------------------------------------------------------------------------

    def matching(
        self, signature: Hashable, predicate: Callable[[PodInfo], bool], nodes: Iterable[NodeInfo], capacity: int
    ) -> CountColumn:
        """The column of pods that satisfy ``predicate``; counted over all pods the first time.

        ``signature`` names the predicate: equal signatures must mean equal predicates.
        """
        self._clock += 1
        known = self._matching.get(signature)
        if known is None:
            if len(self._matching) >= _COLUMN_LIMIT:
                self._forget_oldest()
            column = CountColumn(capacity)
            for node in nodes:
                count = sum(1 for pod in node.pods.values() if predicate(pod))
                if count:
                    column.add(node.row, count)
            known = self._matching[signature] = (predicate, column)
        column = known[1]
        column.used = self._clock
        return column

    def _forget_oldest(self) -> None:
        by_age = sorted(self._matching, key=lambda signature: self._matching[signature][1].used)
        for signature in by_age[: _COLUMN_LIMIT // 2]:
            del self._matching[signature]


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
