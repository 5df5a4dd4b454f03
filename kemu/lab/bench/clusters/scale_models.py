"""What a run on Ray takes on a machine that is not at hand: a model of several measured runs, with its error.

Each figure is a sum of parts in proportion to raylets, cells, nodes, or renewals of leases, fitted by least squares to
the relative errors. Its error is that of predicting each run from the others: the typical and the largest one. Pods for
each second follow from the CPU time: a cell can use one core, and all cells together those that there are; the
heartbeats of the nodes come first.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Row = Mapping[str, Any]
"""What :func:`kemu.lab.bench.clusters.scales.ray_scale` measures, with its settings."""

PARTS: dict[str, tuple[str, ...]] = {
    "memory_mib": ("run", "raylets", "cells", "nodes"),
    "start_cpu_s": ("run", "cells", "nodes"),
    "api_us": ("run", "renewals"),
    "store_us": ("run", "renewals"),
    "scheduler_us": ("run", "renewals"),
    "kubelets_us": ("run", "cells", "renewals"),
    "driver_us": ("run", "renewals"),
}
"""The figures that are modelled, and what each is in proportion to; ``run``: what every run takes, of CPU time what
every pod does; ``renewals``: of leases, while one pod comes to run."""

RENEWAL_S = 10.0
"""How often a kubelet renews its lease."""


@dataclass(frozen=True)
class Model:
    """Model of one figure."""

    figure: str
    amounts: Mapping[str, float]
    """Amounts of each part."""
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
    if part == "run":
        return 1.0
    if part == "renewals":
        return float(row["nodes"] / RENEWAL_S * row["speed"] / row["pods_per_s"])
    return float(row[part])


def prediction(models: Mapping[str, Model], row: Row, cores: int) -> dict[str, Any]:
    """Prediction of a run with such ``nodes``, ``cells``, ``kubelets_per_cell``, ``raylets`` and ``api_servers`` on so
    many free cores. ``pods_per_s`` 0: the heartbeats alone are too much for what ``limit`` names."""
    sharing = {"api_us": row["api_servers"], "kubelets_us": -(-row["nodes"] // row["kubelets_per_cell"])}
    renewals_per_s = row["nodes"] / RENEWAL_S
    pods_per_s = {}
    all_for_pod = all_for_renewal = 0.0
    for figure, model in models.items():
        if figure.endswith("_us"):
            for_pod = sum(each * _size(row, part) for part, each in model.amounts.items() if part != "renewals")
            for_renewal = model.amounts["renewals"]
            left_us = sharing.get(figure, 1) * 1e6 - renewals_per_s * for_renewal
            pods_per_s[figure.removesuffix("_us")] = left_us / for_pod
            all_for_pod += for_pod
            all_for_renewal += for_renewal
    pods_per_s["cores"] = (cores * 1e6 - renewals_per_s * all_for_renewal) / all_for_pod
    limit = min(pods_per_s, key=lambda name: pods_per_s[name])
    return {
        "pods_per_s": max(0.0, pods_per_s[limit]),
        "limit": limit,
        "memory_mib": models["memory_mib"].of(row),
        "start_s": models["start_cpu_s"].of(row) / cores,
    }
