"""Objects of custom kinds: one message for all of them, whose fields beside the metadata are JSON.

obj = convert.from_manifest({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {...}, "spec": {...}})
custom_objects.content(obj)["spec"]
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kemu.emulated.objects.conversion import go_json, json_readers
from kemu.messages.k8s import apiextensions_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject

HEAD = ("apiVersion", "kind", "metadata")
_METADATA = {"metadata": json_readers.table_of(CustomObject.DESCRIPTOR)["metadata"]}


def may_be(api_version: str) -> bool:
    """Whether a kind that kemu does not have can be a custom one: its group has a dot."""
    group, _, version = api_version.rpartition("/")
    return "." in group and bool(version)


def read(message: CustomObject, data: Mapping[str, Any], reader: json_readers.Reader) -> None:
    """Fill a message from a manifest, and tell ``reader`` of what cannot be metadata."""
    for name in ("apiVersion", "kind"):
        value = data.get(name)
        if isinstance(value, str):
            setattr(message, name, value)
        elif value is not None:
            reader.problem((None, name), f"must be a string, not {json_readers.kind_of(value)}")
    if data.get("metadata") is not None:
        json_readers.read_fields(message, {"metadata": data["metadata"]}, _METADATA, None, reader)
    try:
        put(message, {name: value for name, value in data.items() if name not in HEAD})
    except (ValueError, TypeError) as error:
        reader.problem(None, str(error))


def content(obj: apiextensions_v1_pb2.CustomObject) -> dict[str, Any]:
    """All fields but apiVersion, kind and metadata; a copy."""
    return json.loads(obj.content) if obj.content else {}


def put(obj: apiextensions_v1_pb2.CustomObject, fields: Mapping[str, Any]) -> None:
    """Make these all fields but apiVersion, kind and metadata."""
    if fields:
        obj.content = go_json.encode(dict(fields))
    else:
        obj.ClearField("content")
