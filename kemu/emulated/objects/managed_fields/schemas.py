"""How the fields of each kind merge, from the table of :mod:`kemu.emulated.objects.facts.go_types`.

It holds what the API server's OpenAPI document says of lists and maps (``listType``, ``listMapKey``, ``mapType``), what
the Go types say of strategic merge patches (``patchStrategy``, ``patchMergeKey``), and what Go writes in JSON for
fields that are not set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kemu.emulated.objects.conversion import go_structs
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.plain import Json

SCALAR, LIST, MAP, STRUCT, ANY = "scalar", "list", "map", "struct", "any"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct."""

    type: str | Type
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
    element: str | Type = ""
    """The element of a list or map, for :func:`resolve`; of a struct, what other fields than its own are."""
    keys: tuple[str, ...] = ()
    """Keys of a list that is a map by these; a list that is not atomic and has none is a set."""
    fields: dict[str, Field] | None = None


_SCALARS = {name: Type(SCALAR, name) for name in ("string", "numeric", "boolean", "untyped")}
_ANY = Type(ANY)
ANY_LIST = Type(LIST, is_atomic=True, element="any")
"""What a list is where any value is allowed."""
ANY_MAP = Type(MAP, element="any")


def _fields(struct: str, embedded_in: str = "") -> Iterator[tuple[str, Field]]:
    for one in go_types.fields_of(struct) or ():
        if one.json:
            yield one.json, _field(one, embedded_in)
        else:
            yield from _fields(one.type, f"{embedded_in}.{one.name}".removeprefix("."))


def _field(one: go_types.Field, embedded_in: str) -> Field:
    said = one.options
    go = one.type.removeprefix("*")
    is_pointer = go != one.type
    leaf = go_types.leaf(go)
    is_struct = not is_pointer and (leaf is not None or go_types.fields_of(go) is not None)
    has_zero = not one.omits_zero and (is_struct or not one.omits)
    zero = None
    if has_zero and not is_pointer:
        zero = leaf[1] if leaf is not None else {} if is_struct else _ZEROS.get(go_types.plain(go))
    implied = zero if leaf is None else None
    expression, keys = _merging(go), said.get("list", "")
    if keys:
        expression = f"[{'=' if keys == 'set' else keys}]{expression.removeprefix('[]')}"
    elif "atomic" in said:
        is_map = expression.startswith("{}")
        expression = f"{{atomic}}{expression.removeprefix('{}')}" if is_map else f"{expression}!"
    elif "separable" in said:
        expression = f"{expression}~"
    first = "" if keys == "set" or "patch" not in said else keys.partition(",")[0]
    return Field(
        said.get("is", expression),
        implied is not None or "default" in said,
        json.loads(said["default"]) if "default" in said else implied,
        has_zero,
        zero,
        one.omits and not is_pointer and not is_struct,
        tuple(said["patch"].split(",")) if "patch" in said else (),
        said.get("key", first),
        "required" in said or (one.is_always_there and "optional" not in said),
        go_types.values(go.removeprefix("[]")),
        go_types.short(go),
        embedded_in,
    )


_SCALARS_OF_GO = {"string": "string", "bool": "boolean"} | dict.fromkeys(("int32", "int64", "float64"), "numeric")
_ZEROS: dict[str, Json] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}


def _merging(go: str) -> str:
    """How a Go type merges unless the table says otherwise, for :func:`resolve`."""
    go = go.removeprefix("*")
    if go == "[]uint8":
        return "string"
    if go.startswith("[]"):
        return f"[]{_merging(go[2:])}"
    if go.startswith("map["):
        return f"{{}}{_merging(go.partition(']')[2])}"
    plain = go_types.plain(go)
    return _merging(plain) if plain != go else _SCALARS_OF_GO.get(go, go)


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


def resolve(expression: str | Type) -> Type:
    """The type that the table writes so; a type that stands in no table is itself."""
    return expression if isinstance(expression, Type) else _resolved(expression)


@lru_cache(None)
def _resolved(expression: str) -> Type:
    if expression[0] in "[{" or expression in _SCALARS or expression == "any":
        return _parse(expression)
    named = find_type(expression.rstrip("!~"))
    if named is None:
        raise KeyError(expression)
    if expression[-1] not in "!~":
        return named
    return Type(named.kind, named.scalar, expression[-1] == "!", named.element, named.keys, named.fields)


