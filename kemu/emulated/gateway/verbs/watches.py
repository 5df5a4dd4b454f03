"""Watch: events of an API server's Watch stream, as a response that does not end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
from collections.abc import AsyncGenerator
from typing import Any

from kemu.emulated.apiserver.registry import options
from kemu.emulated.gateway.answers import representations, websockets
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.backends import Refused
from kemu.emulated.gateway.deliveries import Delivery
from kemu.emulated.gateway.requests import envelopes, negotiation
from kemu.emulated.gateway.requests.negotiation import Form
from kemu.emulated.gateway.streams import Event, Streams, Watch
from kemu.emulated.gateway.verbs import reads
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.objects.templates import generations
from kemu.errors import Gone
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.v1 import api_pb2

EVENTS_AT_A_TIME = 100
"""That are put into a form before others get their turn."""
BYTES_AT_A_TIME = 1 << 15
"""That are written at a time: with TLS, the buffer of a connection stays as large as it once was."""
LARGE_BYTES = 1 << 16
"""After more at a time the rest waits until the client has read it: the buffer of a connection holds no second one."""

_TYPES: dict[int, str] = {
    api_pb2.WatchEvent.ADDED: "ADDED",
    api_pb2.WatchEvent.MODIFIED: "MODIFIED",
    api_pb2.WatchEvent.DELETED: "DELETED",
    api_pb2.WatchEvent.BOOKMARK: "BOOKMARK",
    api_pb2.WatchEvent.ERROR: "ERROR",
}


_SCALED = ("Deployment", "ReplicaSet", "StatefulSet")
"""Kinds whose replicas are no pointer inside kube-apiserver: bookmarks, objects without content, have none of them."""


async def watch(call: Call, streams: Streams) -> Response:
    query = call.request.query
    form = negotiation.negotiate(call.request.headers.get("accept", ""))
    reads.check_syntax(query)
    lasts_s = _duration_s(call)
    create = _create(call)
    options.check_watch(create, continues=bool(query.text("continue")))
    found = await streams.open(call.backend, call.request.user, create)
    try:
        await _accepted(found)
        form = negotiation.including(form, query.text("includeObject"))
        negotiation.check_included(form)
        negotiation.check_stream(form)
        if websockets.is_asked(call.request.headers):
            return websockets.switching(call.request, None, functools.partial(_serve, call, form, found, lasts_s))
    except BaseException:
        await found.close()
        raise
    media = form.media if form.media == negotiation.JSON else f"{form.media};stream=watch"
    return Response(200, media, _body(call, form, found, lasts_s))


def _create(call: Call) -> api_pb2.WatchCreate:
    """Raises :class:`kemu.errors.BadRequest`."""
    query, path = call.request.query, call.path
    create = api_pb2.WatchCreate(
        resource=call.where(),
        label_selector=query.text("labelSelector"),
        field_selector=call.field_selector(),
        resource_version=query.text("resourceVersion"),
        resource_version_match=query.text("resourceVersionMatch"),
        allow_bookmarks=bool(query.flag("allowWatchBookmarks")),
        send_initial_events=reads.initial_events(query),
        acknowledge=True,
    )
    if path.name:
        create.field_selector = f"metadata.name={path.name}"
    return create


def _delivery(call: Call) -> Delivery | None:
    """None: nobody wants to know what the watch delivers."""
    deliveries = call.settings.deliveries
    if deliveries is None:
        return None
    create = _create(call)
    begins = create.resource_version
    return deliveries.open(
        call.request.agent.partition(" ")[0],
        call.row.plural,
        call.path.namespace,
        create.label_selector,
        create.field_selector,
        int(begins) if begins.isdigit() else 0,
    )


async def _accepted(found: Watch) -> None:
    """Wait until the API server has taken the watch. Raises :class:`kemu.emulated.gateway.backends.Refused`."""
    if not await found.wait(None):
        raise found.failure()
    first = found.peek()
    if first.type == api_pb2.WatchEvent.ERROR:
        status = meta_v1_pb2.Status.FromString(first.error)
        if status.reason != Gone.reason:
            raise Refused(status)


def _duration_s(call: Call) -> float:
    """How long the watch lasts. Raises :class:`kemu.errors.BadRequest`."""
    wanted_s = call.request.query.number("timeoutSeconds") or 0
    # As kube-apiserver does, so that not all clients come again at the same time.
    return float(wanted_s) if wanted_s > 0 else call.settings.least_watch_s * (1 + random.random())


async def _serve(call: Call, form: Form, found: Watch, lasts_s: float, socket: websockets.WebSocket) -> None:
    """Over a WebSocket: a message for each event, text where its form is one (``HandleWS``)."""

    async def until_gone() -> None:
        try:
            while await socket.receive() is not None:
                pass
        except ConnectionResetError:
            pass
        finally:
            found.end()

    reading = asyncio.get_running_loop().create_task(until_gone())
    try:
        async with contextlib.aclosing(_body(call, form, found, lasts_s, over_socket=True)) as pieces:
            async for piece in pieces:
                if form.media == negotiation.PROTOBUF:
                    for message in envelopes.watch_messages(piece):
                        await socket.send(message)
                else:
                    for line in piece.splitlines(keepends=True):
                        await socket.send(line.decode())
    finally:
        reading.cancel()


async def _body(
    call: Call, form: Form, found: Watch, lasts_s: float, *, over_socket: bool = False
) -> AsyncGenerator[bytes, None]:
    """``over_socket``: the connection was upgraded, and who did that sees when the client goes."""
    loop = asyncio.get_running_loop()
    gone = None if over_socket else loop.create_task(call.request.disconnected())
    if gone is not None:
        gone.add_done_callback(lambda _: found.end())
    ends_at = loop.time() + lasts_s
    is_first, revision, size = True, 0, 0
    pieces: list[bytes] = []
    delivery = _delivery(call)
    if call.request.reset is not None:
        found.on_cut = functools.partial(call.request.reset, True)
    try:
        while await found.wait(ends_at):
            for events in found.take(EVENTS_AT_A_TIME, BYTES_AT_A_TIME):
                for event in events:
                    if form.transform == negotiation.PARTIAL_LIST and event.type in _TYPES:
                        return  # an object cannot be made a list
                    pieces.append(frame(call, form, event, is_first))
                    is_first = is_first and not pieces[-1]
                    revision = max(revision, event.resource_version)
                    size += len(pieces[-1])
                    if size > BYTES_AT_A_TIME or event is events[-1]:
                        found.write(size)
                        yield b"".join(pieces)
                        if size > LARGE_BYTES:
                            pieces.clear()
                            yield b""
                        if event is not events[-1]:
                            found.written(size)
                        if delivery is not None:
                            # What is asked for next has left: faults that hold events up do so before.
                            delivery.reach(revision)
                        pieces, size = [], 0
                if events[-1].type == api_pb2.WatchEvent.ERROR:
                    return
        if revision and loop.time() >= ends_at and call.request.query.flag("allowWatchBookmarks"):
            # So that the client can go on from here however long ago the last event was.
            bookmark = Event(api_pb2.WatchEvent.BOOKMARK, revision, b"", b"")
            yield frame(call, form, bookmark, is_first)
    finally:
        if gone is not None:
            gone.cancel()
        if delivery is not None and call.settings.deliveries is not None:
            call.settings.deliveries.close(delivery)
        await found.close()


def frame(call: Call, form: Form, event: Event, is_first: bool) -> bytes:
    """One event, as it is sent."""
    kind = _TYPES.get(event.type)
    if kind is None:
        return b""
    if kind == "ERROR":
        if not event.error:
            return b""  # the definition of the kind has changed: the response just ends
        status = meta_v1_pb2.Status.FromString(event.error)
        inner = representations.message(Form(form.media), "v1", "Status", status)
    else:
        wire = event.object if kind != "BOOKMARK" else _bookmark(call, event)
        inner = call.representations.embedded(form, call.shown, wire, is_first)
    if form.media == negotiation.PROTOBUF:
        return envelopes.watch_frame(kind, inner)
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), inner.rstrip())


def _bookmark(call: Call, event: Event) -> bytes:
    """Its object: empty but for the version, and, at the end of the initial state, an annotation."""
    found: Any = representations.stored(call.row).message.FromString(event.object)
    found.metadata.resourceVersion = str(event.resource_version)
    if call.row.kind in _SCALED and call.row.group == "apps":
        found.spec.replicas = 0
    if call.row.kind == "DaemonSet" and call.row.group == "apps":
        generations.put(found, 0)
    data: bytes = found.SerializeToString(deterministic=True)
    return data
