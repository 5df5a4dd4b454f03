"""The keys of the experiment format: the one table for the loader, for editors and for ``kemu scenarios validate``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import (
    DEFINITIONS,
    INVALID,
    NAME,
    POSITIVE_SECONDS,
    Choice,
    Free,
    Key,
    ListOf,
    Number,
    Record,
    Report,
    Switch,
    Text,
    Whole,
    kind_of,
)
from kemu.lab.scenario.format import schema
from kemu.lab.scenario.format.keys import matrix_keys
from kemu.lab.scenario.loading.objects import foreign_files
from kemu.lab.sweep.experiments import values

KIND = foreign_files.EXPERIMENT
PARAMETERS = matrix_keys.PARAMETERS
MOST_SEEDS = 100_000

_SERIES = Record(
    {
        "from": Key(Free(mapping=False), "The first value: a number, perhaps with a unit (0.5/s).", required=True),
        "to": Key(Free(mapping=False), "The last value, in the same unit.", required=True),
        "steps": Key(Whole(2, values.MOST_STEPS), "How many values, both ends included.", required=True),
        "log": Key(Switch(), "Each value is the same multiple of the one before it; without, as far from it."),
        "whole": Key(Switch(), "Rounded to whole numbers, each once."),
    }
)


@dataclass(frozen=True)
class _Values:
    """What a path takes: a list, a range ``1..10``, or a series ``{from, to, steps, log}``; given back as a list."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            checked = matrix_keys.VALUES.check(value, path, report)
            if isinstance(checked, str):
                return list(matrix_keys.numbers(checked) or ())
            return checked
        found = len(report.problems)
        series = _SERIES.check(value, path, report)
        for end in ("from", "to"):
            if isinstance(series, dict) and isinstance(series.get(end, 0), bool | list | dict):
                report.add((*path, end), f"must be a number, not {kind_of(series[end])}")
        if series is INVALID or len(report.problems) > found:
            return INVALID
        try:
            return values.series(series)
        except ValueError as error:
            report.add(path, str(error))
            return INVALID

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [*matrix_keys.VALUES.schema()["anyOf"], _SERIES.schema()]}


@dataclass(frozen=True)
class _Vary:
    """``{path: values, parameters: {name: {values, sets}}}``; of a path the list of its values is given back."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            report.add(path, f"must be a mapping of paths to values, not {kind_of(value)}")
            return INVALID
        paths = {key: each for key, each in value.items() if key != PARAMETERS}
        found = {key: _Values().check(each, (*path, key), report) for key, each in paths.items()}
        checked = {key: each for key, each in found.items() if each is not INVALID}
        if PARAMETERS in value:
            matrix_keys.MATRIX.check({PARAMETERS: value[PARAMETERS], **{key: [0] for key in paths}}, path, report)
            checked[PARAMETERS] = value[PARAMETERS]
        return checked

    def schema(self) -> dict[str, Any]:
        return {**matrix_keys.MATRIX.schema(), "additionalProperties": _Values().schema()}


@dataclass(frozen=True)
class _Seeds:
    """How many, from 1 on; or which: a list, or a range. Given back as a tuple."""

    def check(self, value: Json, path: Path, report: Report) -> Json:
        if isinstance(value, str) and (numbers := matrix_keys.numbers(value)) is not None:
            value = list(numbers)
        if not isinstance(value, list):
            count = Whole(1, MOST_SEEDS).check(value, path, report)
            return INVALID if count is INVALID else tuple(range(1, count + 1))
        found = len(report.problems)
        checked = ListOf(Whole(0), 1).check(value, path, report)
        for index, seed in enumerate(checked):
            if seed in checked[:index] and seed is not INVALID:
                report.add((*path, index), f"the seed {seed} stands twice: the same run would count twice")
        return tuple(checked) if len(report.problems) == found else INVALID

    def schema(self) -> dict[str, Any]:
        return {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MOST_SEEDS},
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1, "uniqueItems": True},
                {"type": "string", "pattern": "^[0-9]+\\.\\.[0-9]+$"},
            ]
        }


@dataclass(frozen=True)
class _ScenarioOrName:
    """A path, the name of a shipped scenario, or a scenario as it stands in a file of its own, or only its spec."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if isinstance(value, dict):
            return value  # the loader of scenarios looks at it
        return Text(what="a path, the name of a shipped scenario, or a scenario").check(value, path, report)

    def schema(self) -> dict[str, Any]:
        # Without what it refers to elsewhere; an inline scenario is checked by kemu.
        return {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}]}


