"""How the fields of each kind merge, from the table ``types.txt``, which ``scripts/record schemas`` prints.

It holds what the API server's OpenAPI document says of lists and maps (``listType``, ``listMapKey``, ``mapType``), what
the Go types say of strategic merge patches (``patchStrategy``, ``patchMergeKey``), and what Go writes in JSON for
fields that are not set.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from kemu.emulated.objects.plain import Json

SCALAR, LIST, MAP, STRUCT, ANY = "scalar", "list", "map", "struct", "any"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct."""

    type: str
    """For :func:`resolve`."""
    has_default: bool
    default: Any
    """What a missing key of a list counts as."""
    has_zero: bool
    zero: Any
    """What JSON has when the field is not set."""
    omits: bool
    """Whether JSON does not have the field when it is set to something empty."""
    strategies: tuple[str, ...]
    """Strategies of a strategic merge patch: ``merge``, ``replace``, ``retainKeys``."""
    merge_key: str
    is_required: bool
    """As the API server's OpenAPI document says."""
    values: tuple[str, ...]
    """The texts that a field, or an element of it, may have, where that document lists them."""
    go: str
    """The name of the Go type."""
    embedded_in: str
    """The embedded structs in which the field stands, in Go."""


@dataclass(frozen=True, slots=True)
class Type:
    """What a value is allowed to be, and how it merges."""

    kind: str
    scalar: str = ""
    """``string``, ``numeric``, ``boolean`` or ``untyped``."""
    is_atomic: bool = False
    element: str = ""
    """Of a list or map, for :func:`resolve`."""
    keys: tuple[str, ...] = ()
    """Keys of a list that is a map by these; a list that is not atomic and has none is a set."""
    fields: dict[str, Field] | None = None


@dataclass(frozen=True, slots=True)
class _Table:
    kinds: dict[tuple[str, str], str]
    types: dict[str, Type]


_SCALARS = {name: Type(SCALAR, name) for name in ("string", "numeric", "boolean", "untyped")}
_ANY = Type(ANY)
ANY_LIST = Type(LIST, is_atomic=True, element="any")
"""What a list is where any value is allowed."""
ANY_MAP = Type(MAP, element="any")


@lru_cache(1)
def _table() -> _Table:
    table = _Table({}, {})
    fields: dict[str, Field] = {}
    text = resources.files("kemu.emulated.objects.managed_fields").joinpath("types.txt").read_text()
    for line in text.splitlines():
        if line.startswith("\t"):
            name, expression, *options = line[1:].split(" ")
            fields[name] = _field(expression, options)
        elif line.startswith("kind "):
            _, version, kind, name = line.split(" ")
            table.kinds[version, kind] = name
        else:
            _, name, expression, *rest = line.split(" ")
            if expression == "struct":
                fields = {}
                table.types[name] = Type(STRUCT, is_atomic=rest == ["atomic"], fields=fields)
            else:
                table.types[name] = _parse(expression)
    return table


def _field(expression: str, options: list[str]) -> Field:
    found: dict[str, str] = {}
    for option in options:
        name, _, value = option.partition("=")
        found[name] = value
    return Field(
        expression,
        "default" in found,
        json.loads(found.get("default", "null")),
        "zero" in found,
        json.loads(found.get("zero", "null")),
        "omit" in found,
        tuple(found["patch"].split(",")) if "patch" in found else (),
        found.get("key", ""),
        "required" in found,
        tuple(found["enum"].split(",")) if "enum" in found else (),
        found.get("go", ""),
        found.get("in", ""),
    )


def _parse(expression: str) -> Type:
    if expression == "any":
        return _ANY
    if expression in _SCALARS:
        return _SCALARS[expression]
    if expression.startswith("{"):
        how, _, element = expression[1:].partition("}")
        return Type(MAP, is_atomic=how == "atomic", element=element)
    how, _, element = expression[1:].partition("]")
    if not how:
        return Type(LIST, is_atomic=True, element=element)
    return Type(LIST, element=element, keys=() if how == "=" else tuple(how.split(",")))


@lru_cache(None)
def resolve(expression: str) -> Type:
    """The type that the table writes so."""
    if expression[0] in "[{" or expression in _SCALARS or expression == "any":
        return _parse(expression)
    if expression[-1] not in "!~":
        return _table().types[expression]
    named = _table().types[expression[:-1]]
    return Type(named.kind, named.scalar, expression[-1] == "!", named.element, named.keys, named.fields)


def find_type(name: str) -> Type | None:
    """By its name in the table, as ``core.v1.PodSpec``."""
    return _table().types.get(name)


def find(api_version: str, kind: str) -> str | None:
    """The name of the type of a kind's objects, for :func:`resolve`; None: the table has no such kind."""
    return _table().kinds.get((api_version, kind))


def field_type(expression: str, name: str) -> str:
    """The type of a field of a struct, for :func:`resolve`. Raises KeyError."""
    fields = resolve(expression).fields
    assert fields is not None
    return fields[name].type


def element_of(kind: Type, name: str) -> Type | None:
    """The type of a field or an entry of a map; None: there is no such field."""
    if kind.fields is not None:
        found = kind.fields.get(name)
        return resolve(found.type) if found is not None else None
    return resolve(kind.element)


def shape(kind: Type, value: Json) -> Type:
    """What a value of any type is taken for (``typed.deduceAtom``)."""
    if kind.kind is not ANY:
        return kind
    if isinstance(value, dict):
        return ANY_MAP
    if isinstance(value, list):
        return ANY_LIST
    return _SCALARS["untyped"]


# JSON as Go writes it -------------------------------------------------------------------------------------------------


def as_go_writes(expression: str, value: Json) -> Json:
    """JSON as kemu has it, with the fields that Go writes though they are not set and without those that it leaves out
    though they are. The value is not changed. ``expression``: of its type."""
    write = _writer(expression)
    return write(value) if write is not None else value


class _Struct:
    """Writes the fields of a struct."""

    __slots__ = ("_fields", "_zeros")

    def __init__(self, fields: dict[str, Field]) -> None:
        self._fields = {name: (_writer(one.type), one.omits or one.has_zero) for name, one in fields.items()}
        self._zeros = [(name, one.zero, _writer(one.type)) for name, one in fields.items() if one.has_zero]

    def __call__(self, value: Json) -> Json:
        if not isinstance(value, dict):
            return value
        fields = self._fields
        found: dict[str, Any] = {}
        for name, inner in value.items():
            known = fields.get(name)
            if known is None:
                found[name] = inner
                continue
            write, omits = known
            if inner or not (omits or inner is None):
                found[name] = inner if write is None else write(inner)
        for name, zero, write in self._zeros:
            if name not in found:
                found[name] = zero if write is None else write(zero)
        return found


@lru_cache(None)
def _writer(expression: str) -> Callable[[Any], Any] | None:
    """None: what has this type is written as it is."""
    kind = resolve(expression)
    if kind.fields is not None:
        return _Struct(kind.fields)
    write = _writer(kind.element) if kind.kind is LIST else None
    if write is None:
        return None

    def write_list(value: Json) -> Json:
        return [write(one) for one in value] if isinstance(value, list) else value

    return write_list
