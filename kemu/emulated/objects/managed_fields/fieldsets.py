"""Sets of fields of an object, as ``structured-merge-diff/fieldpath.Set`` has them and ``fieldsV1`` writes them down.

A set is a tree of dicts. A key is a step of a path: ``f:name`` a field, ``k:{"name":"a"}`` an element of a list by its
keys, ``v:"a"`` an element of a set, ``i:0`` an index. :data:`SELF` in a node says that the path that ends there belongs
to the set. No node is empty, so the empty set is ``{}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from kemu.emulated.objects.plain import Json

FieldSet = dict[str, Any]
Path = tuple[str, ...]

SELF = "."

_ORDER = {"f": 0, "k": 1, "v": 2, "i": 3}


def field(name: str) -> str:
    """The step to a field."""
    return "f:" + name


def key(values: dict[str, Any]) -> str:
    """The step to an element of a list that its keys name."""
    return "k:" + write(values)


def value(element: Json) -> str:
    """The step to an element of a set."""
    return "v:" + write(element)


write: Callable[[Json], str] = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode
"""JSON as Go writes it into a step."""


def insert(fields: FieldSet, path: Path) -> None:
    """No manager owns an object as a whole: the empty path is ignored."""
    if not path:
        return
    for step in path:
        fields = fields.setdefault(step, {})
    fields[SELF] = {}


def of(paths: Iterable[Path]) -> FieldSet:
    found: FieldSet = {}
    for path in paths:
        insert(found, path)
    return found


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one:
        return other
    if not other:
        return one
    both = dict(one)
    for step, node in other.items():
        mine = both.get(step)
        both[step] = node if mine is None else union(mine, node)
    return both


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    found: FieldSet = {}
    for step, node in one.items():
        theirs = other.get(step)
        if theirs is None:
            continue
        if step == SELF:
            found[SELF] = {}
        elif common := intersection(node, theirs):
            found[step] = common
    return found


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of ``one`` that are not in ``other``."""
    if not other:
        return one
    found: FieldSet = {}
    for step, node in one.items():
        theirs = other.get(step)
        if theirs is None:
            found[step] = node
        elif step != SELF and (rest := difference(node, theirs)):
            found[step] = rest
    return found


def without(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of ``one`` that are not in ``other``, nor below one that is (``RecursiveDifference``)."""
    if not other:
        return one
    found: FieldSet = {}
    for step, node in one.items():
        theirs = other.get(step)
        if theirs is None:
            found[step] = node
        elif SELF not in theirs and step != SELF and (rest := without(node, theirs)):
            found[step] = rest
    return found


def has(fields: FieldSet, path: Path) -> bool:
    node: FieldSet | None = fields
    for step in path:
        node = node.get(step) if node is not None else None
    return bool(path) and node is not None and SELF in node


def iterate(fields: FieldSet) -> Iterator[Path]:
    """All paths in the order of Kubernetes: at each level first those that end there, then those that go on."""
    return _iterate(fields, ())


def _iterate(fields: FieldSet, path: Path) -> Iterator[Path]:
    steps = ordered(fields)
    for step in steps:
        if SELF in fields[step]:
            yield (*path, step)
    for step in steps:
        yield from _iterate(fields[step], (*path, step))


def ordered(fields: FieldSet) -> list[str]:
    """The steps from a node in the order of ``PathElement.Compare``."""
    return sorted([step for step in fields if step != SELF], key=_rank)


@lru_cache(4096)
def _rank(step: str) -> tuple[int, Any]:
    kind = _ORDER[step[0]]
    if kind == 0:
        return 0, step.encode()
    plain = json.loads(step[2:])
    if kind == 1:
        return 1, tuple((name.encode(), _rank_of_value(plain[name])) for name in sorted(plain))
    return kind, _rank_of_value(plain)


def _rank_of_value(plain: Json) -> tuple[int, Any]:
    """``value.Compare``: numbers, strings, booleans, lists, maps, null."""
    if isinstance(plain, bool):
        return 2, plain
    if isinstance(plain, int | float):
        return 0, plain
    if isinstance(plain, str):
        return 1, plain.encode()
    return 5, write(plain)


def text(path: Path) -> str:
    """A path as messages to people have it: ``.spec.containers[name="a"].image``."""
    return "".join(text_of_step(step) for step in path)


def text_of_step(step: str) -> str:
    if step.startswith("f:"):
        return "." + step[2:]
    if step.startswith("i:"):
        return f"[{step[2:]}]"
    plain = json.loads(step[2:])
    if step.startswith("v:"):
        return f"[={text_of_value(plain)}]"
    return f"[{','.join(f'{name}={text_of_value(plain[name])}' for name in sorted(plain))}]"


def text_of_value(plain: Json) -> str:
    """``value.ToString``."""
    return write(plain)


# Written down -------------------------------------------------------------------------------------------------------


def to_json(fields: FieldSet) -> dict[str, Any]:
    """As ``fieldsV1`` has a set: a path that ends where none goes on is an empty object."""
    return {step: _written(fields[step]) for step in ordered(fields)}


def _written(node: FieldSet) -> dict[str, Any]:
    if len(node) == 1 and SELF in node:
        return {}
    found: dict[str, Any] = {SELF: {}} if SELF in node else {}
    found.update(to_json(node))
    return found


def from_json(data: Json) -> FieldSet:
    """Raises ValueError. Steps of unknown kinds are left out."""
    if not isinstance(data, dict):
        raise ValueError("expected an object of fields")
    found: FieldSet = {}
    for step, node in data.items():
        if step == SELF:
            continue
        kind, colon, rest = step.partition(":")
        if not colon:
            raise ValueError(f"parsing key as path element: missing colon: {step}")
        if kind not in _ORDER:
            continue
        inner = from_json(node)
        if not inner or SELF in node:
            inner = {SELF: {}, **inner}
        found[_canonical(kind, rest)] = inner
    return found


@lru_cache(4096)
def _canonical(kind: str, rest: str) -> str:
    if kind == "f":
        return "f:" + rest
    if kind == "i":
        return f"i:{int(rest)}"
    plain = json.loads(rest)
    if kind == "k" and not isinstance(plain, dict):
        raise ValueError(f"the keys of an element must be an object: {rest}")
    return f"{kind}:{write(plain)}"
