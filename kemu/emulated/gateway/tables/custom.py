"""Tables of custom kinds: the columns that a definition names (``registry/customresource/tableconvertor``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.emulated.gateway.tables import texts
from kemu.emulated.objects import json_paths, times
from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject, CustomResourceColumnDefinition

_NAME = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_CREATED = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_AGE = CustomResourceColumnDefinition(
    name="Age", type="date", description=_CREATED, jsonPath=".metadata.creationTimestamp"
)

Cell = str | int | float | bool | None


def _columns(row: CustomResource) -> list[CustomResourceColumnDefinition]:
    return list(row.version.additionalPrinterColumns) or [_AGE]


def columns(row: CustomResource) -> list[dict[str, Any]]:
    """``columnDefinitions``."""
    head = {"name": "Name", "type": "string", "format": "name", "description": _NAME, "priority": 0}
    return [head, *map(_document, _columns(row))]


def _document(column: CustomResourceColumnDefinition) -> dict[str, Any]:
    stated = f"Custom resource definition column (in JSONPath format): {column.jsonPath}"
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or stated,
        "priority": column.priority,
    }


def cells(row: CustomResource, obj: CustomObject, now_ns: int) -> dict[str, Any]:
    """A row of ``rows``, but for the object."""
    manifest = convert.to_manifest(obj)
    return {"cells": [obj.metadata.name, *(_cell(column, manifest, now_ns) for column in _columns(row))]}


@text_cache(1024)
def _path(text: str) -> json_paths.JsonPath | None:
    try:
        return json_paths.parse(text)
    except ValueError:
        return None


def _cell(column: CustomResourceColumnDefinition, manifest: dict[str, Any], now_ns: int) -> Cell:
    path = _path(column.jsonPath)
    values = path.find(manifest) if path is not None else []
    if not values:
        return None
    value = values[0]
    if column.type == "string":
        return json_paths.shown(value)
    convert_to = _TYPES.get(column.type)
    return None if value is None or convert_to is None else convert_to(value, now_ns)


def _integer(value: Json, now_ns: int) -> Cell:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number(value: Json, now_ns: int) -> Cell:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Json, now_ns: int) -> Cell:
    return value if isinstance(value, bool) else None


def _date(value: Json, now_ns: int) -> Cell:
    if not isinstance(value, str):
        return None
    try:
        return texts.duration(now_ns - times.parse_time(value))
    except ValueError:
        return "<invalid>"


_TYPES: dict[str, Callable[[Any, int], Cell]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
