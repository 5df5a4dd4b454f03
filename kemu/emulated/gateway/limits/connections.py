"""One connection to the gateway: uvicorn's, within limits.

uvicorn's parser takes headers and trailers of any length, and waits for ever for the rest of a request. Here a client
has so many seconds and bytes for each part; then it is told what it did, where that is possible, and the connection
ends. What it sends meanwhile is not read, so no other client is harmed.
"""

from __future__ import annotations

import asyncio
import asyncio.sslproto
import http
import json
import logging
import socket
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import httptools
from uvicorn.protocols.http import flow_control, httptools_impl

from kemu.emulated.gateway.limits import upgrades

log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """Limits of each connection, but for the last."""

    head_bytes: int = 256 << 10
    """Head bytes of a request without its body: line, headers, the frames of chunks, trailers. At least what is read at
    once (256 KiB) is always taken."""
    head_s: float = 10.0
    """Until the headers are complete, from the first byte on; of a new connection, from its beginning on, with TLS."""
    body_s: float = 30.0
    """Until the body is complete."""
    unread_s: float = 60.0
    """That a client may leave what it has been sent unread."""
    ignored_bytes: int = 256 << 10
    """Bytes of a body that come after the answer was given."""
    pipelined: int = 32
    """Requests that are read before the first one is answered; a few more that come in the same packet. The rest waits
    unread."""
    linger_s: float = 0.5
    """For which what a client goes on sending is read and dropped after it was refused. Closed at once, the connection
    would be reset, and the client might not see why."""
    linger_bytes: int = 4 << 20
    """And so much of it: the rest of the largest body."""
    connections: int = 10_000
    """Connections of the whole server."""


_PIECE_BYTES = 4096
"""That are parsed before the requests in them are counted."""


class Tally:
    """What comes that is no HTTP: told once when it begins, and once with its number in the end."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, client: tuple[Any, ...] | None) -> None:
        self._count += 1
        if self._count == 1:
            who = client[0] if client else "a client"
            log.warning("%s has sent bytes that are no HTTP, and got 400. The end tells how often that happened.", who)

    def tell(self) -> None:
        if self._count > 1:
            log.warning("Clients have sent bytes that are no HTTP %d times.", self._count)


TLS = "kemu.tls"
"""Extension in the scope of a request: the client's certificate as ``getpeercert`` has it, where it showed one."""
RESET = "kemu.reset"
"""The same: ends the connection when it is called, for faults on demand; with True by a reset."""
UPGRADE = "kemu.upgrade"
"""The same, of a request that asks to upgrade its connection: takes the headers of the answer 101 and returns an
:class:`kemu.emulated.gateway.limits.upgrades.Upgraded`. What is not taken is answered as any other request."""
_EARLY_BYTES = 64 << 10
"""Bytes that may come after such a request before it is answered."""


TLS_BUFFER_BYTES = 32 << 10
"""What is read of a TLS connection at a time."""


def spare_tls_buffers() -> None:
    """Let TLS connections of this process take less memory: by default asyncio keeps 256 KiB for each, to read into,
    and a thousand watches on which nothing is sent would take 256 MiB."""
    if hasattr(asyncio.sslproto.SSLProtocol, "max_size"):
        asyncio.sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES


