"""Distributions as they stand in a scenario: their notation and what may be wrong with them.

Drawing from them is the business of :mod:`kemu.runtime.distributions`, which takes the plain data made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.scenario.documents import Path
from kemu.scenario.shapes import INVALID, Key, ListOf, Number, Record, Report, Shape

Plain = float | dict[str, Any]
"""A value or ``{"uniform": {"min": 1.0, "max": 2.0}}``, in the unit of its owner."""


@dataclass(frozen=True)
class Distribution:
    """A plain value or one distribution; ``scalar`` is the shape of every value in it (its check gives a float)."""

    scalar: Shape

    def _record(self) -> Record:
        scalar = self.scalar

        def of(*names: str, optional: tuple[str, ...] = ()) -> Record:
            keys = {name: Key(scalar, _DOCS[name], required=True) for name in names}
            return Record(keys | {name: Key(scalar, _DOCS[name]) for name in optional})

        weighted = Record(
            {"value": Key(scalar, "The value."), "weight": Key(Number(positive=True), "Its share; 1 by default.")}
        )
        return Record(
            choices={
                "uniform": Key(of("min", "max"), "Every value between min and max is as likely as any other."),
                "exponential": Key(of("mean"), "Exponential, as the gaps between independent events are."),
                "normal": Key(of("mean", "sd", optional=("min",)), "Normal; values below min (0) become min."),
                "lognormal": Key(of("median", "p99"), "Log-normal, by its median and its 99th percentile."),
                "choice": Key(ListOf(weighted, 1), "One of some values, by weight."),
            },
            noun="distribution",
        )

    def check(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            return self.scalar.check(value, path, report)
        before = len(report.problems)
        checked = self._record().check(value, path, report)
        if checked is INVALID or len(report.problems) > before:
            return INVALID
        complaint = _complaint(checked)
        if complaint:
            (name,) = checked
            report.add((*path, name), complaint)
            return INVALID
        return checked

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.scalar.schema(), self._record().schema()]}


_DOCS = {
    "min": "The least value.",
    "max": "The greatest value.",
    "mean": "The mean.",
    "sd": "The standard deviation.",
    "median": "Half of the values are below it.",
    "p99": "99 of 100 values are below it.",
}


def _complaint(distribution: Mapping[str, Any]) -> str:
    (name, parameters), *_ = distribution.items()
    if name == "uniform" and parameters["min"] > parameters["max"]:
        return "min is more than max"
    if name == "exponential" and parameters["mean"] <= 0:
        return "the mean must be more than 0"
    if name == "lognormal" and not 0 < parameters["median"] < parameters["p99"]:
        return "the median must be more than 0, and p99 more than the median"
    if name == "choice" and any("value" not in option for option in parameters):
        return "every option needs a value"
    return ""
