"""Declared types of OpenAPI schemas, as Kubernetes derives them for rules of custom resources and admission
policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kemu.emulated.cel import types
from kemu.emulated.cel.documents import Schema, with_object_meta
from kemu.emulated.cel.names import escape, unescape
from kemu.emulated.cel.types import Type

__all__ = ["declared", "escape", "max_cardinality", "unescape"]

#: The bytes of the largest request that the API server takes.
MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024

_LONGEST_TIME: Final = 32
_DATE: Final = 12


def declared(schema: Mapping[str, Any], *, root: bool = False, name: str = "selfType") -> Type | None:
    """The type of values of `schema` (JSON of an OpenAPI v3 schema), or None if expressions cannot see them.

    `root`: the schema is of a whole object, so ``apiVersion``, ``kind``, ``metadata.name`` and
    ``metadata.generateName`` are known. `name`: the name of the object type, from which the names of nested ones
    follow; no variable may have it. JSON of a variable of this type is read through the schema.
    """
    return _declared(with_object_meta(schema) if root else schema, name)


def max_cardinality(declared_type: Type) -> int:
    """How often at most a value of a type occurs in one request, if lists or maps without limits are around it."""
    return MAX_REQUEST_BYTES // (declared_type.min_serialized + 1)


def _declared(schema: Schema, name: str) -> Type | None:
    if schema.get("x-kubernetes-int-or-string"):
        size = _text_length(schema) if schema.get("maxLength") is not None else MAX_REQUEST_BYTES - 2
        return Type("dyn", "dyn", max_elements=size, min_serialized=1, schema=schema)
    match schema.get("type"):
        case "array":
            return _list(schema, name)
        case "object":
            values = schema.get("additionalProperties")
            return _map(schema, values, name) if isinstance(values, Mapping) else _object(schema, name)
        case "string":
            return _string(schema)
        case "boolean":
            return types.Type("bool", "bool", min_serialized=4, schema=schema)
        case "number":
            return types.Type("double", "double", schema=schema)
        case "integer":
            return types.Type("int", "int", schema=schema)
    return None


def _nested(schema: Schema, name: str) -> Type | None:
    return _declared(with_object_meta(schema) if schema.get("x-kubernetes-embedded-resource") else schema, name)


def _list(schema: Schema, name: str) -> Type | None:
    items = schema.get("items")
    item = _nested(items, f"{name}.@idx") if isinstance(items, Mapping) else None
    if item is None:
        return None
    limit = schema.get("maxItems")
    most = max(limit, 0) if limit is not None else (MAX_REQUEST_BYTES - 2) // (item.min_serialized + 1)
    return Type("list", "list", (item,), max_elements=most, min_serialized=2, schema=schema)


def _map(schema: Schema, values: Schema, name: str) -> Type | None:
    value = _nested(values, f"{name}.@elem")
    if value is None:
        return None
    limit = schema.get("maxProperties")
    most = max(limit, 0) if limit is not None else (MAX_REQUEST_BYTES - 2) // (value.min_serialized + 6)
    return Type("map", "map", (types.STRING, value), max_elements=most, min_serialized=2, schema=schema)


def _object(schema: Schema, name: str) -> Type:
    required = frozenset(schema.get("required") or ())
    fields: dict[str, Type] = {}
    least = 2
    for property_, inner in (schema.get("properties") or {}).items():
        identifier = escape(property_)
        field = _nested(inner, f"{name}.{identifier or property_}")
        if field is None:
            continue
        if identifier is not None:
            fields[identifier] = field
        if property_ in required and inner.get("default") is None:
            least += len(property_.encode()) + field.min_serialized + 4
    return Type("struct", name, fields=fields, min_serialized=least, schema=schema)


def _text_length(schema: Schema) -> int:
    return max(int(schema["maxLength"]), 0) * 4


def _string(schema: Schema) -> Type:
    limit = schema.get("maxLength")
    match schema.get("format"):
        case "byte":
            size = max(int(limit), 0) if limit is not None else MAX_REQUEST_BYTES - 2
            return Type("bytes", "bytes", max_elements=size, min_serialized=2, schema=schema)
        case "duration":
            return Type("duration", types.DURATION.name, max_elements=_LONGEST_TIME, min_serialized=3, schema=schema)
        case "date":
            return Type("timestamp", types.TIMESTAMP.name, max_elements=_DATE, min_serialized=_DATE, schema=schema)
        case "date-time":
            return Type("timestamp", types.TIMESTAMP.name, max_elements=_LONGEST_TIME, min_serialized=21, schema=schema)
    if limit is not None:
        size = _text_length(schema)
    elif schema.get("enum"):
        size = max((len(value.encode()) for value in schema["enum"] if isinstance(value, str)), default=0)
    else:
        size = MAX_REQUEST_BYTES - 2
    return Type("string", "string", max_elements=size, min_serialized=2, schema=schema)
