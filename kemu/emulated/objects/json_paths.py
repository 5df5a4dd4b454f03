"""The JSONPath of Kubernetes (``client-go/util/jsonpath``), as far as columns and selectable fields use it.

parse(".spec.containers[*].image").find(data)
parse('.status.conditions[?(@.type=="Ready")].status').find(data)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kemu.emulated.objects.plain import Json

Step = Callable[[Any], Iterator[Any]]

_NAME = re.compile(r"(?:\\.|[^\s.\[\]{}?,()*\\@$])+")
_FILTER = re.compile(r"\?\(\s*(@[^=!<>]*?)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?)\s*)?\)")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda one, other: bool(one == other),
    "!=": lambda one, other: bool(one != other),
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}


@dataclass(frozen=True, slots=True)
class JsonPath:
    steps: tuple[Step, ...]

    def find(self, data: Json) -> list[Any]:
        """All values at the path; a field that is missing is no value."""
        found = [data]
        for step in self.steps:
            found = [inner for one in found for inner in step(one)]
        return found


@lru_cache(1024)
def parse(text: str) -> JsonPath:
    """Raises ValueError."""
    return JsonPath(tuple(_steps(text)))


def shown(value: Json) -> str:
    """As ``PrintResults`` writes a value."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _steps(text: str) -> Iterator[Step]:
    place = 1 if text.startswith("$") else 0
    while place < len(text):
        if text.startswith("..", place):
            yield _descend
            place += 2
            if place < len(text) and text[place] != "[":
                step, place = _named(text, place)
                yield step
        elif text[place] == ".":
            place += 1
            if place == len(text) or text[place] == "[":
                continue
            step, place = _named(text, place)
            yield step
        elif text[place] == "[":
            end = _closing(text, place)
            yield _bracket(text[place + 1 : end].strip())
            place = end + 1
        else:
            step, place = _named(text, place)
            yield step


def _named(text: str, place: int) -> tuple[Step, int]:
    if text[place] == "*":
        return _each, place + 1
    match = _NAME.match(text, place)
    if match is None:
        raise ValueError(f"unrecognized character in action: {text[place]!r}")
    return _field(re.sub(r"\\(.)", r"\1", match.group())), match.end()


def _closing(text: str, place: int) -> int:
    depth, quote = 0, ""
    for index in range(place, len(text)):
        letter = text[index]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
            if not depth:
                return index
    raise ValueError("unterminated array")


def _bracket(inner: str) -> Step:
    if inner == "*":
        return _each
    if inner.startswith("?"):
        return _filter(inner)
    if inner[:1] in ("'", '"') and inner[-1:] == inner[:1] and len(inner) > 1:
        names = [part.strip()[1:-1] for part in re.findall(r"'[^']*'|\"[^\"]*\"", inner)]
        fields = [_field(re.sub(r"\\(.)", r"\1", name)) for name in names]
        return lambda value: (found for field in fields for found in field(value))
    if "," in inner:
        parts = [_bracket(part.strip()) for part in inner.split(",")]
        return lambda value: (found for part in parts for found in part(value))
    if re.fullmatch(r"-?\d+", inner):
        return _index(int(inner))
    if re.fullmatch(r"(-?\d+)?(:(-?\d+)?){1,2}", inner):
        bounds = [int(part) if part else None for part in inner.split(":")]
        return lambda value: iter(value[slice(*bounds)] if isinstance(value, list) else ())
    raise ValueError(f"invalid array index {inner}")


def _field(name: str) -> Step:
    def step(value: Json) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(index: int) -> Step:
    def step(value: Json) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _each(value: Json) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from (value[key] for key in sorted(value))


def _descend(value: Json) -> Iterator[Any]:
    yield value
    for one in _each(value):
        if isinstance(one, dict | list):
            yield from _descend(one)


def _filter(text: str) -> Step:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid filter {text}")
    left, operator, raw = match.groups()
    path = JsonPath(tuple(_steps(left[1:])))
    other: JsonPath | None = None
    wanted: Any = None
    if operator is not None:
        if raw.startswith("@"):
            other = JsonPath(tuple(_steps(raw[1:])))
        elif raw[:1] in ("'", '"'):
            wanted = raw[1:-1]
        else:
            try:
                wanted = json.loads(raw)
            except ValueError:
                raise ValueError(f"unrecognized value {raw} in a filter") from None

    def holds(item: Json) -> bool:
        found = path.find(item)
        if not found:
            return False
        if operator is None:
            return True
        compared = wanted
        if other is not None:
            values = other.find(item)
            if not values:
                return False
            compared = values[0]
        try:
            return _COMPARISONS[operator](found[0], compared)
        except TypeError:
            return False

    def step(value: Json) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if holds(item))

    return step
