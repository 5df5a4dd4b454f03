"""Which flow schema and priority level a request belongs to, as headers tell it.

The schemas are those in the cluster. The API server behind the gateway knows them, too, and makes requests wait
(:mod:`kemu.emulated.apiserver.fairness`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from kemu.emulated.apiserver.fairness import rules
from kemu.emulated.gateway.answers.responses import Header
from kemu.emulated.gateway.backends import Backend, Refused
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.objects import identities
from kemu.errors import ApiError
from kemu.messages.k8s import flowcontrol_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Clock

GROUP = "flowcontrol.apiserver.k8s.io"
_SCHEMA, _LEVEL = b"x-kubernetes-pf-flowschema-uid", b"x-kubernetes-pf-prioritylevel-uid"
FRESH_NS = 60 * SECOND_NS
"""So long what is known counts, unless a client changes it: then it is read anew."""
_REMEMBERED = 4096
"""Requests whose schema is known."""


class Flows:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._schemas: rules.Schemas | None = None
        """None: the cluster has none."""
        self._known: dict[rules.Digest, Sequence[Header]] = {}
        self._read_ns: int | None = None
        self._reading: asyncio.Task[None] | None = None

    def changed(self) -> None:
        """A client has written a schema or a level."""
        self._read_ns = None

    async def headers(self, request: Request, backend: Backend) -> Sequence[Header]:
        """None where the cluster has no schema for the request."""
        now_ns = self._clock.now_ns()
        if self._read_ns is None or now_ns - self._read_ns > FRESH_NS:
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read(backend), name="read flow schemas")
            if self._read_ns is None:
                await asyncio.shield(self._reading)
        digest = _digest(request)
        found = self._known.get(digest)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[digest] = self._find(digest)
        return found

    def _find(self, digest: rules.Digest) -> Sequence[Header]:
        if self._schemas is None:
            return ()
        schema = self._schemas.find(digest)
        level = self._schemas.level_of(schema)
        return (_SCHEMA, schema.metadata.uid.encode()), (_LEVEL, level.metadata.uid.encode())

    async def _read(self, backend: Backend) -> None:
        self._read_ns = self._clock.now_ns()
        with contextlib.suppress(Refused, ApiError):
            levels = await self._list(backend, "prioritylevelconfigurations")
            schemas = await self._list(backend, "flowschemas")
            self._schemas = None
            if levels or schemas:
                self._schemas = rules.Schemas(
                    map(flowcontrol_v1_pb2.PriorityLevelConfiguration.FromString, levels),
                    map(flowcontrol_v1_pb2.FlowSchema.FromString, schemas),
                )
            self._known.clear()

    async def _list(self, backend: Backend, plural: str) -> Sequence[bytes]:
        request = api_pb2.ListRequest(resource=api_pb2.Resource(resource=plural))
        found: Sequence[bytes] = (await backend.call("List", request, identities.ADMINISTRATOR)).items
        return found


def _digest(request: Request) -> rules.Digest:
    info = request.info
    parts = info.parts
    if parts is None:
        return rules.Digest(request.user, info.verb, "", "", "", request.path)
    resource = f"{parts.resource}/{parts.subresource}" if parts.subresource else parts.resource
    # The namespace of a namespace is itself, as in RequestInfo.
    namespace = parts.name if parts.resource == "namespaces" and not parts.group else parts.namespace
    return rules.Digest(request.user, info.verb, parts.group, resource, namespace)
