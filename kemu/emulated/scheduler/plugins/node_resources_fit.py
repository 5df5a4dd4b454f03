"""NodeResourcesFit: the pod's requests must fit beside those of the node's pods; scores by how full the node gets.

All arithmetic is on integers, as in ``pkg/scheduler/framework/plugins/noderesources``. A verdict is a set of bits: bit
0 "too many pods", bit 1 + i "insufficient", for the i-th resource that the pod requests, and :data:`_UNRESOLVABLE` when
the request exceeds the node's allocatable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from kemu.emulated.objects.amounts import requests
from kemu.emulated.scheduler.cache import columns
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import CPU, MEMORY, PodInfo, is_scalar_resource
from kemu.emulated.scheduler.framework import events, signers
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import (
    MAX_SCORE,
    Cycle,
    FilterPlugin,
    Handle,
    Scope,
    ScorePlugin,
    SignPlugin,
)
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import UNRESOLVABLE, UNSCHEDULABLE, Status
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2

_UNRESOLVABLE = 1 << 38
_MOST_RESOURCES = 36
_PER_POINT = MAX_SCORE // 10
"""The scores of a shape go up to 10."""
_PLAIN = [(CPU, 1), (MEMORY, 1)]
"""Resources and weights of the score as they are by default."""

LEAST_ALLOCATED, MOST_ALLOCATED, RATIO = "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"


Rate = Callable[[Any, Any, Any, Any, Any], Any]
"""(allocatable, requested, divisor, lower, higher) → score of one resource, of integers or of columns.

``lower`` and ``higher`` are min and max of these. The divisor is ``allocatable`` without zeros, whose scores are
discarded."""


class Demand(NamedTuple):
    """What the filter checks: (resource number, amount), in the order of the reasons."""

    items: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    delegated: frozenset[int] = frozenset()
    """Numbers of resources that a device class stands behind: where the node offers none of them, DynamicResources
    decides."""


class Counted(NamedTuple):
    """A resource that counts in the score."""

    number: int
    weight: int
    amount: int
    """The pending pod's request."""


