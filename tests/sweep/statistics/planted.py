"""Results whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kemu.lab.sweep.cells import DONE, Cell, CellRecord, CellRows

QUEUE = "schedulers[0].policy.queue"
VARY: Mapping[str, Sequence[Any]] = {QUEUE: ["fifo", "priority"]}
Draw = Callable[[str, int], float]


def record(
    variant: Mapping[str, Any], seed: int, lower_bounds: Sequence[str] = (), status: str = DONE, **metrics: float
) -> CellRecord:
    """Of a run with these metrics, ``__`` in place of the point."""
    run = {name.replace("__", "."): value for name, value in metrics.items()}
    kept = CellRows({**run, "lower_bounds": list(lower_bounds), "priorities": []})
    index = 0 if not variant else VARY[QUEUE].index(variant[QUEUE])
    return CellRecord(Cell(variant, index, seed), status, "", kept)


def waits(draw: Draw, seeds: int, lower_bounds: Mapping[str, Sequence[int]] | None = None) -> list[CellRecord]:
    """For each queue and seed, ``waiting.p99_s`` as drawn; a lower bound in these seeds."""
    return [
        record(
            {QUEUE: queue},
            seed,
            ["waiting.p99_s"] if lower_bounds is not None and seed in lower_bounds.get(queue, ()) else [],
            waiting__p99_s=draw(queue, seed),
        )
        for queue in VARY[QUEUE]
        for seed in range(seeds)
    ]


def paired(mean: Mapping[str, float], of_seed: float, of_run: float) -> Draw:
    """Normal around a mean for each queue, with a part that both queues of a seed share."""

    def draw(queue: str, seed: int) -> float:
        shared, own = random.Random(f"seed {seed}"), random.Random(f"run {queue} {seed}")
        return mean[queue] + shared.gauss(0, of_seed) + own.gauss(0, of_run)

    return draw
