"""The Go types of the API: structs, the order and JSON tags of their fields, named strings and their values.

Types have the names of the table: ``core.v1.Pod``, ``*int32``, ``[]core.v1.Container``, ``map[string]string``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources

from kemu.emulated.objects.plain import Json


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a Go struct."""

    json: str
    """Empty: the fields of the struct stand in the JSON object of its parent."""
    name: str
    type: str
    options: dict[str, str] = field(hash=False)
    """The further words of the table, as ``patch=merge``; a word without a value has an empty one."""
    omits: bool
    """Whether an empty value is left out of the JSON: any that is no struct."""
    omits_zero: bool
    """Whether a struct without any value is left out, too."""

    @property
    def is_always_there(self) -> bool:
        """Whether JSON has the field even if it is empty."""
        return not (self.omits or self.omits_zero)


@dataclass(frozen=True, slots=True)
class _Table:
    kinds: dict[tuple[str, str], str] = field(default_factory=dict)
    leaves: dict[str, tuple[str, Json]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    structs: dict[str, list[str]] = field(default_factory=dict)
    """The lines of the fields."""
    atomic: set[str] = field(default_factory=set)


@lru_cache(1)
def _table() -> _Table:
    table = _Table()
    lines: list[str] = []
    for line in resources.files("kemu.emulated.objects.facts").joinpath("facts.txt").read_text().splitlines():
        if line.startswith("\t"):
            lines.append(line[1:])
            continue
        what, name, *rest = line.split(" ", 3)
        if what == "struct":
            lines = table.structs[name] = []
            if rest:
                table.atomic.add(name)
        elif what == "type":
            table.names[name] = rest[0]
            if len(rest) > 1:
                table.values[name] = tuple(rest[1].removeprefix("enum=").split(","))
        elif what == "kind":
            table.kinds[name, rest[0]] = rest[1]
        else:
            table.leaves[name] = rest[0], json.loads(rest[1])
    return table


@lru_cache(None)
def of_kind(api_version: str, kind: str) -> str | None:
    """The struct of a kind's objects; None: the table has no such kind."""
    return _table().kinds.get((api_version, kind))


@lru_cache(None)
def fields_of(struct: str) -> tuple[Field, ...] | None:
    """In Go's order; None: the type is no struct of the table."""
    lines = _table().structs.get(struct)
    return None if lines is None else tuple(map(_field, lines))


def _field(line: str) -> Field:
    json_name, type_, *words = line.split(" ")
    if json_name == "+":
        return Field("", type_.rpartition(".")[2], type_, {}, False, False)
    options = {name: value for name, _, value in (word.partition("=") for word in words)}
    omits_zero = "omitzero" in options
    omits = "omitempty" in options if omits_zero else "always" not in options
    name = options.get("name") or json_name[0].upper() + json_name[1:]
    return Field(json_name, name, type_, options, omits, omits_zero)


@lru_cache(1)
def list_keys() -> tuple[frozenset[str], frozenset[str]]:
    """The JSON names of all fields that are keys of the elements of a list, and of all fields that are sets."""
    keys, sets = set[str](), set[str]()
    for lines in _table().structs.values():
        for line in lines:
            if " list=" in line:
                one = _field(line)
                if one.options["list"] == "set":
                    sets.add(one.json)
                else:
                    keys.update(one.options["list"].split(","))
    return frozenset(keys), frozenset(sets)


def is_atomic(struct: str) -> bool:
    """Whether the fields of a struct have one manager."""
    return struct in _table().atomic


def leaf(name: str) -> tuple[str, Json] | None:
    """How a struct merges whose JSON is not that of its fields, as ``untyped``, and its zero in JSON."""
    return _table().leaves.get(name)


def plain(name: str) -> str:
    """What a named type is: ``string`` for ``core.v1.Protocol``; any other type is itself."""
    return _table().names.get(name, name)


def values(name: str) -> tuple[str, ...]:
    """The values of a named string type, sorted; empty: Kubernetes lists none."""
    return _table().values.get(name, ())


@lru_cache(4096)
def map_types(name: str) -> tuple[str, str] | None:
    """The types of keys and values of a map."""
    what = plain(name)
    if not what.startswith("map["):
        return None
    key, _, value = what[4:].partition("]")
    return key, value


def element_type(name: str) -> str | None:
    """The type of the elements of a slice."""
    what = plain(name)
    return what[2:] if what.startswith("[]") else None


@lru_cache(4096)
def short(name: str) -> str:
    """A type as Go prints it, with the last part of the package: ``[]v1.Container``."""
    return _PATH.sub("", name)


_PATH = re.compile(r"(?:\w+\.)+(?=\w+\.\w)")
