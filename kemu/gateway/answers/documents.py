"""Objects as JSON text."""

from __future__ import annotations

import json
from typing import Any

import yaml

from kemu.objects.conversion import convert
from kemu.objects.managed_fields import schemas
from kemu.objects.resources import Resource

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_human = json.JSONEncoder(ensure_ascii=False, indent=2)


def of_object(row: Resource, message: Any) -> dict[str, Any]:
    """The fields of an object of a resource, with those that Kubernetes writes though they are not set."""
    data = convert.to_json(message)
    name = schemas.find(row.api_version, row.kind)
    found: dict[str, Any] = schemas.as_go_writes(name, data) if name is not None else data
    return found


def of(message: Any) -> dict[str, Any]:
    """The fields of an object, without kind and API version."""
    return convert.to_json(message)


def text(document: Any) -> bytes:
    return _encoder.encode(document).encode()


def indented(document: bytes) -> bytes:
    return _human.encode(json.loads(document)).encode()


def as_yaml(document: bytes) -> bytes:
    return yaml.safe_dump(json.loads(document), allow_unicode=True, default_flow_style=False).encode()
