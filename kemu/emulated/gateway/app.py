"""The ASGI application: which request goes where."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import time
from collections.abc import Callable, Sequence

from kemu.emulated.apiserver.registry import deletions
from kemu.emulated.gateway import aggregation, custom, discoveries, flows, monitoring, statuses
from kemu.emulated.gateway.answers import refusals, responses
from kemu.emulated.gateway.answers.representations import Representations
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.asgi import Receive, Scope, Send
from kemu.emulated.gateway.authentication import impersonations
from kemu.emulated.gateway.authentication.impersonations import Right
from kemu.emulated.gateway.backends import Backend, Backends, Refused
from kemu.emulated.gateway.http2 import exchanges
from kemu.emulated.gateway.limits import connections, lanes
from kemu.emulated.gateway.monitoring import Metrics
from kemu.emulated.gateway.requests import negotiation, routes
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.gateway.requests.paths import Path
from kemu.emulated.gateway.settings import Settings
from kemu.emulated.gateway.streams import Backlog, Streams
from kemu.emulated.gateway.verbs import (
    calls,
    component_statuses,
    deletes,
    metrics,
    reads,
    reviews,
    subresources,
    watches,
    writes,
)
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.gateway.verbs.sessions.requests import Sessions
from kemu.emulated.gateway.verbs.subresources import Handler
from kemu.emulated.objects import custom_kinds, events, identities, selectors
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.objects.kinds import components
from kemu.emulated.objects.resources import Resource
from kemu.errors import (
    ApiError,
    BadRequest,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    ServiceUnavailable,
    UnsupportedMediaType,
)
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Channel, Clock

log = logging.getLogger(__name__)

DEPRECATED = {
    ("v1", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
    ("v1", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""What clients are told of a kind (``APILifecycleDeprecated``)."""
_READS = ("GET", "HEAD", "OPTIONS")
_LASTING = frozenset(("watch", "attach", "exec", "log", "portforward", "proxy"))
"""Verbs and subresources of requests that know no deadline."""


