"""The key ``runtime``: where a scenario runs and, on Ray, which actors share a process.

:mod:`kemu.runtime.ray.driver.plans` makes a plan of what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import INVALID, Choice, Key, Record, Report, Whole, kind_of
from kemu.runtime import runtimes
from kemu.runtime.ray.driver import plans

RAY = "ray"

_DOCS = {
    "store": "The store.",
    "apiServers": "The API servers.",
    "schedulers": "The schedulers.",
    "extenders": "The extenders; by default as the controllers.",
    "controllers": "The controllers.",
    "kubelets": "The kubelets.",
}


@dataclass(frozen=True)
class _Share:
    """``own``, the most actors in a cell, or the name of a cell."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if isinstance(value, str):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            report.add(path, f"must be own, a number of actors, or the name of a cell, not {kind_of(value)}")
            return INVALID
        return Whole(1).check(value, path, report)

    def schema(self) -> dict[str, Any]:
        return {
            "anyOf": [Whole(1).schema(), {"type": "string", "pattern": f"^{plans.NAME_PATTERN}$"}],
            "examples": [plans.OWN],
        }


@dataclass(frozen=True)
class _Cells:
    """Who shares a cell, by kind of actor."""

    record: Record

    def check(self, value: Any, path: Path, report: Report) -> Any:
        checked = self.record.check(value, path, report)
        if checked is INVALID:
            return INVALID
        for kind, complaint in plans.complaints(checked):
            report.add((*path, kind) if kind in value else path, complaint)
        return checked

    def schema(self) -> dict[str, Any]:
        return self.record.schema()


CELLS = _Cells(Record({kind: Key(_Share(), _DOCS[kind]) for kind in plans.PATTERNS}))

_ON_RAY = Record(
    {
        RAY: Key(
            Record({"cells": Key(CELLS, "Who shares a process: own, the most actors in one, or the name of a cell.")}),
            "On Ray, with its settings.",
            required=True,
        )
    }
)


@dataclass(frozen=True)
class Runtime:
    """``sim``, ``wall``, ``ray``, or ``ray`` with its settings; checked, its name and how it places actors."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            name = _NAMES.check(value, path, report)
            return INVALID if name is INVALID else (name, {})
        checked = _ON_RAY.check(value, path, report)
        if checked is INVALID or not isinstance(checked.get(RAY), dict):
            return INVALID
        return RAY, checked[RAY].get("cells", {})

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [_NAMES.schema(), _ON_RAY.schema()]}


_NAMES = Choice(runtimes.NAMES)
