"""What a value in the format may look like: each shape checks a value and describes itself as JSON Schema.

Role: declarations of settings and the scenario format's tables of keys are composed of these; loading, the JSON Schema
and the documentation come from them.

A shape's ``check`` reports every mistake below its value and gives back the value made ready for use (durations in
nanoseconds, and so on) or :data:`INVALID`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kemu import errors
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import values
from kemu.emulated.settings.documents import Document, Path
from kemu.runtime.words import did_you_mean, nearest_word


class _Invalid:
    def __repr__(self) -> str:
        return "INVALID"


INVALID: Any = _Invalid()
"""Stands for a value whose mistake has been reported."""


_FEW = 5
"""Keys that a suggestion lists in passing."""
THERE_ARE = "there are: "
"""So begins a suggestion that lists everything."""


class Report:
    """Collects the problems of one document."""

    def __init__(self, document: Document, problems: list[errors.Problem], root: str = "") -> None:
        self.document = document
        self.problems = problems
        self.root = root
        """Put before every path: where this document hangs in the scenario."""

    def add(self, path: Path, message: str, suggestion: str = "", *, key: bool = False) -> None:
        self.problems.append(self.document.problem(path, message, suggestion, key=key, root=self.root))


class Shape(Protocol):
    def check(self, value: Json, path: Path, report: Report) -> Any: ...

    def schema(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Named:
    """A shape that is used in many places; in JSON Schema it stands once, under this name."""

    name: str
    shape: Shape

    def __post_init__(self) -> None:
        DEFINITIONS[self.name] = self.shape

    def check(self, value: Json, path: Path, report: Report) -> Any:
        return self.shape.check(value, path, report)

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}


DEFINITIONS: dict[str, Shape] = {}
"""Every :class:`Named` shape."""


def kind_of(value: object) -> str:
    """A value in words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value:g}" if isinstance(value, float) else f"the number {value}"
    if isinstance(value, str):
        shown = value if len(value) <= 40 else value[:37] + "…"
        return f"the text {shown!r}"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list"


@dataclass(frozen=True)
class Text:
    """A string, by default one that is not empty."""

    pattern: str = ""
    what: str = "a text"
    max_length: int = 0

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, str):
            scalar = isinstance(value, bool | int | float)
            hint = "put it in quotes" if scalar else ""
            report.add(path, f"must be {self.what}, not {kind_of(value)}", hint)
            return INVALID
        if not value and self.pattern != ".*":
            report.add(path, "must not be empty")
            return INVALID
        if self.pattern and not re.fullmatch(self.pattern, value):
            report.add(path, f"{value!r} is not {self.what}")
            return INVALID
        if self.max_length and len(value) > self.max_length:
            report.add(path, f"must have at most {self.max_length} characters")
            return INVALID
        return value

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        if self.pattern:
            schema["pattern"] = f"^({self.pattern})$"
        if self.max_length:
            schema["maxLength"] = self.max_length
        return schema


@dataclass(frozen=True)
class FullName(Text):
    """``name`` or ``namespace/name``; checked, it has its namespace."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        found = super().check(value, path, report)
        return found if found is INVALID else values.full_name(found)


SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
NAME = Named("name", Text(SUBDOMAIN, "a name of lower-case letters, digits, - and . (a DNS subdomain)", 253))
_FULL_NAME = rf"([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?{SUBDOMAIN}"
POD_REFERENCE = FullName(_FULL_NAME, "the name of a pod, name or namespace/name", 317)
ROLLED_OUT = ("deployment", "statefulset", "daemonset")
"""Kinds that roll out changes of their template, as kubectl names them."""
ROLLOUT_REFERENCE = Text(
    rf"({'|'.join(ROLLED_OUT)})/{_FULL_NAME}", "deployment/web, statefulset/db or daemonset/agent", 330
)
BUDGET_REFERENCE = FullName(_FULL_NAME, "the name of a PodDisruptionBudget, name or namespace/name", 317)


@dataclass(frozen=True)
class Switch:
    """A boolean: true or false, on or off, yes or no."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if isinstance(value, str) and value.lower() in ("on", "off", "yes", "no", "true", "false"):
            return value.lower() in ("on", "yes", "true")
        if not isinstance(value, bool):
            report.add(path, f"must be true or false, not {kind_of(value)}")
            return INVALID
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": [True, False, "on", "off", "yes", "no"]}


