"""The data of a ControllerRevision: the patch that brings a template back, as Go's JSON encoder writes it.

Revisions are compared byte by byte (``getPatch``, ``EqualRevision``), and their names are hashes of these bytes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.conversion import convert, go_members, go_values
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def patch(template: core_v1_pb2.PodTemplateSpec) -> bytes:
    """The bytes that a controller stores for a PodTemplateSpec."""
    return _patch(template.SerializeToString(deterministic=True))


@functools.lru_cache(maxsize=256)
def _patch(raw: bytes) -> bytes:
    """Controllers ask at each look at a workload, and for each of its pods."""
    document = _struct(go_members.TEMPLATE, core_v1_pb2.PodTemplateSpec.FromString(raw))
    document["$patch"] = "replace"
    return encoded({"spec": {"template": document}})


def encoded(document: Json) -> bytes:
    """JSON as Go writes a map."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    # Outside of strings none of these characters occurs.
    return text.translate(_ESCAPED).encode()


def template_of(data: bytes) -> core_v1_pb2.PodTemplateSpec:
    """The template that a patch holds. Raises ValueError."""
    document = json.loads(data)["spec"]["template"]
    document.pop("$patch", None)
    found = convert.from_json(core_v1_pb2.PodTemplateSpec, document)
    go_values.trim(found)
    return found


def _struct(name: str, message: Message | None) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for field in go_types.fields_of(name) or ():
        value = go_members.read(message, name, field)
        if not field.json:
            document.update(_struct(field.type, value))
            continue
        if field.type.startswith("*"):
            if value is not None or not field.omits:
                document[field.json] = None if value is None else _value(field.type[1:], value)
            continue
        written = _value(field.type, value)
        is_struct = go_types.fields_of(field.type) is not None or field.type in _LEAVES
        if is_struct:
            if not (field.omits_zero and value is None):
                document[field.json] = written
        elif written or not field.omits:
            document[field.json] = written
    return document


def _value(name: str, value: Any) -> Json:
    written = _LEAVES.get(name)
    if written is not None:
        return written(value)
    pair = go_types.map_types(name)
    if pair is not None:
        return {key: _value(pair[1], value[key]) for key in value} if value else None
    element = go_types.element_type(name)
    if element is not None:
        return [_value(element, one) for one in value] if value else None
    if go_types.fields_of(name) is not None:
        return _struct(name, value)
    plain = go_types.plain(name)
    if plain == "string":
        return value or ""
    if plain == "bool":
        return bool(value)
    return int(value or 0)


def _quantity(value: meta_v1_pb2.Quantity) -> str:
    return "0" if value is None else str(quantities.parse(value.string))


def _int_or_string(value: meta_v1_pb2.IntOrString) -> int | str:
    if value is None:
        return 0
    return str(value.strVal) if value.type else int(value.intVal)


def _time(value: Json) -> None:
    """Templates carry no times."""


_LEAVES: dict[str, Callable[[Any], Json]] = {
    go_members.QUANTITY: _quantity,
    go_members.INT_OR_STRING: _int_or_string,
    go_members.TIME: _time,
}
