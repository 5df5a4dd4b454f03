"""kemu's patches in messages, as strategic merge patches in JSON, which a real API server knows.

``removed`` names what goes, ``patch`` what is set (``PatchRequest.MESSAGE`` in ``proto/kemu/v1/api.proto``). An element
of a list that merges by key replaces the one of its key there, while Kubernetes merges the two: what the element does
not set is sent as null.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from kemu.emulated.apiserver.registry.patching.patches import MERGE_KEYS, SET
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2

_TEXTS = ("Time", "MicroTime", "Quantity", "IntOrString", "FieldsV1")
"""Messages that are no objects in JSON."""


def strategic(message: type[Message], patch: bytes, removed: bytes) -> dict[str, Any]:
    """A patch of an object of that class."""
    wanted = message.FromString(patch)
    result = _set(wanted, convert.to_json(wanted))
    if removed:
        _remove(message.FromString(removed), result)
    return result


def _set(message: Message, data: dict[str, Any]) -> dict[str, Any]:
    keys = MERGE_KEYS.get(message.DESCRIPTOR.name, {})
    for field, value in message.ListFields():
        name, inner = field.name, field.message_type
        if name not in data or inner is None or inner.GetOptions().map_entry:
            continue
        if field.is_repeated:
            if keys.get(name):
                data[name] = [_whole(one, part) for one, part in zip(value, data[name], strict=True)]
        elif isinstance(data[name], dict):
            _set(value, data[name])
    return data


def _whole(element: core_v1_pb2.NodeCondition | core_v1_pb2.PodCondition, data: dict[str, Any]) -> dict[str, Any]:
    """An element that leaves nothing of the one whose place it takes."""
    return {**{field.name: None for field in element.DESCRIPTOR.fields if field.name not in data}, **data}


def _remove(removed: Message, patch: dict[str, Any]) -> None:
    """Adds to ``patch`` what takes away the fields of ``removed`` that it does not set."""
    keys = MERGE_KEYS.get(removed.DESCRIPTOR.name, {})
    for field, value in removed.ListFields():
        name, inner = field.name, field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            entries = patch.setdefault(name, {})
            for key in sorted(value):
                entries.setdefault(key, None)
        elif field.is_repeated:
            key = keys.get(name)
            if key:
                elements = patch.setdefault(name, [])
                set_already = [element[key] for element in elements]
                for one in value:
                    if getattr(one, key) not in set_already:
                        elements.append({key: getattr(one, key), "$patch": "delete"})
            elif key == SET:
                patch[f"$deleteFromPrimitiveList/{name}"] = list(value)
            else:
                patch.setdefault(name, None)
        elif inner is not None:
            within = patch.setdefault(name, None if inner.name in _TEXTS else {})
            if isinstance(within, dict):
                _remove(value, within)
        else:
            patch.setdefault(name, None)
