"""One request and its answer on a connection of HTTP/2, as ASGI has them."""

from __future__ import annotations

import asyncio
import logging
import re
import urllib.parse
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import FlowControl

from kemu.emulated.gateway.asgi import Message

log = logging.getLogger(__name__)

Header = tuple[bytes, bytes]
Application = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_NAME = re.compile(rb":?[!#$%&'*+\-.^_`|~0-9a-z]+")
_COLON = b":"[0]
_PSEUDO = (b":method", b":path", b":scheme", b":authority")


class Malformed(Exception):
    """What came is no request (section 8.1.1 of RFC 9113)."""


CLOSE = (b"connection", b"close")
"""A header that HTTP/2 does not have: the connection takes no more requests."""


def scope_of(headers: Sequence[Header]) -> MutableMapping[str, Any]:
    """What a request says of itself. Raises :class:`Malformed`."""
    pseudo: dict[bytes, bytes] = {}
    found: list[Header] = []
    for name, value in headers:
        if not _NAME.fullmatch(name) or _CONTROL.search(value):
            raise Malformed("a header with characters that none has")
        if name[0] != _COLON:
            found.append((name, value.strip(b" \t")))
        elif found or name in pseudo or name not in _PSEUDO:
            raise Malformed("a pseudo-header in the wrong place")
        else:
            pseudo[name] = value
    method, target = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
    if not (method.isalpha() and method.isascii() and target.startswith(b"/") and target.isascii()):
        raise Malformed("a request needs a method and a path")
    if b":authority" in pseudo and all(name != b"host" for name, _ in found):
        found.insert(0, (b"host", pseudo[b":authority"]))
    raw_path, _, query = target.partition(b"?")
    path = raw_path.decode("ascii")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "2",
        "method": method.decode("ascii"),
        "path": urllib.parse.unquote(path) if "%" in path else path,
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": found,
        "state": {},
    }


class Connection(Protocol):
    """What an exchange needs of its connection."""

    loop: asyncio.AbstractEventLoop
    flow: FlowControl

    def give_room(self, stream: int, size: int, is_last: bool = True) -> None: ...
    def room(self, stream: int) -> int: ...
    async def wait_for_room(self, exchange: Exchange) -> None: ...
    def send_head(self, stream: int, headers: Sequence[Header]) -> None: ...
    def send_piece(self, stream: int, data: bytes, ends: bool) -> None: ...
    def send_end(self, stream: int) -> None: ...
    def completed(self, exchange: Exchange) -> None: ...
    def reset(self, exchange: Exchange) -> None: ...
    def shutdown(self) -> None: ...


class Exchange:
    """Made by the connection, which feeds it."""

    __slots__ = (
        "_connection", "_ended", "_is_head", "_pieces", "_told", "_unread", "_waiter", "begun_at", "complete",
        "disconnected", "is_last", "started", "stream", "writable",
    )  # fmt: skip

    def __init__(self, connection: Connection, stream: int, begun_at: float) -> None:
        self._connection = connection
        self.stream = stream
        self.begun_at = begun_at
        self._pieces: list[bytes] = []
        self._unread = 0
        """Bytes of the body for which the client gets no room yet, as flow control counts them."""
        self._ended = self._told = False
        """Whether all of the body has come, and whether the application knows."""
        self._waiter: asyncio.Future[None] | None = None
        self.writable: asyncio.Future[None] | None = None
        """Set while the client gives no room for more of the answer."""
        self._is_head = False
        self.started = False
        self.complete = False
        self.is_last = False
        """The connection takes no more requests."""
        self.disconnected = False
        """The client wants no answer, or gets none."""

    # What comes

    @property
    def is_asked(self) -> bool:
        """Whether all of the request has come."""
        return self._ended

    def feed(self, data: bytes, counted: int) -> None:
        """``counted``: bytes of the frame, with its padding."""
        self._pieces.append(data)
        self._unread += counted
        self._wake()

    def end(self) -> None:
        """The request is complete."""
        self._ended = True
        self._wake()

    def disconnect(self) -> None:
        self.disconnected = True
        self._wake()
        if self.writable is not None and not self.writable.done():
            self.writable.set_result(None)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> Message:
        """What ASGI calls so."""
        while not (self.disconnected or self.complete):
            if self._pieces or (self._ended and not self._told):
                body = b"".join(self._pieces)
                self._told = self._ended
                self._connection.give_room(self.stream, self.take_unread(), self._ended)
                return {"type": "http.request", "body": body, "more_body": not self._ended}
            self._waiter = self._connection.loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return {"type": "http.disconnect"}

    def take_unread(self) -> int:
        """Bytes of the body for which the client gets room again."""
        unread, self._unread = self._unread, 0
        self._pieces.clear()
        return unread

    # What goes

    async def run(self, app: Application, scope: MutableMapping[str, Any]) -> None:
        self._is_head = scope["method"] == "HEAD"
        try:
            await app(scope, self.receive, self.send)
        except asyncio.CancelledError:
            pass  # the server stops
        except Exception:
            log.exception("%s %s", scope["method"], scope["path"])
            if not (self.started or self.disconnected):
                await self.send({"type": "http.response.start", "status": 500, "headers": []})
                await self.send({"type": "http.response.body"})
        if not (self.complete or self.disconnected):
            self.reset(True)

    async def send(self, message: Message) -> None:
        """What ASGI calls so."""
        connection = self._connection
        if connection.flow.write_paused:
            await connection.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            headers = _headers(message)
            if CLOSE in headers:
                self.is_last = True
                headers.remove(CLOSE)
            connection.send_head(self.stream, headers)
            self.started = True
            return
        body: bytes = b"" if self._is_head else message.get("body", b"")
        is_last = not message.get("more_body", False)
        if body:
            await self._send_body(body, is_last)
        elif is_last:
            connection.send_end(self.stream)
        if is_last and not self.disconnected:
            self._complete()

    async def _send_body(self, body: bytes, is_last: bool) -> None:
        connection, position, size = self._connection, 0, len(body)
        while position < size:
            room = connection.room(self.stream)
            if room <= 0:
                await connection.wait_for_room(self)
                if self.disconnected:
                    return
                continue
            piece = body if room >= size and not position else body[position : position + room]
            position += len(piece)
            connection.send_piece(self.stream, piece, is_last and position == size)
            if connection.flow.write_paused and position < size:
                await connection.flow.drain()
                if self.disconnected:
                    return

    def _complete(self) -> None:
        self.complete = True
        self._connection.completed(self)
        if self.is_last:
            self._connection.shutdown()
        self._wake()

    def reset(self, abruptly: bool) -> None:
        """The extension of that name: for HTTP/2 it ends the one request, not the connection. Otherwise than abruptly,
        the answer ends as if it were complete."""
        if self.complete or self.disconnected:
            return
        if abruptly or not self.started:
            self._connection.reset(self)
        else:
            self._connection.send_end(self.stream)
            self.complete = True
            self._connection.completed(self)
        self.disconnect()


def _headers(head: Message) -> list[Header]:
    found: list[Header] = [(b":status", b"%d" % head["status"])]
    for name, value in head.get("headers", ()):
        if _CONTROL.search(value):
            raise ValueError(f"a header of the answer has control characters: {name!r}")
        found.append((name, value))
    return found
