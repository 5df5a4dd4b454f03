"""What a run on Ray takes on a machine that nobody has at hand: a model of several measured runs, with its error.

Each figure is a sum of parts in proportion to raylets, cells, nodes or pods, fitted by least squares to the relative
errors. Its error is that of predicting each run from the others: the typical and the largest one. Pods for each second
follow from the CPU time: a cell can use one core, and all cells together those that there are.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Row = Mapping[str, Any]
"""What :func:`kemu.bench.scales.ray_scale` measures, with its settings."""

PARTS: dict[str, tuple[str, ...]] = {
    "memory_mib": ("run", "raylets", "cells", "nodes"),
    "start_cpu_s": ("run", "cells", "nodes"),
    "api_us": ("run", "nodes"),
    "store_us": ("run", "nodes"),
    "scheduler_us": ("run", "nodes"),
    "kubelets_us": ("run", "nodes"),
    "driver_us": ("run", "nodes"),
}
"""The figures that are modelled, and what each is in proportion to; ``run``: what every run takes."""

ALONE = ("api_us", "store_us", "scheduler_us", "driver_us")
"""CPU time of one process each, for a pod."""


@dataclass(frozen=True)
class Model:
    """Of one figure."""

    figure: str
    amounts: Mapping[str, float]
    """Of each part."""
    typical_error: float
    largest_error: float
    """As shares of what was measured."""

    def of(self, row: Row) -> float:
        return sum(amount * _size(row, part) for part, amount in self.amounts.items())


def fit(rows: Sequence[Row]) -> dict[str, Model]:
    """By figure."""
    return {figure: _fitted(figure, parts, rows) for figure, parts in PARTS.items()}


def _fitted(figure: str, parts: Sequence[str], rows: Sequence[Row]) -> Model:
    errors = []
    for left_out in rows if len(rows) > len(parts) else ():
        amounts = _amounts(figure, parts, [row for row in rows if row is not left_out])
        predicted = sum(amount * _size(left_out, part) for part, amount in amounts.items())
        errors.append(abs(predicted / left_out[figure] - 1))
    amounts = _amounts(figure, parts, rows)
    return Model(figure, amounts, statistics.median(errors or [float("nan")]), max(errors or [float("nan")]))


def _amounts(figure: str, parts: Sequence[str], rows: Sequence[Row]) -> dict[str, float]:
    """None is negative: a part of which less would be better than nothing is left out."""
    left = list(parts)
    while left:
        sizes = np.array([[_size(row, part) / row[figure] for part in left] for row in rows])
        found = np.linalg.lstsq(sizes, np.ones(len(rows)), rcond=None)[0]
        if min(found) >= 0:
            return {**dict.fromkeys(parts, 0.0), **dict(zip(left, map(float, found), strict=True))}
        del left[int(np.argmin(found))]
    return dict.fromkeys(parts, 0.0)


def _size(row: Row, part: str) -> float:
    return 1.0 if part == "run" else float(row[part])


def prediction(models: Mapping[str, Model], row: Row, cores: int) -> dict[str, Any]:
    """Of a run with such ``nodes``, ``cells``, ``raylets`` and ``api_servers`` on so many free cores."""
    for_pod = {figure: model.of(row) for figure, model in models.items() if figure.endswith("_us")}
    shared = {**for_pod, "api_us": for_pod["api_us"] / row.get("api_servers", 1)}
    kubelet_cells = max(1, -(-row["nodes"] // row.get("kubelets_per_cell", 500)))
    shared["kubelets_us"] /= kubelet_cells
    busiest = max(shared, key=lambda figure: shared[figure])
    by_cell, by_cores = 1e6 / shared[busiest], cores * 1e6 / sum(for_pod.values())
    limit = busiest.removesuffix("_us") if by_cell < by_cores else "cores"
    return {
        "pods_per_s": min(by_cell, by_cores),
        "limit": limit,
        "memory_mib": models["memory_mib"].of(row),
        "start_s": models["start_cpu_s"].of(row) / cores,
    }
