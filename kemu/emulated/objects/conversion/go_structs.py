"""Objects as the API server's own types have them, in the JSON of its error texts.

What it checks are its own structs, not those of the API: their fields have no names for JSON, so each stands there
under its Go name, set or not. Of types that both share (``meta.v1``) JSON is as usual.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any, cast

from google.protobuf.message import Message

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.plain import Json

_SHARED = "meta.v1."
_EMBEDDED = ("meta.v1.TypeMeta", "meta.v1.ObjectMeta")
"""Without a name for JSON they are part of the struct that embeds them."""
_POD_SPEC, _CONTEXT = "core.v1.PodSpec", "core.v1.PodSecurityContext"
_NOT_IN_POD_SPEC = ("serviceAccount", "hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""All but the first, which is gone, are in its security context there."""
_AFTER: dict[str, dict[str, str]] = {
    _POD_SPEC: {"setHostnameAsFQDN": "subdomain", "preemptionPolicy": "priority", "overhead": "runtimeClassName"},
    _CONTEXT: {"fsGroupChangePolicy": "fsGroup"},
    "core.v1.VolumeSource": {"quobyte": "rbd"},
}
"""Fields that stand elsewhere than in the types of the API: each, and the one before it."""
_ZEROS: dict[str, Json] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}


def to_value(message: Message) -> Json:
    """Fields in Go's order."""
    return _value(message.DESCRIPTOR.full_name.removeprefix("kemu.k8s."), message)


@lru_cache(None)
def _fields(name: str) -> tuple[go_types.Field, ...]:
    fields = {field.json or field.type: field for field in go_types.fields_of(name) or ()}
    order = [one for one in fields if not (name == _POD_SPEC and one in _NOT_IN_POD_SPEC)]
    for moved, before in _AFTER.get(name, {}).items():
        order.remove(moved)
        order.insert(order.index(before) + 1, moved)
    return tuple(fields[one] for one in order)


def _write_struct(name: str, message: Message | None, found: dict[str, Any]) -> None:
    is_shared = name.startswith(_SHARED)
    for field in _fields(name):
        if not field.json or (field.type in _EMBEDDED and not is_shared):
            _write_struct(field.type, cast(Message | None, _member(message, field)), found)
            continue
        value = _member(message, field)
        is_empty = value is None or (not field.type.startswith("*") and not value)
        if is_shared and is_empty and not field.is_always_there:
            continue
        found[field.json if is_shared else field.name] = _value(field.type, value)
    if name == _POD_SPEC:
        fields = {field.json: field for field in go_types.fields_of(name) or ()}
        moved = [fields[one] for one in _NOT_IN_POD_SPEC[1:]]
        context = found["SecurityContext"] = {one.name: _value(one.type, _member(message, one)) for one in moved}
        _write_struct(_CONTEXT, cast(Message | None, _member(message, fields["securityContext"])), context)


def _member(message: Message | None, field: go_types.Field) -> object:
    """None: it is not set, or empty."""
    if message is None:
        return None
    described = message.DESCRIPTOR.fields_by_name.get(field.json or _embedded(message, field.type.rpartition(".")[2]))
    if described is None:
        return None
    if described.is_repeated:
        return getattr(message, described.name) or None
    return getattr(message, described.name) if message.HasField(described.name) else None


def _embedded(message: Message, struct: str) -> str:
    messages = ((one.name, one.message_type) for one in message.DESCRIPTOR.fields)
    return next((name for name, of in messages if of is not None and of.name == struct), "")


def _value(name: str, held: object) -> Json:
    value: Any = held
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
    found_value: Json = value
    return found_value
