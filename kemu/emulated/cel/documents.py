"""JSON of custom resources as values: read through the schema that declares their types.

Kubernetes wraps documents so that lists with a list type compare and add as sets and maps do, strings with a format
are times or bytes, and properties that no schema names are invisible.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from kemu.emulated.cel import names, numbers, times
from kemu.emulated.cel.values import (
    NO_OVERLOAD,
    Error,
    ListLike,
    MapLike,
    Opaque,
    Value,
    equal,
    find,
    is_list,
    is_map,
    item,
)

Schema: TypeAlias = Mapping[str, Any]

_STRINGS: Schema = {"type": "string"}
_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def with_object_meta(schema: Schema) -> Schema:
    """The schema of a whole object: with ``apiVersion``, ``kind`` and the two names of ``metadata``."""
    properties = schema.get("properties") or {}
    metadata = properties.get("metadata") or {}
    inner = metadata.get("properties") or {}
    strings = (properties.get("kind"), properties.get("apiVersion"), inner.get("name"), inner.get("generateName"))
    if metadata.get("type") == "object" and all(part is not None and part.get("type") == "string" for part in strings):
        return schema
    named = {"type": "object", "properties": {"name": _STRINGS, "generateName": _STRINGS}}
    return {**schema, "properties": {**properties, "kind": _STRINGS, "apiVersion": _STRINGS, "metadata": named}}


def read(value: Value, schema: Schema) -> Value:
    """A value of a document as expressions see it; an `Error` if it is not of its schema."""
    if value is None:
        return None if schema.get("nullable") else Error("invalid data, got null for schema with nullable=false")
    kind = schema.get("type", "")
    python = type(value)
    if schema.get("x-kubernetes-int-or-string"):
        if python is str or python is int:
            return value
        return Error("invalid data, expected XIntOrString value to be either a string or integer")
    match kind:
        case "object":
            if python is not dict:
                return Error("invalid data, expected a map for the provided schema with type=object")
            return _object(value, schema)
        case "array":
            return _array(value, schema)
        case "string":
            return _string(value, schema.get("format", ""))
        case "number":
            if python is float or python is int:
                return float(value)
            return Error(f"invalid data, expected float, got {_GO_TYPES.get(python, python.__name__)}")
        case "integer":
            return (
                value
                if python is int
                else Error(f"invalid data, expected int, got {_GO_TYPES.get(python, python.__name__)}")
            )
        case "boolean":
            return (
                value
                if python is bool
                else Error(f"invalid data, expected bool, got {_GO_TYPES.get(python, python.__name__)}")
            )
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return Unknown(value)
    return Error(
        "invalid type, expected object, array, number, integer, boolean or string, or no type with "
        f"x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {kind}"
    )


def _object(value: dict[str, Value], schema: Schema) -> Value:
    if schema.get("x-kubernetes-embedded-resource"):
        schema = with_object_meta(schema)
    properties = schema.get("properties")
    if properties or schema.get("x-kubernetes-embedded-resource"):
        return Object(value, properties or {}, None)
    values = schema.get("additionalProperties")
    return Object(value, None, values if isinstance(values, Mapping) else None)


def _array(value: Value, schema: Schema) -> Value:
    if type(value) is not list:
        return Error("invalid data, expected an array for the provided schema with type=array")
    items = schema.get("items")
    if items is None:
        return Error("invalid array type, expected Items with a non-empty Schema")
    match schema.get("x-kubernetes-list-type") or "atomic":
        case "map":
            keys = [names.escape(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ()]
            return MapList(value, items, tuple(keys))
        case "set":
            return SetList(value, items)
        case "atomic":
            return List(value, items)
        case other:
            return Error(f"invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got {other}")


def _string(value: Value, form: str) -> Value:
    if type(value) is not str:
        return Error(f"invalid data, expected string, got {_GO_TYPES.get(type(value), type(value).__name__)}")
    match form:
        case "duration":
            duration = times.parse_duration(value)
            return (
                duration
                if duration is not None
                else Error(f"Invalid duration {value}: unable to parse {value} as duration")
            )
        case "date":
            date = times.parse_date(value)
            return (
                date
                if date is not None
                else Error(f"Invalid date formatted string {value}: {_layout(value, '2006-01-02')}")
            )
        case "date-time":
            moment = times.parse_date_time(value)
            if moment is not None:
                return moment
            return Error(f"Invalid date-time formatted string {value}: {_layout(value, '2006-01-02T15:04:05')}")
        case "byte":
            try:
                return base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
            except (binascii.Error, ValueError):
                return Error(
                    f"Invalid byte formatted string {value}: illegal base64 data at input byte {_illegal(value)}"
                )
    return value


def _layout(value: str, layout: str) -> str:
    given = numbers.quoted(value)
    return f'parsing time {given} as {numbers.quoted(layout)}: cannot parse {given} as "2006"'


def _illegal(value: str) -> int:
    legal = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return next((index for index, character in enumerate(value) if character not in legal), len(value))


class Unknown(Opaque):
    """Data without a schema: it can only be compared."""

    __slots__ = ("raw",)
    type_name = "unknown"

    def __init__(self, raw: Value) -> None:
        self.raw = raw

    def equal(self, other: Value) -> Value:
        return bool(self.raw == raw(other))


def raw(value: Value) -> Value:
    """The JSON of a value, as far as it was read of a document."""
    if isinstance(value, List | Object | Unknown):
        return value.raw
    return value


class List(ListLike):
    """A list of a document. Items are read when they are asked for."""

    __slots__ = ("items", "raw")

    def __init__(self, values: list[Value], items: Schema) -> None:
        self.raw = values
        self.items = items

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[Value]:
        items = self.items
        return (read(value, items) for value in self.raw)

    def item(self, index: int) -> Value:
        if not 0 <= index < len(self.raw):
            return Error(f"index out of bounds: {index}")
        return read(self.raw[index], self.items)

    def contains(self, value: Value) -> Value:
        error: Error | None = None
        for other in self:
            found = other if type(other) is Error else equal(other, value)
            if found is True:
                return True
            if type(found) is Error and error is None:
                error = found
        return False if error is None else error

    def equal(self, other: Value) -> Value:
        if not is_list(other):
            return NO_OVERLOAD
        if len(self) != len(other):
            return False
        for index, value in enumerate(self):
            same = value if type(value) is Error else equal(value, item(other, index))
            if same is not True:
                return same
        return True

    def add(self, other: Value) -> Value:
        return List([*self.raw, *map(raw, other)], self.items) if is_list(other) else NO_OVERLOAD


class SetList(List):
    """A list with the list type ``set``: the order does not matter, and a sum has no item twice."""

    __slots__ = ()

    def equal(self, other: Value) -> Value:
        if not is_list(other):
            return NO_OVERLOAD
        if len(self) != len(other):
            return False
        known = {_key(value) for value in self.raw}
        return all(_key(raw(value)) in known for value in other)

    def add(self, other: Value) -> Value:
        if not is_list(other):
            return NO_OVERLOAD
        known = {_key(value) for value in self.raw}
        values = list(self.raw)
        for value in map(raw, other):
            if _key(value) not in known:
                known.add(_key(value))
                values.append(value)
        return SetList(values, self.items)


class MapList(List):
    """A list with the list type ``map``: items are told apart by their keys."""

    __slots__ = ("keys",)

    def __init__(self, values: list[Value], items: Schema, keys: tuple[str, ...]) -> None:
        super().__init__(values, items)
        self.keys = keys

    def _key(self, value: Value) -> Value:
        if not isinstance(value, dict):
            return None
        return tuple(_key(value.get(key)) for key in self.keys)

    def equal(self, other: Value) -> Value:
        if not is_list(other):
            return NO_OVERLOAD
        if len(self) != len(other):
            return False
        known = {self._key(value): value for value in self.raw}
        for value in other:
            key = self._key(raw(value))
            if key not in known:
                return False
            same = equal(read(known[key], self.items), value)
            if same is not True:
                return same
        return True

    def add(self, other: Value) -> Value:
        if not is_list(other):
            return NO_OVERLOAD
        values = list(self.raw)
        at = {self._key(value): index for index, value in enumerate(values)}
        for value in map(raw, other):
            key = self._key(value)
            if key in at:
                values[at[key]] = value
            else:
                values.append(value)
        return MapList(values, self.items, self.keys)


def _key(value: Value) -> Value:
    """A value by which items are told apart, as Go compares interfaces: by type and value."""
    return (type(value).__name__, value if not isinstance(value, list | dict) else repr(value))


class Object(MapLike):
    """An object with properties, or a map: ``properties`` or ``values`` declare what is visible of it."""

    __slots__ = ("properties", "raw", "values")

    def __init__(self, value: dict[str, Value], properties: Schema | None, values: Schema | None) -> None:
        self.raw = value
        self.properties = properties
        self.values = values

    def __len__(self) -> int:
        return len(self.raw)

    def _schema(self, key: str) -> Schema | None:
        if self.properties is not None:
            found = self.properties.get(key)
            return found if isinstance(found, Mapping) else None
        return self.values

    def __iter__(self) -> Iterator[Value]:
        for key in self.raw:
            if self._schema(key) is not None:
                yield (names.escape(key) or key) if self.properties is not None else key

    def find(self, key: Value) -> tuple[Value, bool]:
        if type(key) is not str:
            return NO_OVERLOAD, True
        name: str | None = key
        if self.properties is not None:
            name = names.unescape(key)
        if name is None or name not in self.raw:
            return None, False
        value = self.raw[name]
        if self.properties is not None and value is None:
            return None, False
        schema = self._schema(name)
        return (read(value, schema), True) if schema is not None else (None, False)

    def equal(self, other: Value) -> Value:
        if not is_map(other):
            return NO_OVERLOAD
        if len(self) != len(other):
            return False
        for key, value in self.raw.items():
            if self._schema(key) is not None:
                mine, found = self.find(key)
                theirs, present = find(other, key)
                if found != present:
                    return False
                if not found:
                    continue
                same = mine if type(mine) is Error else equal(mine, theirs)
                if same is not True:
                    return same
            elif not isinstance(other, Object):
                return NO_OVERLOAD
            elif key in other.raw and other.raw[key] != value:
                return False
        return True
