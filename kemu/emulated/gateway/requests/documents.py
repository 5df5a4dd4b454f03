"""JSON and YAML in bodies that the gateway itself has to read, or spares the API servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import yaml

from kemu.emulated.apiserver.registry import bodies as registry_bodies
from kemu.emulated.gateway.requests import negotiation
from kemu.emulated.objects.conversion import go_syntax, sizes, yaml_texts
from kemu.emulated.objects.plain import Json
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
            if problem := go_syntax.problem(data):
                raise _unparsed(problem)
            found = json.loads(data)
        else:
            found = yaml_texts.load(data)[0]
    except yaml.YAMLError as error:
        raise BadRequest(f"yaml: {registry_bodies.yaml_problem(error)}") from None
    except (ValueError, RecursionError) as error:
        raise _unparsed(str(error)) from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _unparsed(f"json: cannot unmarshal {_kind(found)} into Go value of type {registry_bodies.TYPE_META}")
    for name in ("apiVersion", "kind"):
        value = found.get(name)
        if value is not None and not isinstance(value, str):
            raise _unparsed(f"json: cannot unmarshal {_kind(value)} into Go struct field .{name} of type string")
    return found


def _unparsed(why: str) -> BadRequest:
    return BadRequest(f"couldn't get version/kind; json parse error: {why}")


def _kind(value: Json) -> str:
    names = {bool: "bool", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "number")


def text(found: dict[str, Any]) -> bytes:
    return json.dumps(found).encode()
