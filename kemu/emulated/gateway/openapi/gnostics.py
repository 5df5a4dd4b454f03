"""OpenAPI v2 in protobuf, the form of it that client-go asks for (``openapiv2/OpenAPIv2.proto`` of gnostic)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

_DEFINITIONS, _PROPERTIES, _ITEMS, _ADDITIONAL, _TYPE, _ENUM, _EXTENSION = 9, 25, 23, 21, 22, 20, 31
_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_DOUBLES: Final = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_NUMBERS: Final = {
    "exclusiveMaximum": 8, "exclusiveMinimum": 10, "maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15,
    "uniqueItems": 16, "maxProperties": 17, "minProperties": 18,
}  # fmt: skip
"""Booleans and integers."""


def document(swagger: Mapping[str, Any]) -> bytes:
    """``Document``: version, title and definitions; there are no operations."""
    info = _field(1, swagger["info"]["title"].encode()) + _field(2, swagger["info"]["version"].encode())
    definitions = b"".join(_field(1, _named(name, _schema(one))) for name, one in swagger["definitions"].items())
    return _field(1, swagger["swagger"].encode()) + _field(2, info) + _field(_DEFINITIONS, definitions)


def _named(name: str, value: bytes) -> bytes:
    return _field(1, name.encode()) + _field(2, value)


def _schema(schema: Mapping[str, Any]) -> bytes:
    found: list[bytes] = []
    for word, value in schema.items():
        if word in _TEXTS:
            found.append(_field(_TEXTS[word], value.encode()))
        elif word in _DOUBLES:
            found.append(_varint(_DOUBLES[word] << 3 | 1) + struct.pack("<d", value))
        elif word in _NUMBERS:
            found.append(_varint(_NUMBERS[word] << 3) + _varint(int(value)))
        elif word == "required":
            found += [_field(19, one.encode()) for one in value]
        elif word == "enum":
            found += [_field(_ENUM, _yaml(one)) for one in value]
        elif word == "type":
            found.append(_field(_TYPE, _field(1, value.encode())))
        elif word == "items":
            found.append(_field(_ITEMS, _field(1, _schema(value))))
        elif word == "additionalProperties":
            is_schema = isinstance(value, Mapping)
            of_any = _field(1, _schema(value)) if is_schema else _varint(2 << 3) + _varint(int(value))
            found.append(_field(_ADDITIONAL, of_any))
        elif word == "properties":
            properties = b"".join(_field(1, _named(name, _schema(one))) for name, one in value.items())
            found.append(_field(_PROPERTIES, properties))
        elif word.startswith("x-"):
            found.append(_field(_EXTENSION, _named(word, _yaml(value))))
    return b"".join(found)


def _yaml(value: object) -> bytes:
    """``Any``; JSON is YAML."""
    return _field(2, json.dumps(value, ensure_ascii=False).encode())


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
