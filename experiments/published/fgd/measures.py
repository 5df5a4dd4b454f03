"""The published figures, from where the pods of a run went.

A sample is taken after every arrival: how much was asked for so far, how much of the GPUs is in use, and which part of
the idle GPUs is fragmented. A figure at 80 % is the mean of the samples whose arrived load rounds to 80 % of all GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from gpu_fragmentation import Classes, Fragmentation

from experiments.published.fgd.inputs import Inputs
from experiments.published.fgd.runs import Placement


class Figures(NamedTuple):
    """In percent."""

    allocated_at_100: float
    allocated_at_130: float
    fragmented_at_80: float


@dataclass(frozen=True, slots=True)
class Samples:
    """One of each after every arrival, in percent of all GPUs; the fragmentation in percent of what is idle."""

    arrived: list[int]
    allocated: list[float]
    fragmented: list[float]

    def figures(self) -> Figures:
        return Figures(
            round(self._column(self.allocated, 100), 2),
            round(self._column(self.allocated, 130), 2),
            self._column(self.fragmented, 80),
        )

    def _column(self, values: Sequence[float], percent: int) -> float:
        """The mean of the samples at this arrived load; where there is none, of those beside it."""
        for around in (0, 1):
            chosen = [
                value
                for arrived, value in zip(self.arrived, values, strict=True)
                if percent - around <= arrived <= percent + around
            ]
            if chosen:
                return float(np.mean(chosen))
        raise ValueError(f"no sample at {percent} % of arrived load: too few pods have arrived")


def samples(placements: Sequence[Placement], seed: int, inputs: Inputs) -> Samples:
    order = inputs.node_orders[seed]
    row_of = {name: row for row, name in enumerate(order)}
    nodes = [inputs.nodes[name] for name in order]
    most = max(node.cards for node in nodes)
    cpu = np.array([node.cpu_milli for node in nodes], dtype=np.int64)
    left = np.array([[1000] * node.cards + [0] * (most - node.cards) for node in nodes], dtype=np.int64)
    capacity = sum(node.cards for node in nodes)
    fragmentation = Fragmentation(inputs.kinds())
    models = np.array([fragmentation.model(node.model) for node in nodes], dtype=np.int64)
    by_node = np.array(fragmentation.classes(cpu, left, models))
    asked = used = 0
    found = Samples([], [], [])
    for placement in placements:
        pod = inputs.pod(placement.pod)
        asked += pod.cards * pod.milli
        if placement.node:
            row = row_of[placement.node]
            cpu[row] -= pod.cpu_milli
            left[row, list(placement.cards)] -= pod.milli
            used += pod.milli * len(placement.cards)
            if len(placement.cards) != pod.cards or cpu[row] < 0 or left[row].min() < 0:
                raise ValueError(f"{placement.pod} does not fit on {placement.node}, cards {placement.cards}")
            by_node[:, row] = np.array(fragmentation.classes(cpu[[row]], left[[row]], models[[row]]))[:, 0]
        classes = Classes(*by_node.sum(axis=1))
        found.arrived.append(round(asked / capacity / 10))
        found.allocated.append(round(used / capacity / 10, 2))
        found.fragmented.append(round(float(100 * classes.fragmented / sum(classes)), 2))
    return found
