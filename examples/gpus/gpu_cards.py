"""GPU sharing by card, as a base class of score plugins: each policy says which node is best, and which of its cards.

NodeResourcesFit adds up what a node has, so to it two halves of two cards are as good as a whole one. A
:class:`GpuPolicy` counts by card: its filter passes the nodes where enough cards have enough left, Reserve chooses
among them, and Bind writes their numbers into the pod (annotation ``kemu.dev/gpu-card``) in the request that binds it.
All of the state follows from the pods of the API server, so a restarted scheduler, or a second one, knows who is on
which card; only choices whose binding is under way are this scheduler's own.

The policies are in ``gpu_policies`` and ``gpu_fragmentation``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kemu.emulated.objects.pods import gpu_cards
from kemu.scheduler.framework import (
    SKIP,
    BindPlugin,
    Cluster,
    Cycle,
    Event,
    FilterPlugin,
    Handle,
    Hint,
    NodeInfo,
    PodInfo,
    ReservePlugin,
    Scope,
    ScorePlugin,
    Skip,
    Status,
    unschedulable,
)

Ints = npt.NDArray[np.int64]

CPU = "cpu"
NO_CARD = "node(s) had no GPU card with enough left"


class Demand(NamedTuple):
    """What a pod wants that decides about nodes and cards."""

    cpu_milli: int
    cards: int
    milli: int
    """Of each card."""

    @property
    def total(self) -> int:
        return self.cards * self.milli


class CardTable:
    """What is left on every card of every node: one row for each node, as in the scheduler's cache.

    Brought up to date from the cache's log of changed rows; only those are counted again.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        names = cluster.names
        names.keep((gpu_cards.GPU, gpu_cards.GPU_MILLI))
        self._cpu, self._gpu, self._milli = (names.of(one) for one in (CPU, gpu_cards.GPU, gpu_cards.GPU_MILLI))
        self.left: Ints = np.zeros((0, 1), dtype=np.int64)
        """By row and card, in milli; 0 where the node has no such card."""
        self.cards: Ints = np.zeros(0, dtype=np.int64)
        """How many cards the node has."""
        self.classes: Ints = np.zeros(0, dtype=np.int64)
        """What kinds of GPU pods are on the node: bit 0 for parts of a card, bit n for n whole cards."""
        self.version: Ints = np.zeros(0, dtype=np.int64)
        """Changes when anything about the node does, its CPU included."""
        self._changes = 0
        self._seen: tuple[int, int, int] | None = None
        self._reserved: dict[str, tuple[int, ...]] = {}
        """Cards by UID, of pods whose binding the watch has not shown yet."""
        self._bound: dict[str, tuple[int, ...]] = {}
        """Cards by UID, as the annotations of bound pods say."""
        self._demands: dict[tuple[tuple[int, int], ...], Demand] = {}
        """By requests."""

    def demand(self, pod: PodInfo) -> Demand:
        found = self._demands.get(pod.requests)
        if found is None:
            amounts = dict(pod.requests)
            named = {gpu_cards.GPU: amounts.get(self._gpu, 0), gpu_cards.GPU_MILLI: amounts.get(self._milli, 0)}
            found = self._demands[pod.requests] = Demand(amounts.get(self._cpu, 0), *gpu_cards.wanted(named))
        return found

    def cpu_left(self) -> Ints:
        """By row, in milli."""
        columns, nodes = self._cluster.resources(), len(self._cluster)
        left: Ints = columns.allocatable[self._cpu, :nodes] - columns.requested[self._cpu, :nodes]
        return left

    def refresh(self) -> None:
        cluster = self._cluster
        cluster.settle()
        now = (cluster.layout, cluster.node_changes.end, cluster.pod_changes.end)
        if now == self._seen:
            return
        rows: list[int] | None = None
        if self._seen is not None and self._seen[:2] == now[:2] and len(self.cards) == len(cluster):
            rows = cluster.pod_changes.since(self._seen[2])
        self._seen = now
        if rows is None:
            rows = self._start_over()
        for row in rows:
            self._count(row)

    def reserve(self, pod: PodInfo, node: NodeInfo, cards: tuple[int, ...]) -> None:
        self._reserved[pod.uid] = cards
        self._count(node.row)

    def unreserve(self, uid: str) -> None:
        self._reserved.pop(uid, None)

    def left_on(self, node: NodeInfo) -> list[int]:
        """What its cards have left, counted from the pods of this NodeInfo, which may be a simulation's copy."""
        left = [gpu_cards.WHOLE] * (node.allocatable[self._milli] // gpu_cards.WHOLE)
        for pod in node.pods.values():
            milli = self.demand(pod).milli
            for card in self.cards_of(pod) if milli else ():
                if card < len(left):
                    left[card] -= milli
        return left

    def cards_of(self, pod: PodInfo) -> tuple[int, ...]:
        """Of a pod on a node. A bound pod without a proper annotation counts on no card, only in the node's sums."""
        cards = self._bound.get(pod.uid)
        if cards is not None:
            return cards
        message = pod.pod
        if not message.spec.nodeName:
            return self._reserved.get(pod.uid, ())
        try:
            cards = gpu_cards.numbers(message.metadata.annotations.get(gpu_cards.ANNOTATION, ""))
        except ValueError:
            cards = ()
        self._bound[pod.uid] = cards
        self._reserved.pop(pod.uid, None)
        if len(self._bound) > 2 * len(self._cluster.pods) + 64:
            self._bound = {uid: held for uid, held in self._bound.items() if uid in self._cluster.pods}
        return cards

    def _start_over(self) -> list[int]:
        cluster = self._cluster
        nodes = cluster.rows
        counts = [node.allocatable[self._milli] // gpu_cards.WHOLE for node in nodes]
        self.cards = np.array(counts, dtype=np.int64)
        self.left = np.zeros((len(nodes), max(1, max(counts, default=0))), dtype=np.int64)
        self.classes = np.zeros(len(nodes), dtype=np.int64)
        self.version = np.zeros(len(nodes), dtype=np.int64)
        return list(range(len(nodes)))

    def _count(self, row: int) -> None:
        node = self._cluster.rows[row]
        left = self.left_on(node)
        self.left[row, : len(left)] = left
        kinds = 0
        for pod in node.pods.values():
            demand = self.demand(pod)
            if demand.cards:
                kinds |= 1 if demand.milli < gpu_cards.WHOLE else 1 << demand.cards
        self.classes[row] = kinds
        self._changes += 1
        self.version[row] = self._changes


class GpuPolicy(FilterPlugin, ScorePlugin, ReservePlugin, BindPlugin):
    """A policy overrides :meth:`rate`, and :meth:`card_for_part` if the card of a shared GPU is not the fullest one."""

    scope = Scope.NODE
    """The pods of a node decide which of its cards are taken, reserved ones included."""

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.table = CardTable(handle.cluster)

    def rate(self, demand: Demand, rows: Ints) -> Ints:
        """Whole scores from 0 to 100 of these nodes; what it says of nodes that cannot take the pod is ignored."""
        raise NotImplementedError

    def card_for_part(self, demand: Demand, row: int, fitting: list[int]) -> int:
        """The card for a pod that wants a part of one: of those that fit, the one with the least left."""
        left = self.table.left[row]
        return min(fitting, key=lambda card: (left[card], card))

    # Filter ----------------------------------------------------------------------------------------------------------

    def prepare(self, cycle: Cycle) -> Any:
        demand = self.table.demand(cycle.pod)
        return demand if demand.cards else SKIP

    def verdict(self, state: Demand, node: NodeInfo) -> int:
        self.table.refresh()
        rows = self.handle.cluster.rows
        if 0 <= node.row < len(rows) and rows[node.row] is node:
            left = self.table.left[node.row].tolist()
        else:
            left = self.table.left_on(node)
        return int(sum([one >= state.milli for one in left]) < state.cards)

    def verdicts(self, state: Demand, cluster: Cluster) -> Ints | None:
        self.table.refresh()
        fitting = np.count_nonzero(self.table.left >= state.milli, axis=1)
        column: Ints = (fitting < state.cards).astype(np.int64)
        return column

    def explain(self, state: Demand, verdict: int) -> Status:
        return unschedulable(NO_CARD)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [(event, None) for event in (Event.ASSIGNED_POD_DELETE, Event.NODE_ADD, Event.NODE_ALLOCATABLE)]

    # Score -----------------------------------------------------------------------------------------------------------

    def prepare_scores(self, cycle: Cycle, rows: Ints) -> Any:
        return self.table.demand(cycle.pod)

    def score(self, state: Demand, node: NodeInfo) -> int:
        return int(self.scores(state, self.handle.cluster, np.array([node.row]))[0])

    def scores(self, state: Demand, cluster: Cluster, rows: Ints | None) -> Ints:
        self.table.refresh()
        return self.rate(state, np.arange(len(cluster)) if rows is None else rows)

    # Reserve and Bind ------------------------------------------------------------------------------------------------

    def reserve(self, cycle: Cycle, node: str) -> Status | None:
        demand = self.table.demand(cycle.pod)
        if not demand.cards:
            return None
        self.table.refresh()
        info = self.handle.cluster.nodes[node]
        fitting = [card for card, left in enumerate(self.table.left[info.row].tolist()) if left >= demand.milli]
        if len(fitting) < demand.cards:
            return unschedulable(NO_CARD)
        if demand.milli < gpu_cards.WHOLE and demand.cards == 1:
            fitting = [self.card_for_part(demand, info.row, fitting)]
        self.table.reserve(cycle.pod, info, tuple(fitting[: demand.cards]))
        return None

    def unreserve(self, cycle: Cycle, node: str) -> None:
        self.table.unreserve(cycle.pod.uid)

    async def bind(self, cycle: Cycle, node: str) -> Status | Skip | None:
        cards = self.table.cards_of(cycle.pod)
        if not cards:
            return SKIP
        pod, api = cycle.pod, self.handle.api
        assert api is not None, "nothing can be bound without an API"
        annotations = {gpu_cards.ANNOTATION: gpu_cards.text_of(cards)}
        await api.bind(pod.namespace, pod.name, pod.uid, node, annotations)
        return None
