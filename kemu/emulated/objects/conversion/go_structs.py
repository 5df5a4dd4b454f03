"""Structs of Kubernetes' internal types as Go's JSON encoder writes them, in messages about refused values.

Internal types have no JSON tags: every field is there, by its Go name. They have the fields of the types of the API,
mostly in their order; types of ``meta/v1`` are the same ones, and have their tags.
"""

from __future__ import annotations

import difflib
import json
from functools import lru_cache
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.conversion import convert, go_members, json_writers
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.facts.go_types import Field
from kemu.emulated.objects.plain import Json

_MESSAGES, _META = "kemu.k8s.", "meta.v1."
_LEAVES = (go_members.INT_OR_STRING, go_members.TIME, "meta.v1.MicroTime")
_MOVED = {
    "core.v1.PersistentVolumeSource": {"quobyte": "iscsi", "flexVolume": "cinder"},
}
"""Fields that stand in internal types before another one than in those of the API."""
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def value(message: Message) -> Json:
    """The JSON value; fields of structs in Go's order, keys of maps sorted."""
    name = message.DESCRIPTOR.full_name
    return convert.to_value(message) if name in json_writers.PLAIN else _value(name.removeprefix(_MESSAGES), message)


def text(data: Json, *, indent: int | None = None) -> str:
    """``json.Marshal``, or with an indent ``json.MarshalIndent``."""
    separators = (",", ":") if indent is None else (",", ": ")
    # Outside of strings none of these characters occurs.
    return json.dumps(data, ensure_ascii=False, separators=separators, indent=indent).translate(_ESCAPED)


def diff(old: Message, new: Message) -> str:
    """How two structs differ (``k8s.io/apimachinery/pkg/util/diff``)."""
    before, after = (f"{text(value(one), indent=1)}\n".splitlines(keepends=True) for one in (old, new))
    # The first two lines would name files.
    return "".join(list(difflib.unified_diff(before, after))[2:])


def _value(name: str, given: Any) -> Json:
    if name == go_members.QUANTITY:
        return "0" if given is None else _quantity(given.string)
    if name in _LEAVES:
        return None if given is None else convert.to_value(given)
    pair = go_types.map_types(name)
    if pair is not None:
        return {key: _value(pair[1], given[key]) for key in sorted(given)} if given else None
    element = go_types.element_type(name)
    if element is not None:
        return [_value(element, one) for one in given] if given else None
    if go_types.fields_of(name) is not None:
        return _struct(name, given)
    plain = go_types.plain(name)
    if plain == "string":
        return given or ""
    return bool(given) if plain == "bool" else given or 0


def _struct(name: str, message: Message | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    is_tagged = name.startswith(_META)
    for field in _fields(name):
        given = go_members.read(message, name, field)
        if not field.json:
            found.update(_struct(field.type, given))
            continue
        is_pointer = field.type.startswith("*")
        written = None if is_pointer and given is None else _value(field.type.removeprefix("*"), given)
        if not is_tagged:
            found[field.name] = written
        elif field.is_always_there or (given is not None if is_pointer else written):
            found[field.json] = written
    return found


@lru_cache(256)
def _fields(name: str) -> tuple[Field, ...]:
    fields = list(go_types.fields_of(name) or ())
    for moved, to in _MOVED.get(name, {}).items():
        field = fields.pop(next(place for place, one in enumerate(fields) if one.json == moved))
        fields.insert(next(place for place, one in enumerate(fields) if one.json == to), field)
    return tuple(fields)


def _quantity(given: str) -> str:
    try:
        return str(quantities.parse(given))
    except ValueError:
        return given
