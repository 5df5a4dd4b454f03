"""What became of objects: created, changed, conditions, gone. Of custom ones it is told without being asked for, as
nothing else tells of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject, CustomResourceDefinition
from kemu.messages.k8s.meta_v1_pb2 import ObjectMeta

_REGISTRY = "/registry/"
BEGIN = len(_REGISTRY)
"""Where the name of the resource begins in a key."""
_DEFINITIONS = f"{_REGISTRY}{custom_kinds.DEFINITIONS}/"
_METADATA = b"\n"
"""What the bytes of a custom object begin with. A real control plane has other kinds under such keys, and JSON."""
_NAMED, _LONGEST = 2, 40
"""Fields of a change that are named, and characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class ObjectFact:
    """Something that happened to one object."""

    time_ns: int
    resource: str
    """``widgets.example.com``, ``configmaps``"""
    kind: str
    key: str
    """``namespace/name``; the name alone where the kind has no namespaces."""
    what: str
    """``created changed condition ending deleted``"""
    by: str = ""
    """The manager of the fields that were written, as the object names it; empty: not known."""
    detail: str = ""
    """Of a condition ``Ready is True``."""
    why: str = ""


def is_custom(key: str) -> bool:
    """Whether a key of the store is that of a custom object."""
    return custom_kinds.is_custom(key[BEGIN : key.find("/", BEGIN)])


def defined(key: str) -> str:
    """The resource of the definition that a key is of."""
    return key.removeprefix(_DEFINITIONS)


def is_read_anew(key: str, before: bytes | None, value: bytes) -> bool:
    """Whether that is a definition of a kind whose objects the API server may answer otherwise than the store has them:
    what a schema says of defaults now, and what another version has, is filled in when they are read."""
    if not key.startswith(_DEFINITIONS) or not value.startswith(_METADATA):
        return False
    versions = CustomResourceDefinition.FromString(value).spec.versions
    if len(versions) > 1 or any(_has_default(one.schema) for one in versions):
        return True
    old = CustomResourceDefinition.FromString(before or value).spec.versions
    return len(old) != 1 or [one.schema for one in old] != [one.schema for one in versions]


def _has_default(schema: Message) -> bool:
    return '"default":' in json.dumps(convert.to_json(schema), separators=(",", ":"))


def facts(time_ns: int, key: str, before: bytes | None, value: bytes | None) -> Iterator[ObjectFact]:
    """What a change of the store says. None: the object was, or is, not there."""
    resource, _, name = key.removeprefix(_REGISTRY).partition("/")
    shown = value if value is not None else before
    if shown is None or not shown.startswith(_METADATA):
        return
    new = _read(resource, shown)
    old = _NOTHING if before is None else _read(resource, before)

    def fact(what: str, detail: str = "", why: str = "") -> ObjectFact:
        by = _manager(old, new) if value is not None else ""
        return ObjectFact(time_ns, resource, new.kind, name, what, by, detail, why)

    if value is None:
        yield fact("deleted")
        return
    was, now = old.content, new.content
    if before is None:
        yield fact("created")
    elif changes := list(_differences(_without_status(was), _without_status(now), "")):
        more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
        yield fact("changed", why=", ".join(changes[:_NAMED]) + more)
    if new.metadata.HasField("deletionTimestamp") and not old.metadata.HasField("deletionTimestamp"):
        yield fact("ending", why=f"waits for {', '.join(new.metadata.finalizers) or 'what depends on it'}")
    known = {type_: status for type_, status, _ in _conditions(was)}
    for type_, status, why in _conditions(now):
        if known.get(type_) != status:
            yield fact("condition", f"{type_} is {status}", why)
    phase = _phase(now)
    if phase and phase != _phase(was):
        yield fact("condition", f"phase is {phase}")


@dataclass(frozen=True, slots=True)
class _Object:
    kind: str
    metadata: ObjectMeta
    content: Mapping[str, Any]
    """All but that."""


_NOTHING = _Object("", ObjectMeta(), {})


def _read(resource: str, value: bytes) -> _Object:
    if custom_kinds.is_custom(resource):
        custom = CustomObject.FromString(value)
        return _Object(custom.kind, custom.metadata, json.loads(custom.content) if custom.content else {})
    found = resources.MESSAGES[resource].FromString(value)
    manifest = convert.to_manifest(found)
    content = {key: one for key, one in manifest.items() if key not in ("apiVersion", "kind", "metadata")}
    return _Object(manifest["kind"], found.metadata, content)


def _without_status(content: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in content.items() if key != "status"}


def _status(content: Mapping[str, Any]) -> Mapping[str, Any]:
    found = content.get("status")
    return found if isinstance(found, Mapping) else {}


def _phase(content: Mapping[str, Any]) -> str:
    found = _status(content).get("phase")
    return found if isinstance(found, str) else ""


def _conditions(content: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Type, status, and why; what is no condition as Kubernetes has them is left out."""
    found = _status(content).get("conditions")
    for one in found if isinstance(found, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("type"), str) and isinstance(one.get("status"), str):
            why = ": ".join(str(one[key]) for key in ("reason", "message") if one.get(key))
            yield one["type"], one["status"], why


def _differences(before: object, after: object, path: str) -> Iterator[str]:
    """``spec.size 3 → 4``, field by field; lists are compared as a whole."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _differences(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif before != after:
        yield f"{path} {_shown(before)} → {_shown(after)}"


def _shown(value: object) -> str:
    text = "none" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _manager(old: _Object, new: _Object) -> str:
    """Whose entry of the managed fields the change has written."""
    known = {entry.SerializeToString(deterministic=True) for entry in old.metadata.managedFields}
    written = (one for one in new.metadata.managedFields if one.SerializeToString(deterministic=True) not in known)
    return next((entry.manager for entry in written), "")
