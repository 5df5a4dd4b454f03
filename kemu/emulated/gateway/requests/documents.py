"""JSON and YAML in bodies that the gateway itself has to read, or spares the API servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import yaml

from kemu.emulated.gateway.requests import negotiation
from kemu.emulated.objects.conversion import sizes, yaml_texts
from kemu.errors import BadRequest

LARGE_BYTES = 1 << 16
"""YAML from this size on is read beside the event loop."""


class Yaml:
    """Reads large documents, one at a time, in a thread, and gives them on in JSON: a document of 3 MiB takes seconds,
    and others are served meanwhile."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def as_json(self, data: bytes) -> bytes | None:
        """None: it stays as it is, as it is small, or has something that JSON has no words for, or that an API server
        tells of: keys that stand twice, mistakes. Raises :class:`kemu.errors.RequestEntityTooLarge`."""
        if len(data) <= LARGE_BYTES:
            return None
        async with self._turn:
            return await asyncio.to_thread(_as_json, data)


def _as_json(data: bytes) -> bytes | None:
    try:
        found, twice = yaml_texts.load(data)
        return None if twice else json.dumps(found, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError, yaml.YAMLError):
        return None


def mapping(data: bytes, media: str) -> dict[str, Any]:
    """Raises :class:`kemu.errors.BadRequest`, and RequestEntityTooLarge."""
    try:
        if media == negotiation.JSON:
            sizes.check_json(data)
            found = json.loads(data)
        else:
            found = yaml_texts.load(data)[0]
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise BadRequest(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(found, dict):
        raise BadRequest("couldn't get version/kind; json parse error: the body is no object")
    return found
