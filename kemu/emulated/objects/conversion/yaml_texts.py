"""YAML that clients send: read by libyaml, which is fast, after a look at its shape, without which it is not safe.

A document of a few bytes can stand for billions of values by its aliases, and one that is nested deeply enough
overflows libyaml's stack.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import yaml

from kemu.emulated.objects.conversion import sizes
from kemu.emulated.objects.plain import Json

MAX_DEPTH = 100
"""Largest depth of nested mappings and lists."""
MOST_ALIASED = 10
"""How many times more values than it has a document may stand for by its aliases; a few are always allowed."""
FEW = 1_000

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Mark(Protocol):
    """Of Python's reader or of libyaml's."""

    line: int
    column: int


class BadShape(yaml.YAMLError):
    """Nested too deeply, or too much for what it is."""

    def __init__(self, text: str, mark: _Mark | None) -> None:
        super().__init__(text)
        self.line: int = 1 if mark is None else mark.line + 1
        self.column: int = 1 if mark is None else mark.column + 1


class TooDeep(BadShape):
    """Nested in more than ``MAX_DEPTH`` levels."""

    def __init__(self, mark: _Mark | None) -> None:
        super().__init__("exceeded max depth", mark)


class _Loader(_Base):  # type: ignore[misc]
    """YAML as JSON has it: no dates, and it is noted whether a key stands twice."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        letter: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
        for letter, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    repeats: bool

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        self.repeats = self.repeats or len(set(keys)) < len(keys)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


def load(data: bytes) -> tuple[Any, list[str]]:
    """What one document holds, and which keys stand twice in it. Raises yaml.YAMLError or ValueError, and
    RequestEntityTooLarge."""
    if data[:1] == b"{":
        # Most programs send JSON, which is YAML, too.
        try:
            sizes.check_json(data)
            return json.loads(data, object_pairs_hook=_once), []
        except (ValueError, RecursionError):
            pass
    check_shape(data, most=sizes.MOST_VALUES)
    loader = _Loader(data)
    loader.repeats = False
    try:
        found = loader.get_single_data()
        return found, list(_repeated(_read(data))) if loader.repeats else []
    finally:
        loader.dispose()


@dataclass(frozen=True, slots=True)
class _Node:
    line: int
    """Where it begins, from 1; of an alias, where that stands."""
    content: str | list[_Node] | list[tuple[_Node, _Node]]


def _read(data: bytes) -> _Node:
    """The first document. Nodes of libyaml do not say where an alias stands."""
    events = _events(data)
    anchored: dict[str, _Node] = {}

    def read(event: yaml.Event) -> _Node:
        assert isinstance(event, yaml.NodeEvent)
        assert event.start_mark is not None
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return _Node(line, anchored[event.anchor or ""].content)
        if isinstance(event, yaml.ScalarEvent):
            node = _Node(line, event.value)
        else:
            parts: list[_Node] = []
            while not isinstance(inner := next(events), yaml.CollectionEndEvent):
                parts.append(read(inner))
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            node = _Node(line, list(zip(parts[::2], parts[1::2], strict=True)) if is_mapping else parts)
        if event.anchor:
            anchored[event.anchor] = node
        return node

    return read(next(event for event in events if isinstance(event, yaml.NodeEvent)))


def _repeated(node: _Node) -> Iterator[str]:
    """Keys that stand twice, in the words and the order of go-yaml, which reads anew what an alias stands for."""
    if isinstance(node.content, str):
        return
    seen: set[str] = set()
    for one in node.content:
        if isinstance(one, _Node):
            yield from _repeated(one)
            continue
        key, value = one
        yield from _repeated(value)
        if isinstance(key.content, str):
            if key.content in seen:
                yield f'line {value.line}: key "{key.content}" already set in map'
            seen.add(key.content)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def safe_load(text: str) -> Json:
    """As ``yaml.safe_load``, for texts that strangers write. Raises yaml.YAMLError."""
    check_shape(text)
    found: Json = yaml.safe_load(text)
    return found


def check_shape(data: bytes | str, few: int = FEW, most: int | None = None) -> None:
    """Raises yaml.YAMLError for what is nested too deeply, or stands for too much: more than ``few`` values and, by
    its aliases, many more than it has. Documents of one text count together. Raises RequestEntityTooLarge for more
    than ``most`` values of its own."""
    open_sizes: list[int] = [0]
    """For what is open, the values that it stands for so far."""
    anchored: dict[str, int] = {}
    anchors: list[str | None] = []
    own = 0
    for event in _events(data):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in anchors:
                raise yaml.YAMLError(f"anchor '{event.anchor}' value contains itself")
            open_sizes[-1] += anchored.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            own += 1
            open_sizes[-1] += 1
            if event.anchor:
                anchored[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            own += 1
            open_sizes.append(1)
            anchors.append(event.anchor)
            if len(anchors) > MAX_DEPTH:
                raise TooDeep(event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            size, anchor = open_sizes.pop(), anchors.pop()
            if anchor:
                anchored[anchor] = size
            open_sizes[-1] += size
        if most is not None and own > 2 * most:  # keys count here, too
            raise sizes.too_many()
        if open_sizes[-1] > few + MOST_ALIASED * own:
            raise BadShape("document contains excessive aliasing", event.start_mark)


def _events(data: bytes | str) -> Iterator[yaml.Event]:
    """As ``yaml.parse``. libyaml 0.2.6 itself refuses 1,000 levels, and reads ahead of the events that it hands out."""
    try:
        yield from yaml.parse(data, Loader=_Base)
    except yaml.MarkedYAMLError as error:
        if "nesting depth" in (error.problem or ""):
            raise TooDeep(error.problem_mark) from None
        raise
