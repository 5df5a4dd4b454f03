"""Optional values, and the maps that two-variable comprehensions build."""

from __future__ import annotations

from typing import Final

from kemu.emulated.cel import types
from kemu.emulated.cel.declarations import Functions, Overload
from kemu.emulated.cel.times import Timestamp
from kemu.emulated.cel.types import BOOL, DYN, INT, STRING
from kemu.emulated.cel.values import (
    NONE,
    Constructed,
    Error,
    ListLike,
    MapLike,
    MutableMap,
    Optional,
    Value,
    find,
    item,
    text,
)

_K: Final = types.param("K")
_V: Final = types.param("V")
_OPTIONAL: Final = types.optional_of(_V)
_LIST: Final = types.list_of(_V)
_MAP: Final = types.map_of(_K, _V)


def _of(value: Value) -> Value:
    return Optional(True, value)


def _is_zero(value: Value) -> bool:
    match value:
        case None:
            return True
        case bool() | int() | float() | str() | bytes():
            return not value
        case list() | dict():
            return len(value) == 0
        case ListLike() | MapLike():
            return False
        case Constructed():
            return not value.fields
        case Timestamp():
            return value.seconds == -62_135_596_800 and value.nanoseconds == 0
        case _:
            return getattr(value, "nanoseconds", 1) == 0


def _of_non_zero(value: Value) -> Value:
    return NONE if _is_zero(value) else Optional(True, value)


def _value(optional: Value) -> Value:
    return optional.value if optional.present else Error("optional.none() dereference")


def _end(at: int) -> object:
    def call(values: Value) -> Value:
        size = len(values)
        return Optional(True, item(values, 0 if at == 0 else size - 1)) if size else NONE

    return call


def _unwrap(values: Value) -> Value:
    result = []
    for value in values:
        if type(value) is not Optional:
            return Error(f"value {text(value)} is not optional")
        if value.present:
            result.append(value.value)
    return result


def insert(entries: Value, key: Value, value: Value) -> Value:
    """`entries` with one more entry, whose key must be new."""
    if find(entries, key)[1]:
        return Error(f"insert failed: key {text(key)} already exists")
    if type(entries) is not MutableMap:
        entries = dict(entries)
    entries[key] = value
    return entries


def _insert_all(entries: Value, more: Value) -> Value:
    for key in more:
        entries = insert(entries, key, find(more, key)[0])
        if type(entries) is Error:
            return entries
    return entries


def declare(functions: Functions) -> None:
    functions.free("optional.of", "optional_of", (_V,), _OPTIONAL, _of)
    functions.free("optional.ofNonZeroValue", "optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero)
    functions.free("optional.none", "optional_none", (), _OPTIONAL, lambda: NONE)
    functions.member("value", "optional_value", (_OPTIONAL,), _V, _value)
    functions.member("hasValue", "optional_hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.present)
    functions.declare("or", [Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, True)])
    functions.declare("orValue", [Overload("optional_orValue_value", (_OPTIONAL, _V), _V, True)])
    functions.declare("_?._", [Overload("select_optional_field", (DYN, STRING), _OPTIONAL)])
    functions.declare(
        "_[?_]",
        [
            Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
            Overload("optional_list_optindex_optional_int", (types.optional_of(_LIST), INT), _OPTIONAL),
            Overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
            Overload("optional_map_optindex_optional_value", (types.optional_of(_MAP), _K), _OPTIONAL),
        ],
    )
    functions.declare(
        "_[_]",
        [
            Overload("optional_list_index_int", (types.optional_of(_LIST), INT), _OPTIONAL),
            Overload("optional_map_index_value", (types.optional_of(_MAP), _K), _OPTIONAL),
        ],
    )
    functions.member("last", "list_last", (_LIST,), _OPTIONAL, _end(-1))  # type: ignore[arg-type]
    functions.member("first", "list_first", (_LIST,), _OPTIONAL, _end(0))  # type: ignore[arg-type]
    optionals = types.list_of(_OPTIONAL)
    functions.free("optional.unwrap", "optional_unwrap", (optionals,), _LIST, _unwrap)
    functions.member("unwrapOpt", "optional_unwrapOpt", (optionals,), _LIST, _unwrap)
    functions.free("cel.@mapInsert", "@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, insert)
    functions.free("cel.@mapInsert", "@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all)