@dataclass(frozen=True)
class Whole:
    """An integer of 64 bits, as Kubernetes has no others."""

    minimum: int | None = None
    maximum: int | None = None

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            report.add(path, f"must be a whole number, not {kind_of(value)}")
            return INVALID
        if _is_octal(value, path, report):
            return INVALID
        least = -(2**63) if self.minimum is None else self.minimum
        most = 2**63 - 1 if self.maximum is None else self.maximum
        return _bounded(value, least, most, path, report)

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", **_bounds(self.minimum, self.maximum)}


@dataclass(frozen=True)
class Number:
    """A number, finite; given back as float."""

    minimum: float | None = None
    maximum: float | None = None
    positive: bool = False

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            report.add(path, f"must be a number, not {kind_of(value)}")
            return INVALID
        if _is_octal(value, path, report):
            return INVALID
        if self.positive and value <= 0:
            report.add(path, f"must be more than 0, not {value:g}")
            return INVALID
        bounded = _bounded(value, self.minimum, self.maximum, path, report)
        return INVALID if bounded is INVALID else float(bounded)

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "number", **_bounds(self.minimum, self.maximum)}
        if self.positive:
            schema["exclusiveMinimum"] = 0
        return schema


def _is_octal(value: float, path: Path, report: Report) -> bool:
    if path not in report.document.octals or value < 8:
        return False
    report.add(path, "a leading 0 means an octal number in YAML", f"write {int(value):o} or {int(value)}")
    return True


def _bounded(value: Any, minimum: float | None, maximum: float | None, path: Path, report: Report) -> Any:
    if minimum is not None and value < minimum:
        text = "must not be negative" if minimum == 0 else f"must be at least {minimum:g}"
        report.add(path, f"{text}, but is {value:g}")
        return INVALID
    if maximum is not None and value > maximum:
        report.add(path, f"must be at most {maximum:g}, but is {value:g}")
        return INVALID
    return value


def _bounds(minimum: float | None, maximum: float | None) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    if minimum is not None:
        bounds["minimum"] = minimum
    if maximum is not None:
        bounds["maximum"] = maximum
    return bounds


@dataclass(frozen=True)
class Reading:
    """A value in a small notation of its own, read by a function that raises ValueError."""

    read: Callable[[Any], Any]
    json_schema: Mapping[str, Any]
    check_after: Callable[[Any], str] | None = None
    """Gives the complaint about a value that was read, or an empty text."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        try:
            result = self.read(value)
        except ValueError as error:
            report.add(path, str(error))
            return INVALID
        complaint = self.check_after(result) if self.check_after is not None else ""
        if complaint:
            report.add(path, complaint)
            return INVALID
        return result

    def schema(self) -> dict[str, Any]:
        return dict(self.json_schema)


_DURATION_SCHEMA = {"anyOf": [{"type": "string", "pattern": values.DURATION_PATTERN}, {"const": 0}]}
DURATION = Named("duration", Reading(values.duration_ns, _DURATION_SCHEMA))
"""A Go duration, in nanoseconds."""
POSITIVE_DURATION = Named(
    "positiveDuration",
    Reading(values.duration_ns, _DURATION_SCHEMA, lambda value: "" if value > 0 else "must be more than 0"),
)
LEAST_PERIOD_NS = 1_000_000
PERIOD = Named(
    "period",
    Reading(
        values.duration_ns, _DURATION_SCHEMA, lambda value: "" if value >= LEAST_PERIOD_NS or not value else _TOO_OFTEN
    ),
)
"""How often something is done, in nanoseconds; 0 is the default."""
_TOO_OFTEN = "must be at least 1ms"
LEAST_SLOW_PERIOD_NS = 1_000_000_000
SLOW_PERIOD = Named(
    "slowPeriod",
    Reading(
        values.duration_ns,
        _DURATION_SCHEMA,
        lambda value: "" if value >= LEAST_SLOW_PERIOD_NS or not value else "must be at least 1s",
    ),
)
"""The same of something that is done every second at most."""
SECONDS = Named("seconds", Reading(values.duration_s, _DURATION_SCHEMA))
"""A Go duration, in seconds."""
POSITIVE_SECONDS = Named(
    "positiveSeconds",
    Reading(values.duration_s, _DURATION_SCHEMA, lambda value: "" if value > 0 else "must be more than 0"),
)
RATE = Reading(values.rate_per_s, {"type": "string", "pattern": values.RATE_PATTERN})
"""Events a unit of time, per second."""
SHARE = Reading(
    values.share,
    {
        "anyOf": [
            {"type": "string", "pattern": values.PERCENT_PATTERN},
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        ]
    },
)
"""A part of a whole: ``10%`` or ``0.1``."""


def _quantity(value: Json) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"must be a quantity such as 500m, 2 or 1Gi, not {kind_of(value)}")
    text = value if isinstance(value, str) else repr(int(value) if float(value).is_integer() else value)
    if quantities.milli(text) < 0:
        raise ValueError(f"must not be negative, but is {text}")
    return text


QUANTITY = Named("quantity", Reading(_quantity, {"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]}))
"""A Kubernetes quantity that is not negative, as text."""


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]
    booleans: bool = False
    """YAML's true and false stand for the words True and False, as in the status of a condition."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if self.booleans and isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or value not in self.words:
            hint = did_you_mean(value, self.words) if isinstance(value, str) else ""
            shown = repr(value) if isinstance(value, str) else kind_of(value)
            report.add(path, f"must be {_one_of(self.words)}, not {shown}", hint)
            return INVALID
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": [*self.words, *([True, False] if self.booleans else [])]}


