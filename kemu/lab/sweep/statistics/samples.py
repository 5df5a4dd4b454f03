"""A metric of one variant, seed by seed, as exactly as the runs tell it.

A figure may be known only as at least and at most. Pods that still wait when the run ends have waited at least that
long, so a percentile is at least what it is with these waits; and at most what it is if they wait for ever, which is
infinite if they are too many. A figure is missing where the run failed, or had no pods of that priority.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kemu.lab.scenario import expectations
from kemu.lab.sweep.cells import FAILED, SATURATED, CellRecord, Json, Metric
from kemu.lab.sweep.results import tables
from kemu.lab.sweep.statistics import intervals
from kemu.lab.sweep.statistics.intervals import Interval

_GROWING = (*expectations.BY_PRIORITY, "work")
"""The families of metrics that only grow while a run goes on, as counters do."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What it is at least and at most; ``most`` may be infinite."""

    least: float
    most: float

    @property
    def is_open(self) -> bool:
        """Only a lower bound."""
        return math.isinf(self.most)


@dataclass(frozen=True)
class Sample:
    figures: Mapping[int, Figure]
    """By seed."""
    missing: Sequence[int]
    """Seeds that were run, or tried, and have no figure."""


def of(records: Iterable[CellRecord], metric: Metric, variant: Mapping[str, Json]) -> Sample:
    """The sample of the runs whose variant has these values. Where several have, the mean over them, seed by seed."""
    found: dict[int, list[Figure | None]] = {}
    for record in records:
        if all(_same(record.cell.variant.get(path), value) for path, value in variant.items()):
            found.setdefault(record.cell.seed, []).append(figure(record, metric))
    # A failed run is missing beside the others of its seed: their mean would be about other variants.
    figures = {seed: _mean(each) for seed, each in found.items() if None not in each}
    return Sample({seed: figures[seed] for seed in sorted(figures)}, sorted(set(found) - set(figures)))


def mean(sample: Sample, confidence: float = 0.95) -> Interval | None:
    """Over its seeds, of what the figures are at least; None where there is none. The interval reaches up to where it
    would if they were what they are at most."""
    figures = list(sample.figures.values())
    if not figures:
        return None
    least = intervals.of_mean([each.least for each in figures], confidence)
    if any(each.is_open for each in figures):
        return replace(least, high=math.inf)
    return replace(least, high=intervals.of_mean([each.most for each in figures], confidence).high)


def figure(record: CellRecord, metric: Metric) -> Figure | None:
    """None: this run has no such figure."""
    if record.rows is None:
        return None
    row: Mapping[str, Json] = record.rows.run
    if metric.priority is not None:
        groups = (group for group in row["priorities"] if group["priority"] == metric.priority)
        row = next(groups, {})
    return of_row(row, metric.name, record.status)


def of_row(row: Mapping[str, Json], name: str, status: str) -> Figure | None:
    """``row``: of the table ``runs`` or ``priorities``; ``status``: of its run."""
    value = row.get(name)
    if value is None:
        # A reason for which nothing was refused has no column in a run, but its figure is 0.
        if not name.startswith(tables.REFUSED) or status == FAILED:
            return None
        value = 0
    most = float(value)
    if name in (row["lower_bounds"] or ()):
        most = (row.get("upper_bounds") or {}).get(name, math.inf)
    if status == SATURATED:
        grows = name.partition(".")[0] in _GROWING
        if not (grows or name in expectations.COUNTERS or name.startswith(tables.REFUSED)):
            return None
        most = math.inf
    return Figure(float(value), most)


def _mean(found: Sequence[Figure | None]) -> Figure:
    figures = [each for each in found if each is not None]
    least, most = (
        math.fsum(values) / len(figures) for values in zip(*((f.least, f.most) for f in figures), strict=True)
    )
    return Figure(least, most)


def _same(found: Json, wanted: Json) -> bool:
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return bool(found == wanted)
