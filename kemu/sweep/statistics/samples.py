"""A metric of one variant, seed by seed, as exactly as the runs tell it.

A figure is exact, or a lower bound: a pod that still waits when the run ends has waited at least that long, so the
99th percentile is at least that high. It is missing where the run failed, or had no pods of that priority.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kemu.scenario import expectations
from kemu.sweep.cells import SATURATED, CellRecord, Json, Metric
from kemu.sweep.results import tables

_GROWING = (*expectations.BY_PRIORITY, "work")
"""The families of metrics that only grow while a run goes on, as counters do."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What it is at least and at most; ``most`` may be infinite."""

    least: float
    most: float

    @property
    def is_exact(self) -> bool:
        return self.least == self.most


@dataclass(frozen=True)
class Sample:
    figures: Mapping[int, Figure]
    """By seed."""
    missing: Sequence[int]
    """Seeds that were run, or tried, and have no figure."""


def of(records: Iterable[CellRecord], metric: Metric, variant: Mapping[str, Json]) -> Sample:
    """Of the runs whose variant has these values. Where several have, the mean over them, seed by seed."""
    found: dict[int, list[Figure | None]] = {}
    for record in records:
        if all(_same(record.cell.variant.get(path), value) for path, value in variant.items()):
            found.setdefault(record.cell.seed, []).append(figure(record, metric))
    # A failed run is missing beside the others of its seed: their mean would be about other variants.
    figures = {seed: _mean(each) for seed, each in found.items() if None not in each}
    return Sample({seed: figures[seed] for seed in sorted(figures)}, sorted(set(found) - set(figures)))


def figure(record: CellRecord, metric: Metric) -> Figure | None:
    """None: this run has no such figure."""
    if record.rows is None:
        return None
    row: Mapping[str, Json] = record.rows.run
    if metric.priority is not None:
        groups = (group for group in row["priorities"] if group["priority"] == metric.priority)
        row = next(groups, {})
    value = row.get(metric.name)
    if value is None:
        # A reason for which nothing was refused has no column in a run, but its figure is 0.
        if not metric.name.startswith(tables.REFUSED):
            return None
        value = 0
    is_bound = metric.name in row["lower_bounds"]
    if record.status == SATURATED:
        grows = metric.name.partition(".")[0] in _GROWING
        if not (grows or metric.name in expectations.COUNTERS or metric.name.startswith(tables.REFUSED)):
            return None
        is_bound = True
    return Figure(float(value), math.inf if is_bound else float(value))


def _mean(found: Sequence[Figure | None]) -> Figure:
    figures = [each for each in found if each is not None]
    least = math.fsum(each.least for each in figures) / len(figures)
    return Figure(least, least if all(each.is_exact for each in figures) else math.inf)


def _same(found: Json, wanted: Json) -> bool:
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return bool(found == wanted)