def _one_of(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


@dataclass(frozen=True)
class AsWritten:
    """What another shape checks, given back as it was written."""

    shape: Shape

    def check(self, value: Any, path: Path, report: Report) -> Any:
        return INVALID if self.shape.check(value, path, report) is INVALID else value

    def schema(self) -> dict[str, Any]:
        return self.shape.schema()


@dataclass(frozen=True)
class ListOf:
    """A list of one shape."""

    item: Shape
    at_least: int = 0

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, list):
            report.add(path, f"must be a list, not {kind_of(value)}")
            return INVALID
        if len(value) < self.at_least:
            report.add(path, f"must have at least {self.at_least} item{'s' * (self.at_least > 1)}")
        return [self.item.check(item, (*path, index), report) for index, item in enumerate(value)]

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "array", "items": self.item.schema()}
        if self.at_least:
            schema["minItems"] = self.at_least
        return schema


@dataclass(frozen=True)
class MapOf:
    """A mapping whose keys the user chooses."""

    item: Shape

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            report.add(path, f"must be a mapping, not {kind_of(value)}")
            return INVALID
        checked = {key: self.item.check(item, (*path, key), report) for key, item in value.items()}
        return {key: item for key, item in checked.items() if item is not INVALID}

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.item.schema()}


@dataclass(frozen=True)
class Free:
    """Anything; ``mapping``: any mapping. Its reader checks it (Kubernetes objects, mostly)."""

    mapping: bool = True

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if self.mapping and not isinstance(value, dict):
            report.add(path, f"must be a mapping, not {kind_of(value)}")
            return INVALID
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "object"} if self.mapping else {}


@dataclass(frozen=True)
class ScalarOr:
    """A mapping (``record``) or, in short, a scalar."""

    scalar: Shape
    record: Shape

    def check(self, value: Json, path: Path, report: Report) -> Any:
        return (self.record if isinstance(value, dict) else self.scalar).check(value, path, report)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.scalar.schema(), self.record.schema()]}


@dataclass(frozen=True)
class ListOr:
    """A list of ``item``, or a single one; given back as a list."""

    item: Shape

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if isinstance(value, list):
            return ListOf(self.item, 1).check(value, path, report)
        checked = self.item.check(value, path, report)
        return INVALID if checked is INVALID else [checked]

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.item.schema(), {"type": "array", "items": self.item.schema(), "minItems": 1}]}


@dataclass(frozen=True)
class WordOr:
    """A list or, in short, a word that stands for some."""

    word: Shape
    items: Shape

    def check(self, value: Json, path: Path, report: Report) -> Any:
        return (self.items if isinstance(value, list) else self.word).check(value, path, report)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.word.schema(), self.items.schema()]}


@dataclass(frozen=True)
class Key:
    """One key of a record."""

    shape: Shape
    doc: str
    required: bool = False


