"""Structs of Kubernetes' internal types as Go's JSON encoder writes them, in messages about refused values.

Internal types have no JSON tags: every field is there, by its Go name. They have the fields of the types of the API,
mostly in their order; types of ``meta/v1`` are the same ones, and have their tags.

Until an object is stored, Go keeps ``[]`` and ``{}`` apart from null; messages do not. So those that the body of a
request states stand in :data:`STATED` while it is carried out.
"""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
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
_EMBEDDED = ("meta.v1.TypeMeta", "meta.v1.ObjectMeta")
"""Without a name for JSON they are part of the struct that embeds them."""
_POD_SPEC, _CONTEXT = "core.v1.PodSpec", "core.v1.PodSecurityContext"
_NOT_IN_POD_SPEC = ("serviceAccount", "hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""All but the first, which is gone, are in its security context there."""
_AFTER: dict[str, dict[str, str]] = {
    _POD_SPEC: {"setHostnameAsFQDN": "subdomain", "preemptionPolicy": "priority", "overhead": "runtimeClassName"},
    _CONTEXT: {"fsGroupChangePolicy": "fsGroup"},
    "core.v1.VolumeSource": {"quobyte": "rbd"},
    "core.v1.PersistentVolumeSource": {"quobyte": "rbd", "flexVolume": "iscsi"},
}
"""Fields that stand elsewhere in internal types than in those of the API: each, and the one before it."""
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


Path = tuple[str | int, ...]
"""From an object: JSON names of fields and indexes."""

STATED: ContextVar[frozenset[Path]] = ContextVar("stated", default=frozenset())
"""Lists and maps without anything that a request states."""


@contextlib.contextmanager
def stating(empties: Iterable[Path]) -> Iterator[None]:
    """For what is said about a request."""
    was = STATED.set(frozenset(empties))
    try:
        yield
    finally:
        STATED.reset(was)


def value(message: Message, path: Path | None = None) -> Json:
    """The JSON value; fields of structs in Go's order, keys of maps sorted. ``path``: where it stands in the object of
    a request; None: it is of another one, or that makes no difference."""
    name = message.DESCRIPTOR.full_name
    if name in json_writers.PLAIN:
        return convert.to_value(message)
    return _value(name.removeprefix(_MESSAGES), message, path if STATED.get() else None)


def text(data: Json, *, indent: int | None = None) -> str:
    """``json.Marshal``, or with an indent ``json.MarshalIndent``."""
    separators = (",", ":") if indent is None else (",", ": ")
    # Outside of strings none of these characters occurs.
    return json.dumps(data, ensure_ascii=False, separators=separators, indent=indent).translate(_ESCAPED)


def diff(old: Message, new: Message, path: Path | None = None) -> str:
    """How two structs differ (``k8s.io/apimachinery/pkg/util/diff``). ``path``: that of the new one."""
    shown = value(old), value(new, path)
    before, after = (f"{text(one, indent=1)}\n".splitlines(keepends=True) for one in shown)
    # The first two lines would name files.
    return "".join(list(difflib.unified_diff(before, after))[2:])


def nothing(empty: Json, path: Path) -> Json:
    """A list or map that has nothing: what is empty, or null if the request does not state it."""
    return empty if path in STATED.get() else None


def _value(name: str, held: object, path: Path | None) -> Json:
    given: Any = held
    if name == go_members.QUANTITY:
        return "0" if given is None else _quantity(given.string)
    if name in _LEAVES:
        return None if given is None else convert.to_value(given)
    pair = go_types.map_types(name)
    if pair is not None:
        if not given:
            return None if path is None else nothing({}, path)
        return {key: _value(pair[1], given[key], None) for key in sorted(given)}
    element = go_types.element_type(name)
    if element is not None:
        if not given:
            return None if path is None else nothing([], path)
        return [_value(element, one, _below(path, index)) for index, one in enumerate(given)]
    if go_types.fields_of(name) is not None:
        return _struct(name, given, path)
    if isinstance(given, Message):
        return convert.to_value(given)  # JSON of its own: ``runtime.RawExtension``
    plain = go_types.plain(name)
    if plain == "string":
        return given or ""
    return bool(given) if plain == "bool" else given or 0


def _below(path: Path | None, step: str | int) -> Path | None:
    return None if path is None else (*path, step)


def _struct(name: str, message: Message | None, path: Path | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    is_tagged = name.startswith(_META)
    for field in _fields(name):
        given = go_members.read(message, name, field)
        if not field.json or (field.type in _EMBEDDED and not is_tagged):
            found.update(_struct(field.type, given, path))
            continue
        written = _member(field, given, _below(path, field.json))
        if not is_tagged:
            found[field.name] = written
        elif field.is_always_there or (given is not None if field.type.startswith("*") else written):
            found[field.json] = written
    if name == _POD_SPEC:
        fields = {field.json: field for field in go_types.fields_of(name) or ()}
        context = {
            fields[one].name: _member(fields[one], go_members.read(message, name, fields[one]), None)
            for one in _NOT_IN_POD_SPEC[1:]
        }
        given = go_members.read(message, name, fields["securityContext"])
        found["SecurityContext"] = {**context, **_struct(_CONTEXT, given, None)}
    return found


def _member(field: Field, given: object, path: Path | None) -> Json:
    if given is None and field.type.startswith("*"):
        return None
    return _value(field.type.removeprefix("*"), given, path)


@lru_cache(256)
def _fields(name: str) -> tuple[Field, ...]:
    fields = {field.json or field.type: field for field in go_types.fields_of(name) or ()}
    order = [one for one in fields if not (name == _POD_SPEC and one in _NOT_IN_POD_SPEC)]
    for moved, before in _AFTER.get(name, {}).items():
        order.remove(moved)
        order.insert(order.index(before) + 1, moved)
    return tuple(fields[one] for one in order)


def _quantity(given: str) -> str:
    try:
        return str(quantities.parse(given))
    except ValueError:
        return given
