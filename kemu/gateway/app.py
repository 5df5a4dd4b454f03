"""The ASGI application: which request goes where."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

from kemu.errors import ApiError, ServiceUnavailable
from kemu.gateway import discoveries
from kemu.gateway.answers import refusals, responses
from kemu.gateway.answers.representations import Representations
from kemu.gateway.answers.responses import Response
from kemu.gateway.authentication import impersonations
from kemu.gateway.backends import Backends, Refused
from kemu.gateway.limits import connections
from kemu.gateway.requests import paths
from kemu.gateway.requests.messages import Receive, Request, Scope, Send
from kemu.gateway.settings import Settings
from kemu.gateway.streams import Streams
from kemu.gateway.verbs import calls, deletes, reads, watches, writes
from kemu.gateway.verbs.calls import Call
from kemu.runtime.env import Channel, Clock

log = logging.getLogger(__name__)

OPEN = ("/healthz", "/livez", "/readyz", "/version")
"""Everybody may ask for these."""


class Gateway:
    """An ASGI 3 application. It runs on the event loop of whatever ``dial`` returns."""

    def __init__(self, dial: Callable[[str], Channel], clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._settings = settings
        self._backends = Backends(dial, settings.apiservers)
        self._representations = Representations(settings.cache_bytes)
        self._streams = Streams(settings.watch_backlog_bytes, settings.max_watches)

    def close(self) -> None:
        """End all watches."""
        self._streams.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the gateway does not speak {scope['type']}")
        response = await self._answer(scope, receive)
        response.add((b"audit-id", str(uuid.uuid4()).encode()))
        await response.send(send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        request = Request(scope, receive)
        try:
            return await self._serve(request, scope)
        except Refused as refused:
            return refusals.response(request, refused.status)
        except ApiError as error:
            return refusals.of_error(request, error)

    async def _serve(self, request: Request, scope: Scope) -> Response:
        number, request.path = self._backends.split(request.path)
        if request.path.startswith(OPEN):
            found = discoveries.open_document(request.path)
            if found is not None:
                return found
        certificate = (scope.get("extensions") or {}).get(connections.TLS)
        backend = self._backends.of(request.peer, number)
        user = await self._settings.authenticator.authenticate(request.headers, certificate)
        request.user = await impersonations.impersonated(user, request.impersonation(), backend.allows)
        path = paths.parse(request.path)
        if path is None:
            return discoveries.document(request)
        row = calls.BY_URL.get((f"{path.group}/{path.version}" if path.group else path.version, path.resource))
        if row is None:
            if discoveries.is_unknown_group(path):
                return responses.text(404, "404 page not found\n")
            raise calls.unknown_resource()
        if path.rest or bool(path.namespace) > row.namespaced or (path.name and row.namespaced and not path.namespace):
            raise calls.unknown_resource()
        call = Call(request, path, row, backend, self._settings, self._representations)
        try:
            return await self._carry_out(call)
        except Refused as refused:
            if refused.status.reason == ServiceUnavailable.reason:
                self._backends.lost(request.peer, backend)
            raise

    async def _carry_out(self, call: Call) -> Response:
        method, path = call.request.method, call.path
        if path.watches or (method == "GET" and not path.name and call.request.query.flag("watch")):
            return await watches.watch(call, self._streams)
        if not path.name:
            if method == "GET":
                return await reads.list_(call)
            if method == "POST" and (path.namespace or not call.row.namespaced):
                return await writes.create(call)
            if method == "DELETE":
                return await deletes.delete_collection(call)
            raise calls.wrong_method()
        if method == "GET":
            return await reads.get(call)
        if method == "PUT":
            return await writes.update(call)
        if method == "PATCH":
            return await writes.patch(call)
        if method == "DELETE" and not path.subresource:
            return await deletes.delete(call)
        raise calls.wrong_method()
