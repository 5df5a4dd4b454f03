"""Fields, keys and indexes of values, and objects that expressions construct."""

from __future__ import annotations

from kemu.emulated.cel import types
from kemu.emulated.cel.providers import PATCH_NAME
from kemu.emulated.cel.types import Type
from kemu.emulated.cel.values import (
    Constructed,
    Error,
    ListLike,
    Uint,
    Value,
    go_type,
    is_list,
    is_map,
    plain,
    text,
    type_name,
)
from kemu.emulated.cel.values import find as find_in_map

PATCH = PATCH_NAME
_PATCH_FIELDS: dict[str, Type] = {"op": types.STRING, "path": types.STRING, "from": types.STRING, "value": types.DYN}
#: The type of ``JSONPatch{op: …, path: …, from: …, value: …}``.
PATCH_TYPE = types.object_of(PATCH, _PATCH_FIELDS)
_KEYS = frozenset({str, int, bool, float, Uint})


def is_dynamic(name: str) -> bool:
    """Whether objects of this type have any field, as those have that mutations construct."""
    return name == "Object" or name.startswith("Object.")


def construct(name: str, fields: dict[str, Value]) -> Value:
    """An object of a type that can be constructed."""
    if is_dynamic(name) or name == PATCH:
        return Constructed(name, fields)
    return Error(f"unknown type '{name}'")


def index(values: Value, key: Value) -> int | Error:
    """The position that a key states in a list."""
    kind = type(key)
    if kind is int or (kind is Uint and key < 1 << 63):
        return int(key)
    if kind is float and key.is_integer() and abs(key) < 2.0**63:
        return int(key)
    if kind is Uint or kind is float:
        return Error(f"unsupported index value {text(key)} in list")
    return Error(f"unsupported index type '{type_name(key)}' in list")


def get(value: Value, key: Value, dynamic_object: bool) -> Value:
    """``value[key]`` or ``value.key``: the value, or an `Error` if it has none."""
    if isinstance(value, Constructed):
        if dynamic_object:
            return plain(value.fields.get(key))
        if value.type_name == PATCH and key in _PATCH_FIELDS:
            return value.fields.get(key, None if key == "value" else "")
    found, present = find(value, key, dynamic_object)
    if present or type(found) is Error:
        return found
    return Error(f"{'index out of bounds' if is_list(value) else 'no such key'}: {text(key)}")


def refusal(key: Value) -> Error | None:
    """The error of a key that is one of nothing."""
    return None if type(key) in _KEYS else Error(f"invalid qualifier type: {go_type(key)}")


def find(value: Value, key: Value, dynamic_object: bool) -> tuple[Value, bool]:
    """The value and whether there is one; an `Error` if the key is of no use for the value."""
    if type(value) is Error:
        return value, False
    refused = refusal(key) if type(key) not in _KEYS else None
    if refused is not None:
        return refused, False
    if is_map(value):
        found, present = find_in_map(value, key)
        return found, present and type(found) is not Error
    if is_list(value):
        at = index(value, key)
        if isinstance(at, Error):
            return at, False
        if not 0 <= at < len(value):
            return None, False
        if isinstance(value, ListLike):
            return value.item(at) if type(key) is int else Error(f"unsupported index: {text(key)}"), True
        return value[at], True
    if isinstance(value, Constructed):
        return _field(value, key, dynamic_object)
    return None, False


def _field(value: Constructed, key: Value, dynamic_object: bool) -> tuple[Value, bool]:
    if value.type_name == PATCH:
        if key == "value":
            return value.fields.get("value"), "value" in value.fields
        content = value.fields.get(key, "")
        return content, key in value.fields and content != ""
    if dynamic_object:
        return value.fields.get(key), key in value.fields
    return None, False
