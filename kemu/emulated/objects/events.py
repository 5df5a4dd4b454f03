"""Events in their two forms: that of the core group, which is stored, and that of events.k8s.io.

The same objects are read and written in both. The fields are the same, but for some of their names
(``pkg/apis/events/v1/conversion.go``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.resources import BY_MESSAGE, Resource
from kemu.messages.k8s import core_v1_pb2, events_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

STORED = BY_MESSAGE[core_v1_pb2.Event]
ROW = Resource("events", "Event", "events.k8s.io/v1", events_v1_pb2.Event, True, ("ev",), False)
"""Row of the other form."""

_NAMES = {
    "reportingController": "reportingComponent",
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""From events.k8s.io to the core group; the others have one name."""
_SHOWN = {_NAMES.get(field.name, field.name): field.name for field in events_v1_pb2.Event.DESCRIPTOR.fields}
"""And back, of all fields."""
_SELECTABLE = ("regarding.", "reportingController")


def shown(stored: core_v1_pb2.Event) -> events_v1_pb2.Event:
    """The form of events.k8s.io."""
    found = events_v1_pb2.Event()
    _fill(found, stored, _SHOWN)
    return found


def stored(found: events_v1_pb2.Event) -> core_v1_pb2.Event:
    """The form of the core group."""
    event = core_v1_pb2.Event()
    _fill(event, found, _NAMES)
    return event


def renamed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of an event of events.k8s.io, or of a part of one, as that of one of the core group.

    Names of fields that only the core group has are made such that no object has them.
    """
    found: dict[str, Any] = {}
    for name, value in document.items():
        if name == "apiVersion":
            found[name] = STORED.api_version if value == ROW.api_version else value
        elif name in _NAMES.values():
            found[f"{name} (of the core group)"] = value
        else:
            found[_NAMES.get(name, name)] = value
    return found


def renamed_operation(operation: dict[str, Any]) -> dict[str, Any]:
    """The same of an operation of a JSON patch."""
    changed = dict(operation)
    for name in ("path", "from"):
        if isinstance(changed.get(name), str):
            first, *rest = changed[name].removeprefix("/").split("/")
            changed[name] = "/" + "/".join([_NAMES.get(first, first), *rest])
    return changed


def selected(field: str) -> str:
    """The same of a field in a selector (``AddFieldLabelConversionsForEvent``)."""
    if not field.startswith(_SELECTABLE):
        return field
    first, dot, rest = field.partition(".")
    return _NAMES[first] + dot + rest


def _fill(event: KubernetesObject, other: KubernetesObject, names: Mapping[str, str]) -> None:
    """``names``: of the fields of ``other``, where they are not the same."""
    for field, value in other.ListFields():
        name = names.get(field.name, field.name)
        if isinstance(value, Message):
            getattr(event, name).CopyFrom(value)
        else:
            setattr(event, name, value)