@lru_cache(None)
def find_type(name: str) -> Type | None:
    """By its name in the table, as ``core.v1.PodSpec``."""
    leaf = go_types.leaf(name)
    if leaf is not None:
        return _parse(leaf[0])
    if go_types.fields_of(name) is None:
        return None
    return Type(STRUCT, is_atomic=go_types.is_atomic(name), fields=dict(sorted(_fields(name))))


@lru_cache(None)
def names_in_order(expression: str) -> tuple[str, ...]:
    """The names of the fields of a struct of the table, in Go's order."""
    return tuple(name for name, _ in _fields(expression.rstrip("!~")))


def find(api_version: str, kind: str) -> str | None:
    """The name of the type of a kind's objects, for :func:`resolve`; None: the table has no such kind."""
    return go_types.of_kind(api_version, kind)


def field_type(expression: str | Type, name: str) -> str | Type:
    """The type of a field of a struct, for :func:`resolve`. Raises KeyError."""
    fields = resolve(expression).fields
    assert fields is not None
    return fields[name].type


def element_of(kind: Type, name: str) -> Type | None:
    """The type of a field or an entry of a map; None: there is no such field."""
    found = kind.fields.get(name) if kind.fields is not None else None
    if found is None and kind.fields is not None and not kind.element:
        return None
    element = kind.element if found is None else found.type
    return element if isinstance(element, Type) else _resolved(element)  # resolve, inlined


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


def stated_empties(expression: str | Type, value: Json) -> Iterator[go_structs.Path]:
    """Where an object states lists and maps that have nothing."""
    kind = resolve(expression)
    if isinstance(value, list):
        if kind.kind is LIST:
            for index, one in enumerate(value):
                yield from ((index, *path) for path in stated_empties(kind.element, one))
    elif isinstance(value, dict) and kind.fields is not None:
        for name, inner in value.items():
            field = kind.fields.get(name)
            if field is None or not isinstance(inner, list | dict):
                continue
            if inner:
                yield from ((name, *path) for path in stated_empties(field.type, inner))
            elif resolve(field.type).kind in (LIST, MAP):
                yield (name,)


def as_go_writes(expression: str | Type, value: Json) -> Json:
    """JSON as kemu has it, with the fields that Go writes though they are not set and without those that it leaves out
    though they are. The value is not changed. ``expression``: of its type."""
    write = completer(expression)
    return write(value) if write is not None else value


class _Struct:
    """Writes the fields of a struct."""

    __slots__ = ("_fields", "_known", "_zeros")

    def __init__(self, known: dict[str, Field]) -> None:
        self._known = known
        self._fields: dict[str, tuple[Callable[[Any], Any] | None, bool]] = {}
        self._zeros: list[tuple[str, Any, Callable[[Any], Any] | None]] = []

    def _prepare(self) -> None:
        """When it is used first: structs may hold themselves."""
        fields = self._known
        self._fields = {name: (completer(one.type), one.omits or one.has_zero) for name, one in fields.items()}
        self._zeros = [(name, one.zero, completer(one.type)) for name, one in fields.items() if one.has_zero]

    def __call__(self, value: Json) -> Json:
        if not isinstance(value, dict):
            return value
        if not self._fields:
            self._prepare()
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


def completer(expression: str | Type) -> Callable[[Any], Any] | None:
    """What :func:`as_go_writes` does to values of a type. None: nothing."""
    return _writer_of(expression) if isinstance(expression, Type) else _named_writer(expression)


@lru_cache(None)
def _named_writer(expression: str) -> Callable[[Any], Any] | None:
    return _writer_of(resolve(expression))


def _writer_of(kind: Type) -> Callable[[Any], Any] | None:
    if kind.fields is not None:
        return _Struct(kind.fields)
    write = completer(kind.element) if kind.kind is LIST else None
    if write is None:
        return None

    def write_list(value: Json) -> Json:
        return [write(one) for one in value] if isinstance(value, list) else value

    return write_list
