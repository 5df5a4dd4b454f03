"""What carries the messages of in-memory calls: connections between one client and one server.

``channels`` (client) and ``servers`` are the two ends and know no more of the way between them than :class:`Link`.
``networks`` is the simulated way, with latency and faults; :class:`DirectLink` here is the plain one, for actors that
live in one process on an ordinary event loop.
"""

from __future__ import annotations

import abc
import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc

if TYPE_CHECKING:
    from kemu.runtime.rpc.channels import Call
    from kemu.runtime.rpc.servers import Context, Server

WINDOW_BYTES = 1 << 20
"""How much one direction of a stream may hold unread before its writer waits."""

NO_METADATA: tuple[tuple[str, str | bytes], ...] = ()
EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]


class Metadatum(NamedTuple):
    key: str
    value: str | bytes


class Status(NamedTuple):
    """How a call ended."""

    code: grpc.StatusCode
    details: str = ""
    trailing: tuple[tuple[str, str | bytes], ...] = NO_METADATA
    response: bytes | None = None
    """Of calls with a single response."""


class End:
    """One end of a call: what it sends (first-in-first-out over the link), and what it has received and not read."""

    __slots__ = ("eof", "inbox", "last_ns", "latency", "link", "loop", "partner", "unread", "waiter", "window_waiter")

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self.link = link
        self.loop = loop
        self.partner: Any = None
        """The other end, once it exists and as long as the call lasts."""
        self.inbox: deque[bytes] | None = None
        self.waiter: asyncio.Future[Any] | None = None
        """Of the one reader."""
        self.eof = False
        """The other end will write no more."""
        self.unread = 0
        """Bytes sent from here that the other end's reader has not taken yet."""
        self.window_waiter: asyncio.Future[None] | None = None
        self.latency: Any = None
        """For the link: of what this end sends."""
        self.last_ns = 0
        """For the link: when the last message sent from here arrives."""

    def receive(self, data: bytes) -> None:
        """A message has arrived."""
        waiter = self.waiter
        if waiter is not None and not waiter.done():
            self.waiter = None
            waiter.set_result(data)
        elif self.inbox is None:
            self.inbox = deque((data,))
        else:
            self.inbox.append(data)

    def receive_eof(self) -> None:
        self.eof = True
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            if not waiter.done():
                waiter.set_result(EOF)

    async def take(self) -> Any:
        """The next message as bytes, or EOF when the stream is over, however it ended."""
        if self.inbox:
            data = self.inbox.popleft()
        elif self.eof:
            return EOF
        elif self.waiter is not None:
            raise grpc.aio.UsageError("another task is reading this stream")
        else:
            waiter = self.waiter = self.loop.create_future()
            try:
                data = await waiter
            except asyncio.CancelledError:
                if self.waiter is waiter:
                    self.waiter = None
                elif waiter.done() and not waiter.cancelled() and waiter.result() is not EOF:
                    # It arrived in the instant in which the reader was cancelled.
                    if self.inbox is None:
                        self.inbox = deque()
                    self.inbox.appendleft(waiter.result())
                raise
            if data is EOF:
                return EOF
        partner = self.partner
        if partner is not None:
            partner.unread -= len(data)
            if partner.window_waiter is not None:
                partner.open_window()
        return data

    async def wait_for_window(self) -> None:
        """Until the other end has read enough, or the call is over."""
        while self.unread > WINDOW_BYTES:
            if self.window_waiter is not None:
                raise grpc.aio.UsageError("another task is writing to this stream")
            waiter = self.window_waiter = self.loop.create_future()
            try:
                await waiter
            finally:
                self.window_waiter = None

    def open_window(self, *, over: bool = False) -> None:
        if over:
            self.unread = 0
        waiter = self.window_waiter
        if waiter is not None and self.unread <= WINDOW_BYTES and not waiter.done():
            waiter.set_result(None)


class Link(abc.ABC):
    """One connection. Both ends may use it until it breaks; it is never mended, a new one takes its place."""

    __slots__ = ("broken", "calls", "client_name", "connected", "contexts", "loop", "server")

    def __init__(self, loop: asyncio.AbstractEventLoop, server: Server | None, client_name: str) -> None:
        self.loop = loop
        self.client_name = client_name
        self.server = server
        """None: nobody listens there; the calls fail after a while."""
        self.calls: dict[Call, None] = {}
        """Those that are not over for the client, oldest first."""
        self.contexts: dict[Context, None] = {}
        """Those that are not over for the server, oldest first."""
        self.connected = server is not None
        """False until the other side is known to be reachable: writes wait for that."""
        self.broken = False
        """A new call needs a new link."""

    @abc.abstractmethod
    def start(self, call: Call) -> None:
        """Enter the call among ``calls`` and have ``server.accept(call)`` called, or in the end ``break_client``."""

    @abc.abstractmethod
    def send(self, end: End, deliver: Callable[[Any], object], payload: Any) -> None:
        """Have ``deliver(payload)`` called at the other end; from one ``end`` in the order of sending."""

    def attach(self, context: Context) -> None:
        """The server's end of a call has come into being."""
        self.contexts[context] = None

    def break_client(self, details: str) -> None:
        status = Status(grpc.StatusCode.UNAVAILABLE, details)
        for call in list(self.calls):
            call.connection_lost(status)

    def break_server(self) -> None:
        for context in list(self.contexts):
            context.client_gone()


class DirectLink(Link):
    """Within one process, on whatever event loop runs there: messages arrive in the next turn of the loop."""

    __slots__ = ()

    def start(self, call: Call) -> None:
        self.calls[call] = None
        if self.server is None:
            self.broken = True
            self.loop.call_soon(self.break_client, "connection refused")
        else:
            self.loop.call_soon(self.server.accept, call)

    def send(self, end: End, deliver: Callable[[Any], object], payload: Any) -> None:
        self.loop.call_soon(deliver, payload)
