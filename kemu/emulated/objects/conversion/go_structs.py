"""Objects as the API server's own types have them, in the JSON of its error texts.

What it checks are its own structs, not those of the API: their fields have no names for JSON, so each stands there
under its Go name, set or not. Of types that both share (``meta.v1``) JSON is as usual.
"""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from kemu.emulated.objects.conversion import convert, descriptors
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.plain import Json

_SHARED = "meta.v1."
_EMBEDDED = ("meta.v1.TypeMeta", "meta.v1.ObjectMeta")
"""Without a name for JSON they are part of the struct that embeds them."""
_ZEROS: dict[str, Json] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}


def to_value(message: Message) -> Json:
    """Fields in Go's order."""
    return _value(message.DESCRIPTOR.full_name.removeprefix("kemu.k8s."), message)


def _write_struct(name: str, message: Message | None, found: dict[str, Any]) -> None:
    is_shared = name.startswith(_SHARED)
    for field in go_types.fields_of(name) or ():
        if not field.json or (field.type in _EMBEDDED and not is_shared):
            _write_struct(field.type, _member(message, field), found)
            continue
        value = _member(message, field)
        is_empty = value is None or (not field.type.startswith("*") and not value)
        if is_shared and is_empty and not field.is_always_there:
            continue
        found[field.json if is_shared else field.name] = _value(field.type, value)


def _member(message: Message | None, field: go_types.Field) -> Any:
    """None: it is not set, or empty."""
    if message is None:
        return None
    fields = message.DESCRIPTOR.fields_by_name
    described = fields.get(field.json) if field.json else _embedded(message, field.type.rpartition(".")[2])
    if described is None:
        return None
    if described.is_repeated:
        return getattr(message, described.name) or None
    return getattr(message, described.name) if message.HasField(described.name) else None


def _embedded(message: Message, struct: str) -> FieldDescriptor | None:
    inline = (one for one in message.DESCRIPTOR.fields if descriptors.is_inline(one))
    return next((one for one in inline if one.message_type is not None and one.message_type.name == struct), None)


def _value(name: str, value: Any) -> Json:
    if name.startswith("*"):
        return None if value is None else _value(name[1:], value)
    if go_types.fields_of(name) is not None:
        found: dict[str, Any] = {}
        _write_struct(name, value, found)
        return found
    if isinstance(value, Message):
        return convert.to_value(value)
    pair = go_types.map_types(name)
    if pair is not None:
        return {key: _value(pair[1], value[key]) for key in sorted(value)} if value else None
    element = go_types.element_type(name)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if element is not None:
        return [_value(element, one) for one in value] if value else None
    if value is None:
        leaf = go_types.leaf(name)
        return leaf[1] if leaf is not None else _ZEROS.get(go_types.plain(name))
    return value