@dataclass(frozen=True)
class Record:
    """A mapping with known keys.

    Of ``choices`` exactly one must stand (of those keys too that carry their own companions: see ``companions``);
    ``noun`` names what they are, as in "an event needs one action".
    """

    keys: Mapping[str, Key] = field(default_factory=dict)
    choices: Mapping[str, Key] = field(default_factory=dict)
    noun: str = ""
    companions: Mapping[str, Record] = field(default_factory=dict)
    """By chosen key: further keys that may stand beside it."""
    choice_required: bool = True

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            report.add(path, f"must be a mapping, not {kind_of(value)}")
            return INVALID
        chosen = [key for key in value if key in self.choices]
        companion = self.companions.get(chosen[0], Record()) if chosen else Record()
        allowed = {**self.keys, **self.choices, **companion.keys, **companion.choices}
        strange = [key for key in value if key not in allowed]
        if self.choices:
            self._check_choice(chosen, bool(strange), path, report)
        if companion.choices:
            found = [key for key in value if key in companion.choices]
            companion._check_choice(found, bool(strange), path, report)
        result: dict[str, Any] = {}
        for key, item in value.items():
            entry = allowed.get(key)
            if entry is None:
                self._complain(key, chosen, allowed, path, report)
            elif item is None and key in self.keys and not entry.required:
                continue  # as absent, so that all items of a list can be commented out
            elif (checked := entry.shape.check(item, (*path, key), report)) is not INVALID:
                result[key] = checked
        for key, entry in allowed.items():
            if entry.required and key not in value and nearest_word(key, strange) == "":
                report.add(path, f"{key} is missing")
        return result

    def _check_choice(self, chosen: list[str], strange: bool, path: Path, report: Report) -> None:
        """``strange``: there are unknown keys; one of them was meant to be the choice."""
        if not chosen and self.choice_required and not strange:
            options = _one_of(tuple(self.choices))
            report.add(path, f"has no {self.noun}: one of {options}")
        for extra in chosen[1:]:
            message = f"is a second {self.noun} beside {chosen[0]}; only one may stand here"
            report.add((*path, extra), message, key=True)

    def _beside(self, chosen: list[str]) -> list[str]:
        """What stands only beside what was chosen."""
        companion = self.companions.get(chosen[0], Record()) if chosen else Record()
        return [*companion.keys, *companion.choices]

    def _complain(self, key: str, chosen: list[str], allowed: Mapping[str, Key], path: Path, report: Report) -> None:
        """About a key that may not stand here."""
        owners = [name for name, other in self.companions.items() if key in other.keys or key in other.choices]
        if owners:
            text = f"cannot stand beside {chosen[0]}" if chosen else f"stands without its {self.noun}"
            own = self._beside(chosen)
            beside = f"; beside {chosen[0]} stands {_one_of(tuple(own))}" if 0 < len(own) <= _FEW else ""
            report.add((*path, key), text, f"it belongs to {_one_of(tuple(owners))}{beside}", key=True)
            return
        # A second choice is none.
        free = [name for name in allowed if not (chosen and name in self.choices)]
        hint = did_you_mean(key, free) or f"{THERE_ARE}{', '.join(free)}"
        report.add((*path, key), "is not a key that may stand here", hint, key=True)

    def schema(self) -> dict[str, Any]:
        if not self.companions:
            schema = _object_schema(self.keys, self.choices)
            if self.choices:
                schema["minProperties" if not self.choice_required else "allOf"] = (
                    0 if not self.choice_required else [_one_required(self.choices)]
                )
            return schema
        alternatives = []
        for name, entry in self.choices.items():
            companion = self.companions.get(name, Record())
            schema = _object_schema({**self.keys, name: entry, **companion.keys}, companion.choices)
            schema["required"] = [*schema.get("required", []), name]
            if companion.choices:
                schema["allOf"] = [_one_required(companion.choices)]
            alternatives.append(schema)
        return {"oneOf": alternatives}


def _object_schema(keys: Mapping[str, Key], choices: Mapping[str, Key]) -> dict[str, Any]:
    properties = {
        name: {"description": entry.doc, **entry.shape.schema()} for name, entry in {**keys, **choices}.items()
    }
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [name for name, entry in keys.items() if entry.required]
    if required:
        schema["required"] = required
    return schema


def _one_required(choices: Mapping[str, Key]) -> dict[str, Any]:
    return {"oneOf": [{"required": [name]} for name in choices]}