_METRIC = Record(
    {
        "metric": Key(Text(), "waiting.p99_s, utilisation.cpu, a counter, …", required=True),
        "priority": Key(Whole(), "Of the pods of this priority only."),
    }
)


@dataclass(frozen=True)
class _Metrics:
    """Names, or ``{metric, priority}``."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, list):
            report.add(path, f"must be a list of metrics, not {kind_of(value)}")
            return INVALID
        return [
            (Text() if not isinstance(item, dict) else _METRIC).check(item, (*path, index), report)
            for index, item in enumerate(value)
        ]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"anyOf": [{"type": "string"}, _METRIC.schema()]}}


CLAIM = Record(
    {
        "id": Key(NAME, "Its name.", required=True),
        "says": Key(
            Text(), "Two terms and a comparison: waiting.p99_s(queue=fifo) > 3 * waiting.p99_s(queue=priority).",
            required=True,
        ),
        "confidence": Key(Number(0.5, 0.9999), "How sure the judgement has to be; 0.95 by default."),
    }
)  # fmt: skip
QUOTE = Record(
    {
        "document": Key(Text(), "Which document says it.", required=True),
        "section": Key(Text(), "Where in it.", required=True),
        "text": Key(Text(".*"), "Its words.", required=True),
    }
)
SPEC: dict[str, Key] = {
    "question": Key(Text(".*"), "What it asks, for a reader of its results."),
    "quotes": Key(ListOf(QUOTE), "What is said about it elsewhere."),
    "finding": Key(Text(".*"), "What the results mean, written after seeing them."),
    "scenario": Key(
        _ScenarioOrName(), "What runs: a path, the name of a shipped scenario, or a scenario itself.", required=True
    ),
    "set": Key(Free(), "Values for paths below the scenario's spec, the same in all variants."),
    "vary": Key(_Vary(), "Values for paths below the scenario's spec, or named parameters; all combinations run."),
    "seeds": Key(_Seeds(), "How many seeds, from 1 on, or which; every variant runs with each of them.", required=True),
    "metrics": Key(_Metrics(), "The figures that the table shows; those of claims are added."),
    "claims": Key(ListOf(CLAIM), "What the results must show."),
    "limits": Key(
        Record(
            {
                "events": Key(Whole(1), "A run with more events is broken off; 10,000,000 by default."),
                "waiting": Key(Whole(1), "A run in which more pods wait at once is broken off; no limit by default."),
                "cpu": Key(POSITIVE_SECONDS, "A run that takes more CPU time is broken off; 10m by default."),
            }
        ),
        "When a run is not waited for any longer: its point is saturated.",
    ),
}  # fmt: skip
EXPERIMENT = Record(
    {
        "apiVersion": Key(Choice((schema.API_VERSION,)), f"Always {schema.API_VERSION}.", required=True),
        "kind": Key(Choice((KIND,)), f"Always {KIND}.", required=True),
        "metadata": Key(
            Record(
                {
                    "name": Key(NAME, "Its name; by default that of the file."),
                    "description": Key(Text(".*"), "What it asks, for a newcomer."),
                }
            ),
            "Name and description.",
        ),
        "spec": Key(Record(SPEC), "The experiment.", required=True),
    }
)


def json_schema() -> Mapping[str, Any]:
    """The format as JSON Schema (2020-12)."""
    shape = EXPERIMENT.schema()
    used = {name for name in DEFINITIONS if f'"#/$defs/{name}"' in str(shape).replace("'", '"')}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://kemu.dev/schemas/v1/experiment.json",
        "title": "kemu experiment",
        **shape,
        "$defs": {name: DEFINITIONS[name].schema() for name in sorted(used)},
    }