class Gateway:
    """An ASGI 3 application. It runs on the event loop of whatever ``dial`` returns."""

    def __init__(self, dial: Callable[[str], Channel], clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._began_s = clock.unix_ns() // SECOND_NS
        self._settings = settings
        self._backends = Backends(dial, settings.apiservers)
        self._representations = Representations(settings.cache_bytes, clock)
        self._metrics = Metrics()
        self._flows = flows.Flows(clock)
        self._kinds = custom.Kinds(clock)
        self._closing = asyncio.Event()
        self._sessions = Sessions()
        self._streams = Streams(Backlog(settings.watch_backlog_bytes, settings.all_backlog_bytes), settings.max_watches)

    def close(self) -> None:
        """End all that goes on: watches, logs that are followed."""
        self._streams.close()
        self._closing.set()
        if self._settings.issuer is not None:
            self._settings.issuer.close()
        if self._settings.aggregator is not None:
            self._settings.aggregator.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the gateway does not speak {scope['type']}")
        response = await self._answer(scope, receive)
        await response.send(send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        request = Request(scope, receive)
        asked = _Asked()
        begin = time.perf_counter()
        kind = "readOnly" if request.method in _READS else "mutating"
        self._metrics.in_flight[kind] += 1
        try:
            response = await self._serve(request, scope, asked)
        except Refused as refused:
            response = refusals.response(request, refused.status, refused.warnings)
        except ApiError as error:
            response = refusals.of_error(request, error)
        except Exception as error:
            log.exception("%s %s", request.method, request.path)
            response = refusals.of_error(request, InternalError(f"Internal error occurred: {error!r}"))
        finally:
            self._metrics.in_flight[kind] -= 1
        self._metrics.count(asked.told, response.status, time.perf_counter() - begin)
        response.add((b"audit-id", _random_id()), *asked.flow)
        if scope.get("http_version") == "2" and (response.status == 401 or asked.is_anonymous):
            # Who is unknown gets one answer on a connection (UnauthenticatedHTTP2DOSMitigation).
            response.add(exchanges.CLOSE)
        if asked.warning:
            response.add(*responses.warnings([asked.warning]))
        if request.takes_gzip:
            await response.compress()
        return response

    async def _serve(self, request: Request, scope: Scope, asked: _Asked) -> Response:
        info = request.info
        if info.problem is not None:
            if isinstance(info.problem, InternalError):
                return refusals.unread(request, info.problem)
            raise info.problem
        if (
            "timeout" in info.query.values
            and info.verb not in _LASTING
            and (info.parts is None or info.parts.subresource not in _LASTING)
        ):
            calls.patience_s(request)
        number = self._backends.number(info.server)
        certificate = (scope.get("extensions") or {}).get(connections.TLS)
        backend = self._backends.of(request.peer, number)
        user = await self._settings.authenticator.authenticate(request.headers, certificate)
        asked.is_anonymous = user.name == identities.ANONYMOUS.name
        if headers := request.impersonation():
            asks = headers, _right(request), backend.check, backend.last_modes
            try:
                user = await impersonations.impersonated(user, *asks)
            except ApiError as error:
                return refusals.early(request, error)
        request.user = user
        if info.parts is None and (found := await monitoring.health(request, self._backends)) is not None:
            if "/" in request.path.strip("/") or request.method != "GET":
                # To read the whole is for everybody, also where no API server could say so.
                await self._require(request, backend)
            return found
        asked.flow = await self._flows.headers(request, backend)
        path = info.parts
        if request.path.rstrip("/") == "/version":
            routes.check_document(request)
            return discoveries.version()
        others = self._settings.aggregator
        if others and not others.is_quiet and (server := await others.find(request.path, backend)) is not None:
            await backend.require(request.user, _right(request))
            return await others.forward(request, server, self._settings.max_body_bytes)
        if path is None:
            await backend.require(request.user, _right(request))
            if request.path == "/metrics":
                levels = await backend.call("Levels", api_pb2.LevelsRequest(), identities.ADMINISTRATOR)
                return self._metrics.response(self._streams.count(), levels, self._settings.measured)
            if request.path == statuses.PATH:
                now_s = self._clock.unix_ns() // SECOND_NS
                return statuses.response(request.headers.get("accept", ""), self._began_s, now_s)
            if request.path == "/metrics/slis":
                return await monitoring.indicators(self._backends)
            if self._settings.accounts is not None and (found := discoveries.issuer(request, self._settings.accounts)):
                return found
            document = await discoveries.document(request, backend, self._settings.removed_betas, others)
            if document.status == 404 and await self._is_elsewhere(request, backend):
                return responses.text(503, "service unavailable\n")
            return document
        try:
            row = (self._removed(path) if self._settings.removed_betas else None) or _row(path)
        except NotFound:
            await self._require(request, backend)
            raise
        if row is None:
            row = await self._kinds.find(backend, path)
        if row is None:
            await self._require(request, backend)
            if await self._is_elsewhere(request, backend):
                return responses.text(503, "service unavailable\n")
            return responses.text(404, "404 page not found\n")
        if isinstance(row, CustomResource):
            if _has_wrong_scope(path, row):
                return responses.text(404, "404 page not found\n")
            warning = custom.warning(row)
        else:
            warning = DEPRECATED.get((row.api_version, row.plural), "")
        about = path.group, path.version, row.collection, _part(path), _scope(path, request.method)
        asked.told = monitoring.Asked(_label(info.verb), *about, "All" if "dryRun" in request.query.values else "")
        call = Call(
            request, path, row, row, backend, self._settings, self._representations, self._clock, self._closing,
            self._sessions,
        )  # fmt: skip
        if request.method in _WITH_BODY and not request.user.is_master:
            # Before the body is read, let alone parsed (``WithAuthorization`` comes before the handlers).
            await call.require(info.verb, path.subresource)
        try:
            if isinstance(row, CustomResource):
                asked.warning = warning
            handler = self._handler(call)
            asked.warning = warning
            response = await handler(call)
            if row.group == flows.GROUP and request.method not in _READS:
                self._flows.changed()
            if row.plural == custom_kinds.DEFINITIONS and request.method not in _READS:
                self._kinds.changed()
            if request.method in _WRITES and self._settings.issuer is not None and response.status < 300:
                self._settings.issuer.written(row, backend)
            if others is not None and row.plural in aggregation.WATCHED and request.method not in _READS:
                others.written(row.plural, backend)
            return response
        except Refused as refused:
            if refusals.is_unauthorized(request, refused.status):
                asked.warning = ""
            if refused.status.reason == ServiceUnavailable.reason:
                self._backends.lost(request.peer, backend)
            if row is events.ROW:
                refusals.name_group(refused.status, row)
            raise
        except (BadRequest, Invalid, MethodNotAllowed, NotAcceptable, NotFound, UnsupportedMediaType):
            # Found before any API server was asked. Who has no right is told that first.
            await call.require(info.verb, path.subresource)
            raise

    def _removed(self, path: Path) -> Resource | None:
        return calls.REMOVED_BY_URL.get((f"{path.group}/{path.version}", path.resource))

    async def _is_elsewhere(self, request: Request, backend: Backend) -> bool:
        """Whether an APIService says that another server answers, which none here can reach (``proxyHandler``)."""
        others = self._settings.aggregator
        return others is not None and await others.is_elsewhere(request.path, backend)

    async def _require(self, request: Request, backend: Backend) -> None:
        """Raises Forbidden: who has no right to something is not told that it is not there."""
        if not request.user.is_master:
            await backend.require(request.user, _right(request))

    def _handler(self, call: Call) -> Handler:
        """Who answers. Raises :class:`kemu.errors.ApiError` where there is no such route."""
        row, path = call.row, call.path
        method, verb = call.request.method, call.request.info.verb
        produced: Sequence[str] = negotiation.SERVED
        handler: Handler
        if path.watches and method != "GET":
            raise calls.wrong_method()
        if path.subresource:
            handler = self._of_part(call)
            produced = routes.of_part(path.subresource)
        elif row.api_version == metrics.API_VERSION:
            handler = _of(metrics.HANDLERS, method)
        elif row is components.ROW:
            handler = _of(component_statuses.ONE if path.name else component_statuses.ALL, method)
        elif verb == "watch" and method == "GET":
            if not path.name:
                _of(_collections(call), method)
            handler, produced = self._watch, routes.STREAMED
        elif verb == "list" and method == "GET":
            _of(_collections(call), method)
            handler, produced = self._list, routes.STREAMED
        else:
            if method == "DELETE" and not path.name:
                deletions.refuse_collections(row)
            handler = _of(_OBJECTS if path.name else _collections(call), method)
        if not isinstance(row, CustomResource):
            routes.check(call.request, produced)
        return handler

    def _of_part(self, call: Call) -> Handler:
        method, path = call.request.method, call.path
        if (call.row.plural, path.subresource) == ("serviceaccounts", "token"):
            return _of(_TOKEN, method)
        handlers = subresources.find(call.row, path.subresource, path.name)
        if method not in handlers and isinstance(call.row, CustomResource):
            text = f'{call.request.info.verb} is not supported on resources of kind "{call.row.qualified}"'
            raise MethodNotAllowed(text, kind=call.row.plural)
        return _of(handlers, method)

    async def _watch(self, call: Call) -> Response:
        if call.path.name:
            await self._require(call.request, call.backend)
        return await watches.watch(call, self._streams)

    async def _list(self, call: Call) -> Response:
        """With a seat, if there are many objects, until they are sent."""
        query = call.request.query
        selectors = query.text("labelSelector"), query.text("fieldSelector"), query.text("limit")
        key = call.row.plural, call.path.namespace, *selectors
        seat = await self._lane.enter(call.request.user.name, key)
        try:
            response = await _of(_collections(call), "GET")(call)
        except BaseException:
            if seat is not None:
                seat.leave()
            raise
        self._lane.note(key, response.items)
        if seat is not None:
            response.on_sent = seat.leave
        return response

    @functools.cached_property
    def _lane(self) -> lanes.Lane:
        return lanes.Lane()


class _Asked:
    """What is found out of a request on its way."""

    __slots__ = ("flow", "is_anonymous", "told", "warning")

    def __init__(self) -> None:
        self.told = monitoring.Asked("GET")
        self.warning = ""
        self.is_anonymous = False
        self.flow: Sequence[responses.Header] = ()
        """Which flow schema it belongs to."""


def _random_id() -> bytes:
    """A random UUID."""
    text = os.urandom(16).hex()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}".encode()


def _label(verb: str) -> str:
    """As metrics tell a verb."""
    label = _METHODS.get(verb) or verb.upper()
    return label if label in _LABELS else "other"


def _scope(path: Path, method: str) -> str:
    if path.name or method == "POST":
        return "resource"
    return "namespace" if path.namespace else "cluster"


def _right(request: Request) -> Right:
    """What it takes to make a request (``GetAuthorizerAttributes``)."""
    verb, path = request.info.verb, request.info.parts
    if path is None:
        return Right(verb, path=request.path)
    name, namespace = path.name, path.namespace
    if path.resource == "namespaces" and not path.group:
        # The namespace of a namespace is itself, as in RequestInfo.
        namespace = name
    if not name and verb in ("list", "watch", "deletecollection"):
        with contextlib.suppress(selectors.SelectorError):
            parsed = selectors.parse_fields(request.query.text("fieldSelector"), path.resource)
            name = dict(parsed.equals).get("metadata.name", "")
    return Right(verb, path.group, path.resource, namespace, name, path.subresource)


def _part(path: Path) -> str:
    return path.subresource if not path.subresource or path.subresource in _PARTS else "other"


_PARTS = frozenset(
    (
        *("approval", "binding", "ephemeralcontainers", "eviction", "finalize", "log", "resize", "scale", "status"),
        *("token", *subresources.STREAMS),
    )
)
_WRITES = ("POST", "PUT", "PATCH")
_WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")
_METHODS = {"create": "POST", "update": "PUT"}
_LABELS = ("GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION", "OPTIONS")

_OBJECTS: dict[str, Handler] = {
    "GET": reads.get,
    "PUT": writes.update,
    "PATCH": writes.patch,
    "DELETE": deletes.delete,
}
_COLLECTIONS: dict[str, Handler] = {
    "GET": reads.list_,
    "POST": writes.create,
    "DELETE": deletes.delete_collection,
}
_TOKEN: dict[str, Handler] = {"POST": reviews.token_of_account}
_ALL_NAMESPACES: dict[str, Handler] = {"GET": reads.list_}


def _row(path: Path) -> Resource | None:
    """None: there is no such group. Raises :class:`kemu.errors.NotFound` for what it does not have."""
    which = f"{path.group}/{path.version}" if path.group else path.version, path.resource
    row = calls.BY_URL.get(which) or reviews.ROWS.get(which) or metrics.ROWS.get(which)
    if row is None and which == (components.ROW.api_version, components.ROW.plural):
        row = components.ROW
    if row is None:
        if discoveries.is_unknown_group(path):
            return None
        raise calls.unknown_resource()
    if (path.rest and path.subresource != "proxy") or _has_wrong_scope(path, row):
        raise calls.unknown_resource()
    return row


def _has_wrong_scope(path: Path, row: Resource) -> bool:
    return bool(path.namespace) > row.namespaced or bool(path.name and row.namespaced and not path.namespace)


def _collections(call: Call) -> dict[str, Handler]:
    if (call.row.api_version, call.row.plural) in reviews.ROWS:
        return {"POST": reviews.CREATIONS[call.row.plural]}
    return _COLLECTIONS if call.path.namespace or not call.row.namespaced else _ALL_NAMESPACES


def _of(handlers: dict[str, Handler], method: str) -> Handler:
    """Raises :class:`kemu.errors.MethodNotAllowed`."""
    found = handlers.get(method)
    if found is None:
        raise calls.wrong_method()
    return found
