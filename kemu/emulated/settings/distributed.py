"""Values that may be distributions: their notation and what may be wrong with them.

Drawing from them is the business of :mod:`kemu.runtime.distributions`, which takes the plain data made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Path, follow
from kemu.emulated.settings.shapes import INVALID, SECONDS, Key, ListOf, Named, Number, Record, Report, Shape
from kemu.runtime import distributions


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
            {
                "value": Key(scalar, "The value.", required=True),
                "weight": Key(Number(positive=True), "Its share; 1 by default."),
            }
        )
        return Record(
            choices={
                "uniform": Key(of("min", "max"), "Every value between min and max is as likely as any other."),
                "exponential": Key(of("mean"), "Exponential, as the gaps between independent events are."),
                "normal": Key(of("mean", "sd", optional=("min",)), "Normal; what falls below min (0) is drawn again."),
                "lognormal": Key(of("median", "p99"), "Log-normal, by its median and its 99th percentile."),
                "choice": Key(ListOf(weighted, 1), "One of some values, by weight."),
            },
            noun="distribution",
        )

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            return self.scalar.check(value, path, report)
        before = len(report.problems)
        checked = self._record().check(value, path, report)
        if checked is INVALID or len(report.problems) > before:
            return INVALID
        try:
            distributions.parse(checked)
        except distributions.DistributionError as error:
            report.add((*path, *follow(value, error.path)[0]), error.message)
            return INVALID
        return checked

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.scalar.schema(), self._record().schema()]}


TIME = Named("time", Distribution(SECONDS))
"""How long something takes; checked, it is in seconds."""


@dataclass(frozen=True)
class Cost:
    """A time that is the same for all, or one that grows with the work: ``{base: 1ms, perNode: 2us}``."""

    plain: Shape
    parts: Record

    def check(self, value: Json, path: Path, report: Report) -> Any:
        in_parts = isinstance(value, dict) and any(key in self.parts.keys for key in value)
        return (self.parts if in_parts else self.plain).check(value, path, report)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.plain.schema(), self.parts.schema()]}


_DOCS = {
    "min": "The least value.",
    "max": "The greatest value.",
    "mean": "The mean.",
    "sd": "The standard deviation.",
    "median": "Half of the values are below it.",
    "p99": "99 of 100 values are below it.",
}
