"""JSON and YAML in bodies that the gateway itself has to read."""

from __future__ import annotations

import json
from typing import Any

import yaml

from kemu.errors import BadRequest
from kemu.gateway.requests import negotiation
from kemu.objects.conversion import yaml_texts


def mapping(data: bytes, media: str) -> dict[str, Any]:
    """Raises :class:`kemu.errors.BadRequest`."""
    try:
        found = json.loads(data) if media == negotiation.JSON else yaml_texts.load(data)[0]
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise BadRequest(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(found, dict):
        raise BadRequest("couldn't get version/kind; json parse error: the body is no object")
    return found
