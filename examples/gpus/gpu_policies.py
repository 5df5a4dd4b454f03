"""Policies for nodes with GPUs: the heuristics that Fragmentation Gradient Descent was compared with.

As in the artifact of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023); what each computes is restated there and
in the publications that it cites. All scores are whole numbers from 0 to 100, so ties are common; :class:`NameOrder`
and :class:`NameOrderFine` settle them by the names of the nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gpu_cards import Demand, GpuPolicy, Ints

from kemu.emulated.objects.pods import gpu_cards
from kemu.scheduler.framework import (
    Cluster,
    Cycle,
    NodeInfo,
    PodInfo,
    PreEnqueuePlugin,
    Scope,
    ScorePlugin,
    Status,
    unresolvable,
)

CPU_SCALE = 128_000
"""Milli-CPU of the largest node: amounts of CPU are compared by their part of this."""
GPU_SCALE = 8_000
"""Milli of eight cards."""


class Random(GpuPolicy):
    """One feasible node drawn at random, and for a part of a card one of the cards that fit."""

    scope = Scope.CLUSTER

    def prepare_scores(self, cycle: Cycle, rows: Ints) -> Any:
        return self.table.demand(cycle.pod)

    def scores(self, state: Demand, cluster: Cluster, rows: Ints | None) -> Ints:
        scores: Ints = np.zeros(len(cluster) if rows is None else len(rows), dtype=np.int64)
        scores[self.handle.random.randrange(len(scores))] = 100
        return scores

    def card_for_part(self, demand: Demand, row: int, fitting: list[int]) -> int:
        return fitting[self.handle.random.randrange(len(fitting))]


class BestFit(GpuPolicy):
    """The node with the least CPU and GPU left."""

    def rate(self, demand: Demand, rows: Ints) -> Ints:
        cpu, gpu = self.table.cpu_left()[rows] - demand.cpu_milli, self.table.left[rows].sum(axis=1) - demand.total
        left = (cpu / CPU_SCALE) * 0.5 + (gpu / GPU_SCALE) * 0.5
        scores: Ints = ((1 - left) * 100).astype(np.int64)
        return scores


class DotProd(GpuPolicy):
    """The node where what is left points least in the direction of what the pod wants."""

    def rate(self, demand: Demand, rows: Ints) -> Ints:
        cpu, gpu = self.table.cpu_left()[rows], self.table.left[rows].sum(axis=1)
        product = (cpu / CPU_SCALE) * (demand.cpu_milli / CPU_SCALE) + (gpu / GPU_SCALE) * (demand.total / GPU_SCALE)
        scores: Ints = (100 * (1 - product / 2)).astype(np.int64)
        return scores


class GpuClustering(GpuPolicy):
    """Pods beside others of their kind: parts of cards together, and whole cards by their number."""

    def rate(self, demand: Demand, rows: Ints) -> Ints:
        if not demand.cards:
            return np.zeros(len(rows), dtype=np.int64)
        own = 1 if demand.milli < gpu_cards.WHOLE else 1 << demand.cards
        there = self.table.classes[rows]
        packed = 25 * (GPU_SCALE - self.table.left[rows].sum(axis=1)) // GPU_SCALE
        beside_own = np.where(there == own, 75, 50)
        elsewhere = np.where(there == 0, 25, 0)
        scores: Ints = packed + np.where(there & own, beside_own, elsewhere)
        return scores


class GpuPacking(GpuPolicy):
    """Cards in use before idle cards, idle cards of nodes in use before idle nodes; fuller cards first."""

    def rate(self, demand: Demand, rows: Ints) -> Ints:
        if not demand.cards:
            return np.zeros(len(rows), dtype=np.int64)
        left, cards = self.table.left[rows], self.table.cards[rows]
        is_idle = left == gpu_cards.WHOLE
        in_use = (left >= demand.milli) & ~is_idle
        idle_taken = demand.cards - np.count_nonzero(in_use, axis=1)
        fullest = np.where(in_use, left, gpu_cards.WHOLE).min(axis=1)
        on_used_cards = np.maximum(100 - fullest * 100 // gpu_cards.WHOLE // 10, 50)
        on_used_node = np.where(idle_taken > 0, np.maximum(50 - idle_taken, 33), on_used_cards)
        is_idle_node = np.count_nonzero(is_idle, axis=1) == cards
        scores: Ints = np.where(is_idle_node, np.maximum(33 - cards, cards), on_used_node)
        return scores


class NameOrder(ScorePlugin):
    """Of nodes that are alike to all other scores, the first by name.

    The name begins with a number of four digits. A score has only the values 0 to 100, so this plugin settles the
    number's hundreds (in steps of 101) and :class:`NameOrderFine` the rest: give this one 101 times its weight.
    """

    scope = Scope.NODE_OBJECT

    def score(self, state: Any, node: NodeInfo) -> int:
        return 100 - _number(node) // 101


class NameOrderFine(ScorePlugin):
    """See :class:`NameOrder`."""

    scope = Scope.NODE_OBJECT

    def score(self, state: Any, node: NodeInfo) -> int:
        return 100 - _number(node) % 101


def _number(node: NodeInfo) -> int:
    digits = node.name[:4]
    return int(digits) if digits.isdecimal() else 0


class OneAttempt(PreEnqueuePlugin):
    """A pod that fitted nowhere is not tried again."""

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        for condition in pod.pod.status.conditions:
            if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
                return unresolvable("the pod has had its attempt")
        return None
