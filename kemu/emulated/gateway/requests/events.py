"""Requests about events in the form of events.k8s.io, as requests about the same events in the form that is stored."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import yaml

from kemu.emulated.gateway.requests import bodies, documents, negotiation
from kemu.emulated.gateway.requests.bodies import Body
from kemu.emulated.objects import events
from kemu.emulated.objects.conversion import go_values, sizes
from kemu.errors import BadRequest
from kemu.messages.k8s import events_v1_pb2
from kemu.messages.v1 import api_pb2

_TERM = re.compile(r"(?P<field>[^=!,]+)(?P<rest>[^,]*)")


def body(found: Body) -> Body:
    """Raises :class:`kemu.errors.BadRequest`."""
    if found.content_type:
        document = events.renamed(documents.mapping(found.data, found.content_type))
        return found._replace(data=json.dumps(document).encode(), content_type=negotiation.JSON)
    message = bodies.parse(found, events.ROW.message)
    go_values.trim(message)
    return found._replace(data=events.stored(cast(events_v1_pb2.Event, message)).SerializeToString(deterministic=True))


def patch(kind: api_pb2.PatchRequest.Type, data: bytes) -> bytes:
    """Raises :class:`kemu.errors.BadRequest`."""
    if kind == api_pb2.PatchRequest.APPLY:
        return yaml.safe_dump(events.renamed(documents.mapping(data, negotiation.YAML))).encode()
    sizes.check_json(data)
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"error decoding patch: {error}") from None
    if kind != api_pb2.PatchRequest.JSON:
        return json.dumps(events.renamed(found)).encode() if isinstance(found, dict) else data
    if not isinstance(found, list):
        return data
    for operation in found:
        for name in ("path", "from"):
            if isinstance(operation, dict) and isinstance(operation.get(name), str):
                operation[name] = events.renamed_path(operation[name])
    return json.dumps(found).encode()


def selector(text: str) -> str:
    """A field selector."""
    return _TERM.sub(lambda term: events.selected(term["field"]) + term["rest"], text)
