"""The keys of ``matrix``: paths that vary, and named parameters.

:mod:`kemu.lab.scenario.loading.matrices` makes the variants of what they hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import INVALID, Report, kind_of

PARAMETERS = "parameters"

_RANGE = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)")
_EXAMPLE = "a list, or a range such as 1..10"
_MOST = 100_000
"""Numbers in a range."""


def numbers(text: str) -> range | None:
    """Those of ``1..10``, both ends included; None: it is no range, or has too many or none."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2])
    return range(first, last + 1) if 0 <= last - first < _MOST else None


@dataclass(frozen=True)
class _Values:
    """What a path takes: a list, or a range."""

    labelled: bool = False
    """A mapping from what people see to the value may stand there, too."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if isinstance(value, str) and _RANGE.fullmatch(value):
            if numbers(value) is None:
                first, _, last = value.partition("..")
                text = f"ends before it begins; write {last}..{first}" if int(last) < int(first) else "is too long"
                report.add(path, f"the range {value} {text}")
                return INVALID
            return value
        if not isinstance(value, list | dict) or (isinstance(value, dict) and not self.labelled):
            also = ", or a mapping of labels to values" if self.labelled else ""
            is_parameter = isinstance(value, dict) and "values" in value
            hint = f"a named parameter stands below {PARAMETERS}" if is_parameter else ""
            report.add(path, f"must be {_EXAMPLE}{also}, not {kind_of(value)}", hint)
            return INVALID
        if not value:
            report.add(path, "must not be empty: nothing would run")
            return INVALID
        if isinstance(value, list) and self.labelled and any(isinstance(each, list | dict) for each in value):
            report.add(path, "holds values that are no good labels; write a mapping of labels to values")
            return INVALID
        return value

    def schema(self) -> dict[str, Any]:
        options: list[dict[str, Any]] = [
            {"type": "array", "minItems": 1},
            {"type": "string", "pattern": f"^{_RANGE.pattern}$"},
        ]
        return {"anyOf": [*options, *([{"type": "object", "minProperties": 1}] if self.labelled else [])]}


@dataclass(frozen=True)
class _Parameter:
    """``{values: [1, 2], sets: [path]}``, or values that name their paths themselves."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        example = "write {values: [1, 2], sets: [workloads[0].arrivals.count]}"
        if not isinstance(value, dict):
            report.add(path, f"must be a mapping, not {kind_of(value)}; {example}")
            return INVALID
        strange = [key for key in value if key not in ("values", "sets")]
        for key in strange:
            report.add((*path, key), "is not a key that may stand here (there are: values, sets)", key=True)
        if "values" not in value:
            if not strange:
                report.add(path, f"values is missing; {example}")
            return INVALID
        values = _Values(labelled=True).check(value["values"], (*path, "values"), report)
        if values is INVALID or strange:
            return INVALID
        return value if self._says_where(value, path, report) else INVALID

    def _says_where(self, value: Mapping[str, Any], path: Path, report: Report) -> bool:
        values = value["values"]
        if "sets" not in value:
            if isinstance(values, dict) and all(isinstance(each, dict) and each for each in values.values()):
                return True
            report.add(path, "sets is missing: the paths that take the value; or give each label a mapping of paths")
            return False
        paths = value["sets"] if isinstance(value["sets"], list) else [value["sets"]]
        if not paths or not all(isinstance(each, str) for each in paths):
            report.add((*path, "sets"), "must be a path below spec, or a list of paths")
            return False
        return True

    def schema(self) -> dict[str, Any]:
        text = {"type": "string"}
        return {
            "type": "object",
            "properties": {
                "values": _Values(labelled=True).schema(),
                "sets": {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}]},
            },
            "required": ["values"],
            "additionalProperties": False,
        }


@dataclass(frozen=True)
class _Matrix:
    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            report.add(path, f"must be a mapping, not {kind_of(value)}")
            return INVALID
        for key, item in value.items():
            if key != PARAMETERS:
                _Values().check(item, (*path, key), report)
            elif not isinstance(item, dict):
                report.add((*path, key), f"must be a mapping, not {kind_of(item)}")
            else:
                for name, parameter in item.items():
                    if name in value:
                        text = f"{name} is a path of the matrix already; choose another name"
                        report.add((*path, key, name), text, key=True)
                    _Parameter().check(parameter, (*path, key, name), report)
        return value

    def schema(self) -> dict[str, Any]:
        parameters = {
            "type": "object",
            "additionalProperties": _Parameter().schema(),
            "description": "Named parameters: values, and the paths that take them.",
        }
        return {
            "type": "object",
            "properties": {PARAMETERS: parameters},
            "additionalProperties": _Values().schema(),
        }


MATRIX = _Matrix()
VALUES = _Values()
