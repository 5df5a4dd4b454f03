"""Fragmentation Gradient Descent: a pod goes where it raises the expected fragmentation of the GPUs least.

After Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
(USENIX ATC 2023). A *typical pod* stands for all pods of equal requests in the workload, with their share as its
weight. What a typical pod cannot use of the GPUs that a node has left is fragmented for it; the weighted sum over all
typical pods is the node's fragmentation, in milli of a card (:class:`Fragmentation`).

The sums are made in the order of the typical pods, in double precision: scores are whole numbers, and two placements
that change nothing must not differ by the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gpu_cards import Demand, GpuPolicy, Ints

from kemu.emulated.objects.pods import gpu_cards
from kemu.scheduler.framework import ArgumentError, Handle

Floats = npt.NDArray[np.float64]

MODEL = "nvidia.com/gpu.product"

SHARE = 0.95
"""The typical pods stand for at least this part of the workload."""


class Kind(NamedTuple):
    """Pods of equal requests."""

    cpu_milli: int
    milli: int
    cards: int
    pods: int
    """How many of the workload there are."""
    models: str = ""
    """The GPU models that are allowed, as in ``V100M16|V100M32``; empty: any."""


def typical(kinds: Iterable[Kind], share: float = SHARE) -> list[Kind]:
    """The most frequent kinds that together are at least this share of all pods; of equal ones the larger first."""
    ordered = sorted(
        kinds, key=lambda kind: (kind.pods, kind.cpu_milli, kind.milli, kind.cards, kind.models), reverse=True
    )
    wanted, kept = share * sum(kind.pods for kind in ordered), 0
    for number, kind in enumerate(ordered):
        if kept >= wanted:
            return ordered[:number]
        kept += kind.pods
    return ordered


class Classes(NamedTuple):
    """Expected milli of idle GPU by what keeps a typical pod from using them; one element for each node.

    The classes of the paper: ``neither`` CPU nor GPU is enough (Q1), only the CPU (Q2, with the parts of cards that are
    too small beside cards that are not), only the GPU (Q4); ``usable`` (Q3); for pods without GPU all that is idle,
    where the CPU is enough (``no_gpu``, XL) and where it is not (``no_gpu_no_cpu``, XR). Of a model that the pod does
    not allow, all that is idle (``other_model``, NA).
    """

    neither: Floats
    only_cpu: Floats
    usable: Floats
    only_gpu: Floats
    no_gpu: Floats
    no_gpu_no_cpu: Floats
    other_model: Floats

    @property
    def fragmented(self) -> Floats:
        with_cpu = ((self.neither + self.only_cpu) + self.only_gpu) + self.no_gpu
        return (with_cpu + self.no_gpu_no_cpu) + self.other_model


class Fragmentation:
    """Of single nodes, for one workload."""

    def __init__(self, kinds: Sequence[Kind], share: float = SHARE) -> None:
        pods = sum(kind.pods for kind in kinds)
        chosen = typical(kinds, share)
        kept = sum(kind.pods for kind in chosen)
        column = (len(chosen), 1)
        self._cpu = np.array([kind.cpu_milli for kind in chosen], dtype=np.int64).reshape(column)
        self._cards = np.array([kind.cards for kind in chosen], dtype=np.int64).reshape(column)
        weights = [(kind.pods / pods) / (kept / pods) for kind in chosen]
        self._weight = np.array(weights, dtype=np.float64).reshape(column)
        # Many typical pods want the same part of a card.
        self._millis, self._milli = np.unique([kind.milli for kind in chosen], return_inverse=True)
        self._wants_gpu = self._cards > 0
        allowed = [set(filter(None, kind.models.split("|"))) for kind in chosen]
        models = sorted(set().union(*allowed))
        self._models = {model: number for number, model in enumerate(models, start=1)}
        self._allows = np.array([[not named] + [not named or model in named for model in models] for named in allowed])
        """By typical pod and number of the model."""

    def model(self, name: str) -> int:
        """The number of a GPU model; 0 for those that no typical pod names."""
        return self._models.get(name, 0)

    def classes(self, cpu: Ints, left: Ints, models: Ints) -> Classes:
        """What the nodes have: ``cpu``, milli left; ``left``, milli left by node and card; ``models``, see `model`."""
        parts = self._parts(cpu, left, models)
        # accumulate adds one typical pod after the other; reduce may add in another order.
        return Classes(*(np.add.accumulate(part, axis=0)[-1] for part in parts))

    def of(self, cpu: Ints, left: Ints, models: Ints) -> Floats:
        """The fragmentation of each node, in milli."""
        return self.classes(cpu, left, models).fragmented

    def _parts(self, cpu: Ints, left: Ints, models: Ints) -> tuple[Floats, ...]:
        """What each typical pod (first axis) adds to each class on each node (second axis)."""
        fits = left >= self._millis[:, None, None]
        fitting = np.count_nonzero(fits, axis=2)[self._milli]
        too_small = np.where(fits, 0, left).sum(axis=2)[self._milli]
        idle = left.sum(axis=1)
        has_cpu = cpu >= self._cpu
        has_gpu = fitting >= self._cards
        all_idle = self._weight * idle
        allowed = self._allows[:, models]
        no_gpu = ~self._wants_gpu
        gpu = self._wants_gpu & allowed
        both = gpu & has_cpu & has_gpu
        return (
            np.where(gpu & ~has_cpu & ~has_gpu, all_idle, 0.0),
            np.where(both, self._weight * too_small, np.where(gpu & has_cpu, all_idle, 0.0)),
            np.where(both, self._weight * (idle - too_small), 0.0),
            np.where(gpu & ~has_cpu & has_gpu, all_idle, 0.0),
            np.where(no_gpu & has_cpu, all_idle, 0.0),
            np.where(no_gpu & ~has_cpu, all_idle, 0.0),
            np.where(self._wants_gpu & ~allowed, all_idle, 0.0),
        )


class FGD(GpuPolicy):
    """The score is higher the less fragmentation a placement adds; of the node's cards, the one that adds least.

    Argument ``workload``: a list of ``{cpuMilli, gpuMilli, gpus, pods}``, the requests that pods make and how many do;
    with ``models`` (``V100M16|V100M32``) where they allow some GPU models only. Those of nodes are in their label
    ``nvidia.com/gpu.product``.
    """

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.fragmentation = Fragmentation(_kinds(args.get("workload")))
        self._now: Floats = np.zeros(0)
        """The fragmentation of each node, as it was at this version of its row."""
        self._version: Ints = np.zeros(0, dtype=np.int64)
        self._models: Ints = np.zeros(0, dtype=np.int64)
        self._labelled: tuple[int, int] | None = None
        """The nodes for which the models are known."""

    def rate(self, demand: Demand, rows: Ints) -> Ints:
        if not len(rows):
            return np.zeros(0, dtype=np.int64)
        table = self.table
        cpu, left, models = table.cpu_left()[rows], table.left[rows], self._current_models()[rows]
        places, _cards, after = _placements(demand, left)
        rated = _scores(
            self._current(rows)[places],
            self.fragmentation.of(cpu[places] - demand.cpu_milli, after, models[places]),
        )
        scores = np.zeros(len(rows), dtype=np.int64)
        np.maximum.at(scores, places, rated)
        return scores

    def card_for_part(self, demand: Demand, row: int, fitting: list[int]) -> int:
        """The first of the cards with the highest score."""
        left = self.table.left[[row]]
        # Reserve comes when the pod is assumed: its CPU is taken already, its card is not.
        cpu = self.table.cpu_left()[[row]] + demand.cpu_milli
        models = self._current_models()[[row]]
        places, cards, after = _placements(demand, left)
        before = self.fragmentation.of(cpu, left, models)
        then = self.fragmentation.of(cpu[places] - demand.cpu_milli, after, models[places])
        return int(cards[_scores(before[places], then).argmax()])

    def _current(self, rows: Ints) -> Floats:
        """The fragmentation of these nodes as they are; computed again for those that have changed."""
        table = self.table
        if len(self._now) != len(table.version):
            self._now = np.zeros(len(table.version))
            self._version = np.zeros(len(table.version), dtype=np.int64)
        stale = rows[table.version[rows] != self._version[rows]]
        if len(stale):
            models = self._current_models()[stale]
            self._now[stale] = self.fragmentation.of(table.cpu_left()[stale], table.left[stale], models)
            self._version[stale] = table.version[stale]
        found: Floats = self._now[rows]
        return found

    def _current_models(self) -> Ints:
        """By row."""
        cluster = self.handle.cluster
        now = (cluster.layout, cluster.node_changes.end)
        if now != self._labelled:
            labels = (node.labels.get(MODEL, "") for node in cluster.rows)
            self._models = np.array([self.fragmentation.model(label) for label in labels], dtype=np.int64)
            self._labelled = now
        return self._models


def _placements(demand: Demand, left: Ints) -> tuple[Ints, Ints, Ints]:
    """Every way to place a pod on these nodes: the node (its place in ``left``), the card, and what is left after it.

    A pod that wants a part of a card may take any that fits; for others there is one way, and its card is the first.
    """
    if demand.cards == 1 and demand.milli < gpu_cards.WHOLE:
        places, cards = (left >= demand.milli).nonzero()
        after = left[places]
        after[np.arange(len(places)), cards] -= demand.milli
        return places, cards, after
    places = np.arange(len(left))
    if not demand.cards:
        return places, np.zeros_like(places), left
    fits = left >= demand.milli
    taken = fits & (fits.cumsum(axis=1) <= demand.cards)
    return places, taken.argmax(axis=1), left - taken * demand.milli


def _scores(before: Floats, after: Floats) -> Ints:
    """Whole scores: 50 where nothing changes, less where fragmentation grows."""
    gained = (before - after) / 1000
    return np.array([int(1 / (1 + math.exp(-gain)) * 100) for gain in gained.tolist()], dtype=np.int64)


def _kinds(workload: Any) -> list[Kind]:
    if not isinstance(workload, list) or not workload:
        raise ArgumentError("workload", "must be a list of requests and how many pods make them")
    kinds = []
    for number, entry in enumerate(workload):
        found = [
            entry.get(key) if isinstance(entry, Mapping) else None for key in ("cpuMilli", "gpuMilli", "gpus", "pods")
        ]
        whole = [amount for amount in found if isinstance(amount, int) and amount >= 0]
        if len(whole) < len(found):
            raise ArgumentError(f"workload[{number}]", "needs cpuMilli, gpuMilli, gpus and pods, whole numbers")
        models = entry.get("models", "")
        if not isinstance(models, str):
            raise ArgumentError(f"workload[{number}].models", "must be names with | between them")
        cpu_milli, milli, cards, pods = whole
        kinds.append(Kind(cpu_milli, milli, cards, pods, models))
    return kinds