class NodeResourcesFit(FilterPlugin, ScorePlugin, SignPlugin):
    scope = Scope.NODE

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.ignored = tuple(args["ignoredResources"])
        self.ignored_groups = tuple(args["ignoredResourceGroups"])
        strategy = args["scoringStrategy"]
        self.strategy: str = strategy["type"]
        self.weights: list[tuple[str, int]] = [(one["name"], one["weight"]) for one in strategy["resources"]]
        handle.cluster.names.keep(name for name, _weight in self.weights)
        self.shape: tuple[tuple[int, int], ...] = ((0, 0),)
        if self.strategy == RATIO:
            points = strategy["requestedToCapacityRatio"]["shape"]
            self.shape = tuple((one["utilization"], one["score"] * _PER_POINT) for one in points)
        rates: dict[str, Rate] = {LEAST_ALLOCATED: _least_allocated, MOST_ALLOCATED: _most_allocated}
        self._rate = rates.get(self.strategy) or _on_ratio(self.shape)

    # Filter ---------------------------------------------------------------------------------------------------------

    def prepare(self, cycle: Cycle) -> Demand:
        names = self.handle.cluster.names.names
        items = tuple(
            (number, amount) for number, amount in cycle.template.requests if not self._is_ignored(names[number])
        )
        if len(items) > _MOST_RESOURCES:
            raise ValueError(f"pod {cycle.pod.key} requests more than {_MOST_RESOURCES} resources")
        delegated = frozenset(number for number, _amount in items if self._is_delegated(names[number]))
        return Demand(items, tuple(names[number] for number, _amount in items), delegated)

    def _is_delegated(self, name: str) -> bool:
        devices = self.handle.cluster.devices
        return devices is not None and name in devices.by_resource

    def _is_ignored(self, name: str) -> bool:
        if not requests.is_extended(name):
            return False
        return name in self.ignored or name.partition("/")[0] in self.ignored_groups

    def resource_demand(self, state: Demand) -> tuple[tuple[int, int], ...] | None:
        return None if state.delegated else state.items

    def verdict(self, state: Demand, node: NodeInfo) -> int:
        verdict = 1 if len(node.pods) + 1 > node.allowed_pods else 0
        bit = 1
        allocatable, requested = node.allocatable, node.requested
        for number, amount in state.items:
            bit += bit
            if amount > allocatable[number] - requested[number]:
                if number in state.delegated and not allocatable[number]:
                    continue
                verdict |= bit
                if amount > allocatable[number]:
                    verdict |= _UNRESOLVABLE
        return verdict

    def verdicts(self, state: Demand, cluster: Cluster) -> IntArray | None:
        table, rows = cluster.resources(), len(cluster)
        full = table.pods[:rows] >= table.allowed_pods[:rows]
        # Usually all nodes pass: checking that first is cheaper than writing a verdict for each.
        verdicts: IntArray | None = full.astype(np.int64) if np.logical_or.reduce(full) else None
        bit = 1
        for number, amount in state.items:
            bit += bit
            allocatable = table.allocatable[number, :rows]
            short = allocatable - table.requested[number, :rows] < amount
            if number in state.delegated:
                short &= allocatable > 0
            if np.logical_or.reduce(short):
                if verdicts is None:
                    verdicts = np.zeros(rows, dtype=np.int64)
                verdicts |= short * np.int64(bit)
                verdicts |= (short & (allocatable < amount)) * np.int64(_UNRESOLVABLE)
        return verdicts

    def explain(self, state: Demand, verdict: int) -> Status:
        reasons = ["Too many pods"] if verdict & 1 else []
        reasons += [f"Insufficient {name}" for place, name in enumerate(state.names, 1) if verdict >> place & 1]
        return Status(UNRESOLVABLE if verdict & _UNRESOLVABLE else UNSCHEDULABLE, tuple(reasons))

    # Score ----------------------------------------------------------------------------------------------------------

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> tuple[Counted, ...]:
        template, names = cycle.template, self.handle.cluster.names
        plain = dict(template.score_requests)
        counted = []
        for name, weight in self.weights:
            number = names.of(name)
            amount = template.score_non_zero[number] if number in (CPU, MEMORY) else plain.get(number, 0)
            if amount or not is_scalar_resource(name):
                counted.append(Counted(number, weight, amount))
        return tuple(counted)

    def score(self, state: tuple[Counted, ...], node: NodeInfo) -> int:
        rate, weighted, weights = self._rate, 0, 0
        is_usual = self.strategy == LEAST_ALLOCATED  # then as _least_allocated, for this is asked for every change
        for number, weight, amount in state:
            allocatable = node.allocatable[number]
            if allocatable == 0:
                continue
            if number == CPU:
                requested = node.non_zero_cpu + amount
            elif number == MEMORY:
                requested = node.non_zero_memory + amount
            else:
                requested = node.requested[number] + amount
            if is_usual:
                score = (allocatable - requested) * MAX_SCORE // allocatable if requested < allocatable else 0
            else:
                score = rate(allocatable, requested, allocatable, min, max)
            if score <= 0 and self.strategy == RATIO:
                continue
            weighted += score * weight
            weights += weight
        if weights == 0:
            return 0
        return weighted // weights if self.strategy != RATIO else int(weighted / weights + 0.5)

    def scores(self, state: tuple[Counted, ...], cluster: Cluster, rows: IntArray | None) -> IntArray:
        table, rate = cluster.resources(), self._rate
        select = slice(0, len(cluster)) if rows is None else rows
        plain = self.strategy == LEAST_ALLOCATED and [(one.number, one.weight) for one in state] == _PLAIN
        if plain and all(map(cluster.every_node_has, (CPU, MEMORY))):
            # The usual case, both at once.
            both = columns.pair(table.allocatable, rows, len(cluster))
            requested = columns.pair(table.non_zero, rows, len(cluster)) + np.array([[one.amount] for one in state])
            rates = rate(both, requested, both, np.minimum, np.maximum)
            half: IntArray = (rates[0] + rates[1]) >> 1
            return half
        weighted: IntArray = np.zeros(len(cluster) if rows is None else len(rows), dtype=np.int64)
        weights: IntArray | int = 0
        for number, weight, amount in state:
            allocatable = table.allocatable[number, select]
            used = table.non_zero[number] if number in (CPU, MEMORY) else table.requested[number]
            requested = used[select] + amount
            everywhere = cluster.every_node_has(number)
            divisor = allocatable if everywhere else np.maximum(allocatable, 1)
            score = rate(allocatable, requested, divisor, np.minimum, np.maximum)
            if everywhere and self.strategy != RATIO:
                weighted += score * weight if weight != 1 else score
                weights = weights + weight
            else:
                counts = (allocatable > 0) & (score > 0) if self.strategy == RATIO else allocatable > 0
                weighted += np.where(counts, score * weight, 0)
                weights = weights + counts * np.int64(weight)
        total = np.maximum(weights, 1)
        if self.strategy == RATIO:
            return np.floor(weighted / total + 0.5).astype(np.int64)
        mean: IntArray = weighted // total
        return mean

    # Events ---------------------------------------------------------------------------------------------------------

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        if self.handle.cluster.devices is not None:
            names = self.handle.cluster.names.names
            if any(self._is_delegated(names[number]) for number, _amount in pod.requests):
                return None
        return signers.resources(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        of_devices: list[tuple[Event, Hint | None]] = []
        if self.handle.cluster.devices is not None:
            of_devices = [
                (Event.DEVICE_CLASS_ADD, self._stands_behind),
                (Event.DEVICE_CLASS_UPDATE, self._stands_behind),
            ]
        return [
            *of_devices,
            (Event.ASSIGNED_POD_DELETE, None),
            (Event.ASSIGNED_POD_SCALE_DOWN, self._frees_what_is_requested),
            (Event.POD_SCALE_DOWN, events.of_the_pod_itself),
            (Event.NODE_ADD, lambda pod, old, new: self._fits_empty(pod, new)),
            (Event.NODE_ALLOCATABLE, self._grew),
            (Event.NODE_TAINTS, None),
        ]

    def _frees_what_is_requested(self, pod: PodInfo, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> bool:
        names = self.handle.cluster.names.names
        wanted = [names[number] for number, _amount in pod.requests]
        return events.scaled_down(requests.pod_requests_on_node(old), requests.pod_requests_on_node(new), wanted)

    def _stands_behind(
        self, pod: PodInfo, old: resource_v1_pb2.DeviceClass | None, new: resource_v1_pb2.DeviceClass
    ) -> bool:
        """``isSchedulableAfterDeviceClassEvent``."""
        names = self.handle.cluster.names.names
        wanted = [names[number] for number, _amount in pod.requests]
        if old is not None and old.spec.extendedResourceName == new.spec.extendedResourceName:
            return False
        if old is None and f"deviceclass.resource.kubernetes.io/{new.metadata.name}" in wanted:
            return True
        return new.spec.HasField("extendedResourceName") and new.spec.extendedResourceName in wanted

    def _fits_empty(self, pod: PodInfo, node: core_v1_pb2.Node) -> bool:
        amounts = requests.resource_list(node.status.allocatable)
        if amounts.get(requests.PODS, 0) < 1:
            return False
        names = self.handle.cluster.names.names
        return all(
            amount <= amounts.get(names[number], 0)
            for number, amount in pod.requests
            if not self._is_ignored(names[number])
            and (amounts.get(names[number], 0) > 0 or not self._is_delegated(names[number]))
        )

    def _grew(self, pod: PodInfo, old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> bool:
        names = self.handle.cluster.names.names
        wanted = [requests.PODS, *(names[number] for number, _amount in pod.requests)]
        before = requests.resource_list(old.status.allocatable)
        after = requests.resource_list(new.status.allocatable)
        return self._fits_empty(pod, new) and any(
            after.get(name, 0) > before.get(name, 0) or (not after.get(name, 0) and self._is_delegated(name))
            for name in wanted
        )


def _least_allocated(
    allocatable: float | IntArray,
    requested: float | IntArray,
    divisor: float | IntArray,
    lower: Callable[..., Any],
    higher: Callable[..., Any],
) -> Any:
    return higher(allocatable - requested, 0) * MAX_SCORE // divisor


def _most_allocated(
    allocatable: float | IntArray,
    requested: float | IntArray,
    divisor: float | IntArray,
    lower: Callable[..., Any],
    higher: Callable[..., Any],
) -> Any:
    return lower(requested * MAX_SCORE // divisor, MAX_SCORE)


def _on_ratio(shape: tuple[tuple[int, int], ...]) -> Rate:
    """RequestedToCapacityRatio: the utilization in percent, on a shape."""
    scores = np.array([_on_shape(shape, utilization) for utilization in range(101)], dtype=np.int64)
    return lambda *amounts: scores[_most_allocated(*amounts)]


def _on_shape(shape: tuple[tuple[int, int], ...], utilization: int) -> int:
    """The broken line through the points, constant outside; division truncates toward zero."""
    for place, (x2, y2) in enumerate(shape):
        if utilization <= x2:
            if place == 0:
                return y2
            x1, y1 = shape[place - 1]
            product = (y2 - y1) * (utilization - x1)
            return y1 + (product // (x2 - x1) if product >= 0 else -(-product // (x2 - x1)))
    return shape[-1][1]
