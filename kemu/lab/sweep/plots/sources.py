"""What pictures read from the tables of results (:mod:`kemu.lab.sweep.results`)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError
from kemu.lab.sweep.plots.styles import NotShownError
from kemu.lab.sweep.results import folders, queries, tables
from kemu.lab.sweep.statistics import intervals, samples

Row = dict[str, Any]

_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)(.*)")


@dataclass(frozen=True)
class Axis:
    """A column of what varies."""

    name: str
    unit: str
    """Behind each of its numbers, as ``/s``."""
    is_number: bool


@dataclass(frozen=True)
class Variant:
    index: int
    name: str
    values: Mapping[str, Any]
    """By axis; of a numeric axis, numbers."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric of one variant over its seeds."""

    mean: float
    low: float
    high: float
    at_least: bool
    """In one run pods waited to its end, or it was broken off, and nothing says how high its figure would be."""
    count: int


class Source:
    """The results of a folder or a Parquet file."""

    def __init__(self, path: Path) -> None:
        found = folders.of(path)
        self._database = queries.Database(found)
        about = found.head.about
        self.name = str(about.get("name") or (path.stem if path.is_file() else path.name))
        self.metrics = [str(metric) for metric in about.get("metrics", ())]
        """Those that the experiment names, as ``waiting.max_s(priority=1000)``."""
        columns = list(found.head.axes.values())
        named = ", ".join(f'"{column}"' for column in columns)
        rows = self.rows(f"SELECT DISTINCT variant_index, variant{', ' if named else ''}{named} FROM runs ORDER BY 1")
        self.axes = [_axis(column, [row[column] for row in rows]) for column in columns]
        self.variants = [
            Variant(
                row["variant_index"],
                row["variant"] or self.name,
                {axis.name: _number(row[axis.name]) if axis.is_number else _text(row[axis.name]) for axis in self.axes},
            )
            for row in rows
        ]
        self.seeds = [row["seed"] for row in self.rows("SELECT DISTINCT seed FROM runs ORDER BY seed")]

    def rows(self, query: str) -> list[Row]:
        answer = self._database.ask(query)
        return [dict(zip(answer.names, row, strict=True)) for row in answer.rows]

    def columns(self) -> list[str]:
        """Columns of the table ``runs``."""
        return [row["column_name"] for row in self.rows("DESCRIBE runs")]

    def numeric(self, wanted: str = "", *, likely: Sequence[str] = ()) -> Axis:
        """The axis of that name, or the first one whose name has one of those parts, or the first. Raises
        NotShownError."""
        found = [axis for axis in self.axes if axis.is_number]
        if wanted:
            found = [axis for axis in found if axis.name == wanted]
            if not found:
                raise KemuError(f"--x {wanted}: no number of that name varies; there are {self._names() or 'none'}")
        if not found:
            raise NotShownError("no number varies")
        return next((axis for part in likely for axis in found if part in axis.name.lower()), found[0])

    def _names(self) -> str:
        return ", ".join(axis.name for axis in self.axes if axis.is_number)

    def others(self, axis: Axis, variant: Variant) -> str:
        """What makes the variant, but for that axis: names a line of a picture."""
        return ", ".join(f"{name}={_text(value)}" for name, value in variant.values.items() if name != axis.name)

    def texts(self, variant: Variant) -> list[str]:
        """Its value on each axis."""
        return [f"{_text(variant.values[axis.name])}{axis.unit}" for axis in self.axes]

    def values(self, variant: Variant) -> str:
        """Its name without those of the axes."""
        return ", ".join(self.texts(variant)) or variant.name

    def metric(self, name: str, priority: int | None = None) -> dict[int, Figure]:
        """By variant. Raises KemuError where there is no such metric."""
        known = tables.names((*tables.METRICS, *tables.COUNTERS))
        if name not in self.columns():
            raise KemuError(f"{name}: no metric of these results; there are {', '.join(known[:6])} …")
        table = "runs" if priority is None else "priorities"
        if priority is not None and name not in tables.names(tables.BY_PRIORITY):
            raise KemuError(f"{name}: is not told by priority; {', '.join(tables.names(tables.BY_PRIORITY))} are")
        condition = "" if priority is None else f" WHERE priority = {priority}"
        status = {
            (row["variant_index"], row["seed"]): row["status"]
            for row in self.rows("SELECT variant_index, seed, status FROM runs")
        }
        found: dict[int, dict[int, samples.Figure]] = {}
        query = (
            f'SELECT variant_index, seed, "{name}", lower_bounds, upper_bounds FROM {table}{condition} ORDER BY 1, 2'
        )
        for row in self.rows(query):
            index, seed = row["variant_index"], row["seed"]
            one = samples.of_row(row, name, status[index, seed])
            if one is not None:
                found.setdefault(index, {})[seed] = one
        return {index: figure(by_seed) for index, by_seed in found.items()}


def figure(by_seed: Mapping[int, samples.Figure]) -> Figure:
    """The mean with its 95 % interval, of at least one seed."""
    found = samples.mean(samples.Sample(by_seed, ()))
    assert found is not None
    figures = by_seed.values()
    least, most = [each.least for each in figures], [each.most for each in figures]
    # Nothing infinite can be drawn: the interval of a lower bound ends where that of what is known ends.
    ends = (found.high, math.fsum(most) / len(most), intervals.of_mean(least).high, found.estimate)
    high = next(end for end in ends if math.isfinite(end))
    low = found.low if math.isfinite(found.low) else found.estimate
    is_open = any(each.is_open for each in figures)
    return Figure(_short(found.estimate), _short(low), _short(high), is_open, len(figures))


def _short(value: float) -> float:
    """Nine digits: enough for any picture, and the same on machines that round the last one otherwise."""
    return float(f"{value:.9g}") if math.isfinite(value) else value


def _axis(name: str, values: Sequence[Any]) -> Axis:
    matches = [_NUMBER.fullmatch(_text(value)) for value in values]
    units = {match[2] for match in matches if match is not None}
    is_number = None not in matches and len(units) == 1 and len(set(values)) > 1 and not isinstance(values[0], bool)
    return Axis(name, units.pop() if is_number else "", is_number)


def _number(value: Json) -> float:
    match = _NUMBER.fullmatch(_text(value))
    assert match is not None
    return float(match[1])


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
