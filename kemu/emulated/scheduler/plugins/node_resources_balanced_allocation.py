"""NodeResourcesBalancedAllocation: prefers nodes whose resources are used evenly.

Floating point, in the order of operations of kube-scheduler, so that results agree to the last unit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kemu.emulated.scheduler.cache import columns
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import BoolArray, IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import CPU, MEMORY, PodInfo, is_scalar_resource
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.interfaces import MAX_SCORE, SKIP, Cycle, Handle, Scope, ScorePlugin, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments

FloatArray = npt.NDArray[np.float64]
Counted = tuple[tuple[int, int], ...]
"""(resource number, request of the pending pod)"""


class NodeResourcesBalancedAllocation(ScorePlugin, SignPlugin):
    scope = Scope.NODE

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.resources: list[str] = [one["name"] for one in args["resources"]]
        handle.cluster.names.keep(self.resources)

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> Any:
        amounts = dict(cycle.template.requests)
        counted = []
        for name in self.resources:
            number = self.handle.cluster.names.of(name)
            amount = amounts.get(number, 0)
            if amount or not is_scalar_resource(name):
                counted.append((number, amount))
        return tuple(counted) if any(amount for _number, amount in counted) else SKIP

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.resources(pod.pod)

    def score(self, state: Counted, node: NodeInfo) -> int:
        with_pod, without = [], []
        for number, amount in state:
            allocatable = node.allocatable[number]
            if allocatable:
                requested = node.requested[number]
                with_pod.append(min((requested + amount) / allocatable, 1.0))
                without.append(min(requested / allocatable, 1.0))
        if len(with_pod) == 2:  # The usual case, without calls.
            spread, before = abs((with_pod[0] - with_pod[1]) / 2), abs((without[0] - without[1]) / 2)
            gain = 50 + int((1 - spread) * MAX_SCORE) - int((1 - before) * MAX_SCORE)
        else:
            gain = 50 + _balance(with_pod) - _balance(without)
        return 50 + (gain >> 1 if gain >= 0 else -(-gain >> 1))

    def scores(self, state: Counted, cluster: Cluster, rows: IntArray | None) -> IntArray:
        table = cluster.resources()
        select = slice(0, len(cluster)) if rows is None else rows
        if [number for number, _amount in state] == [CPU, MEMORY] and all(map(cluster.every_node_has, (CPU, MEMORY))):
            # The usual case, both at once.
            both = columns.pair(table.allocatable, rows, len(cluster))
            taken = columns.pair(table.requested, rows, len(cluster))
            wanted = np.array([[amount] for _number, amount in state])
            # With the pod and without it, in one array: half as many operations.
            fractions = np.empty((2, *both.shape))
            np.add(taken, wanted, out=fractions[0])
            fractions[1] = taken
            fractions /= both
            np.minimum(fractions, 1.0, out=fractions)
            spreads = _spread_of_two(fractions[:, 0], fractions[:, 1])
            balances = ((1 - spreads) * MAX_SCORE).astype(np.int64)
            return _half(50 + (balances[0] - balances[1])) + 50
        counts: list[BoolArray | None] = []
        with_pod, without = [], []
        for number, amount in state:
            allocatable = table.allocatable[number, select]
            requested = table.requested[number, select]
            if cluster.every_node_has(number):
                counts.append(None)
            else:
                counts.append(allocatable > 0)
                allocatable = np.maximum(allocatable, 1)
            with_pod.append(np.minimum((requested + amount) / allocatable, 1.0))
            without.append(np.minimum(requested / allocatable, 1.0))
        gain = 50 + _balances(with_pod, counts) - _balances(without, counts)
        return _half(gain) + 50


def _half(gain: IntArray) -> IntArray:
    """Half of it, truncated toward zero."""
    half: IntArray = (gain + (gain < 0)) >> 1
    return half


def _spread_of_two(one: Any, other: Any) -> Any:
    """The standard deviation of two fractions, in columns."""
    return abs((one - other) / 2)


def _balance(fractions: list[float]) -> int:
    """Of any number of fractions but two, which are rounded otherwise."""
    if len(fractions) < 2:
        spread = 0.0
    else:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        spread = math.sqrt(squares / len(fractions))
    return int((1 - spread) * MAX_SCORE)


def _balances(fractions: Sequence[FloatArray], counts: Sequence[BoolArray | None]) -> IntArray:
    """:func:`_balance` by row; ``counts`` says where a resource counts (None: on every node)."""
    if len(fractions) == 2 and counts[0] is None and counts[1] is None:
        spread = _spread_of_two(fractions[0], fractions[1])
    else:
        everywhere = np.ones(len(fractions[0]), dtype=np.bool_)
        masks = [everywhere if counted is None else counted for counted in counts]
        number = np.zeros(len(everywhere), dtype=np.int64)
        total, squares = np.zeros(len(everywhere)), np.zeros(len(everywhere))
        for fraction, counted in zip(fractions, masks, strict=True):
            number += counted
            total += np.where(counted, fraction, 0.0)
        mean = total / np.maximum(number, 1)
        for fraction, counted in zip(fractions, masks, strict=True):
            squares += np.where(counted, (fraction - mean) * (fraction - mean), 0.0)
        spread = np.sqrt(squares / np.maximum(number, 1))
        spread = np.where(number == 2, _pair_spread(fractions, masks), spread)
        spread = np.where(number < 2, 0.0, spread)
    balances: IntArray = ((1 - spread) * MAX_SCORE).astype(np.int64)
    return balances


def _pair_spread(fractions: Sequence[FloatArray], counts: Sequence[BoolArray]) -> FloatArray:
    """Half the distance of the two fractions that count, where exactly two do."""
    first = np.full(len(fractions[0]), np.nan)
    second = np.zeros(len(fractions[0]))
    for fraction, counted in zip(fractions, counts, strict=True):
        is_first = counted & np.isnan(first)
        second = np.where(counted & ~is_first, fraction, second)
        first = np.where(is_first, fraction, first)
    spread: FloatArray = _spread_of_two(np.nan_to_num(first), second)
    return spread