class _Flow(flow_control.FlowControl):
    """Reads nothing while something that was read waits to be parsed."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self.is_held = False

    def resume_reading(self) -> None:
        if not self.is_held:
            super().resume_reading()


class Heard:
    """How often a client of this process was heard of: it has connected, has shaken hands, has sent something."""

    times = 0


class LimitedConnection(httptools_impl.HttpToolsProtocol):
    """``uvicorn.Config(http=limited(Limits()))``."""

    limits = Limits()
    tally = Tally()
    flow: _Flow

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._overhead = 0
        """Bytes of the current request that are not its body."""
        self._ignored = 0
        self._part = "head"
        """``head``, ``body`` or, between two requests, nothing."""
        self._timer: asyncio.TimerHandle | None = None
        self._timed = ""
        """The part that the timer is for."""
        self._unread: asyncio.TimerHandle | None = None
        self._certificate: Any = None
        self._refused = False
        self._owed: tuple[int, str] | None = None
        """A refusal that has to wait until what was asked before is answered: its code and text."""
        self._held = b""
        """What is parsed once fewer requests wait."""
        self._early: bytearray | None = None
        """What has come since a request asked for an upgrade; None: none has."""
        self._upgraded: upgrades.Upgraded | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport)
        self._certificate = transport.get_extra_info("peercert")
        if len(self.connections) > self.limits.connections:
            self._refuse(503, f"the server has {self.limits.connections} connections already")
            return
        self._watch_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._upgraded is not None:
            self._upgraded.end()
        for timer in (self._timer, self._unread):
            if timer is not None:
                timer.cancel()
        self._timer = self._unread = None
        super().connection_lost(exc)
        # After a reset uvicorn leaves this timer running, which keeps all of the connection for as long.
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        Heard.times += 1
        if self._refused or self.transport.is_closing():
            self._ignore(data)
            return
        self._unset_keepalive_if_required()
        if self._upgraded is not None:
            self._upgraded.feed(data)
        elif self._early is not None:
            self._wait_for_upgrade(data)
        elif self._held:
            self._held += data
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """A piece at a time, as long as not too many requests wait."""
        position = 0
        while position < len(data) and not (self._refused or self.transport.is_closing()):
            if len(self.pipeline) >= self.limits.pipelined:
                self._hold(data[position:])
                return
            piece = data[position : position + _PIECE_BYTES]
            position += len(piece)
            self._overhead += len(piece)
            self._feed(piece)
            if self._early is not None:
                self._wait_for_upgrade(data[position:])
                return
            if self._part and self._overhead > self.limits.head_bytes:
                text = f"a request may have {self.limits.head_bytes} bytes beside its body"
                self._refuse(431 if self._part == "head" else 400, text)
        if not (self._refused or self.transport.is_closing()) and self._part != self._timed:
            self._watch_clock()

    def _feed(self, piece: bytes) -> None:
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserError:
            self.tally.add(self.client)
            self._refuse(400, "what came is no HTTP request")
        except httptools.HttpParserUpgrade as upgrade:
            # The application takes it, or refuses it in its own words.
            self._early = bytearray(piece[upgrade.args[0] if upgrade.args else len(piece) :])

    def _wait_for_upgrade(self, data: bytes) -> None:
        assert self._early is not None
        self._early += data
        if len(self._early) > _EARLY_BYTES:
            self._abort()

    def _upgrade(self, headers: Sequence[tuple[bytes, bytes]]) -> upgrades.Upgraded:
        cycle = self.cycle
        if self._early is None or self.pipeline or cycle.response_started or self.transport.is_closing():
            raise ConnectionResetError("the client has gone")
        cycle.response_started = cycle.response_complete = True
        lines = [b"HTTP/1.1 101 Switching Protocols", *(b"%s: %s" % header for header in headers), b"", b""]
        self.transport.write(b"\r\n".join(lines))
        self._part = ""
        self._watch_clock()
        self._upgraded = upgrades.Upgraded(self.transport, self.flow.drain)
        self._upgraded.feed(bytes(self._early))
        return self._upgraded

    def _hold(self, data: bytes) -> None:
        self._held = data
        self.flow.pause_reading()
        self.flow.is_held = bool(data)
        self._watch_clock()

    def on_response_complete(self) -> None:
        was_last = not self.pipeline
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self._early is not None and was_last:
            self._hang_up()
        elif self._owed is not None and was_last:
            self._say(*self._owed)
        elif self._held and len(self.pipeline) < self.limits.pipelined:
            # Not from within the answer that has just been sent.
            self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        data, self._held = self._held, b""
        if data and not (self._refused or self.transport.is_closing()):
            self.flow.is_held = False
            self._unset_keepalive_if_required()
            self._timed = "held"
            self._parse(data)
            self.flow.resume_reading()

    def _ignore(self, data: bytes) -> None:
        self._ignored += len(data)
        if self._ignored > self.limits.linger_bytes:
            self._abort()

    # The parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._part, self._overhead = "head", 0
        extensions: dict[str, Any] = {RESET: self._reset, UPGRADE: self._upgrade}
        if self._certificate:
            extensions[TLS] = self._certificate
        self.scope["extensions"] = extensions  # type: ignore[typeddict-item]

    def _reset(self, abruptly: bool) -> None:
        found = self.transport.get_extra_info("socket")
        if not abruptly:
            self.transport.close()
            return
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def on_headers_complete(self) -> None:
        self._part, self._ignored = "body", 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._overhead -= len(body)
        if self.cycle.response_complete:
            self._ignored += len(body)
            if self._ignored > self.limits.ignored_bytes:
                self._hang_up()
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._part = ""
        super().on_message_complete()

    # Time

    def _watch_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timed = self._part
        if self._part and not self._held:
            seconds = self.limits.head_s if self._part == "head" else self.limits.body_s
            self._timer = self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        self._timer = None
        if self._part == "body" and self.cycle is not None and self.cycle.response_complete:
            self.transport.close()
        elif self._part:
            self._refuse(408, f"the {self._part} of the request did not arrive in time")

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.limits.unread_s, self._abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _abort(self) -> None:
        self._unread = None
        self.transport.abort()

    # The end

    def _refuse(self, code: int, message: str) -> None:
        """Say why, once all that was asked before is answered, and end the connection."""
        if self._refused:
            return
        self._refused, self._held, self._ignored = True, b"", 0
        self.flow.is_held = False
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            self._say(code, message)
        elif self._part != "body":
            self._owed = code, message
        elif self.pipeline:
            # It has not begun: what waits before it is answered first.
            self.pipeline.popleft()
            self._owed = code, message
        else:
            # A handler that still works on an answer finds that its client has gone.
            if cycle.response_started:
                self._hang_up()
            else:
                self._say(code, message)
            cycle.disconnected = True
            cycle.message_event.set()
        self._part = ""
        if self._owed is not None:
            self._watch_clock()
            self.flow.resume_reading()

    def _say(self, code: int, message: str) -> None:
        self._owed = None
        body = refusal(code, message)
        head = f"HTTP/1.1 {code} {http.HTTPStatus(code).phrase}\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n"
        head += "retry-after: 1\r\n\r\n" if code == 503 else "\r\n"
        self.transport.write(head.encode() + body)
        self._hang_up()

    def _hang_up(self) -> None:
        """End the connection in a moment: closed while the client still sends, it would be reset, and the client might
        not see the answer."""
        self._refused, self._part, self._ignored = True, "", 0
        self._unset_keepalive_if_required()
        self._watch_clock()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(self.limits.linger_s, self.transport.close)


_REASONS = {
    400: "BadRequest", 408: "Timeout", 431: "RequestHeaderFieldsTooLarge",
    503: "ServiceUnavailable",
}  # fmt: skip


def refusal(code: int, message: str) -> bytes:
    """A ``Status`` that the connection answers in the place of the application."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(code, ""),
        "code": code,
    }
    return json.dumps(status).encode() + b"\n"


def limited(limits: Limits) -> type[LimitedConnection]:
    """The protocol with these limits."""
    return type("LimitedConnection", (LimitedConnection,), {"limits": limits})
