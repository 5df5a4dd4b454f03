"""Both ends of an in-memory call, and the connection that they share.

:class:`End` holds what the two ends have in common: messages received and not yet read, and the flow-control window.
:class:`ClientEnd` and :class:`ServerEnd` say what the ends and the connection need of each other, so that ``clients``,
``servers`` and ``networks`` (what carries the messages) import this module and none of one another.
"""

from __future__ import annotations

import abc
import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

WINDOW_BYTES = 1 << 20
"""Flow-control window: how many bytes one direction of a stream may hold unread before its writer waits."""

WINDOW_UPDATE_BYTES = WINDOW_BYTES // 2
"""A reader tells the writer after so many bytes, not after each message; HTTP/2 implementations do the same."""

MAX_REQUEST_BYTES = 64 << 20
"""Most request bytes of one message to a server over a network, which may hold hundreds of requests; a larger one is
refused before it is read."""

NO_METADATA: tuple[tuple[str, str | bytes], ...] = ()
EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]
"""What a reader gets after the last message of a half-closed stream."""
FINISHED = "RPC already finished."

P = TypeVar("P")
"""What a message carries."""
Deliver = Callable[[P], object]
"""Takes the payload of a message at the end that it is for."""
Send = Callable[["End", Deliver[Any], Any], None]
"""Has ``deliver(payload)`` called at the other end; messages from one end arrive in the order in which they were sent.
"""


def identity(message: Message | bytes | None) -> Any:
    """The serialiser of messages that are bytes already."""
    return message


class Metadatum(NamedTuple):
    key: str
    value: str | bytes


class Status(NamedTuple):
    """How a call ended."""

    code: grpc.StatusCode
    details: str = ""
    trailing: tuple[tuple[str, str | bytes], ...] = NO_METADATA
    response: bytes | None = None
    """Response of calls with a single response."""
    message: Any = None
    """The response itself, in the place of its bytes: it is not changed."""


class Standin:
    """What travels in the place of a message between two ends in one process. It is not changed on the way."""

    __slots__ = ()

    def message(self) -> Message:
        """The message itself."""
        raise NotImplementedError

    def SerializeToString(self) -> bytes:
        return self.message().SerializeToString()


class Plain:  # no abc.ABC: every stream asks whether its loop is one
    """An event loop whose steps are plain data: it needs no call to schedule one, and the last may become the next."""

    ready: deque[tuple[Callable[..., object], tuple[Any, ...], contextvars.Context | None]]
    """What ``call_soon`` schedules with a context."""

    def step_context(self) -> contextvars.Context:
        """In which steps run that the running code asks for."""
        raise NotImplementedError


def context_of(loop: asyncio.AbstractEventLoop) -> contextvars.Context:
    """In which steps run that the running code asks for."""
    return loop.step_context() if isinstance(loop, Plain) else contextvars.copy_context()


def ready_of(loop: asyncio.AbstractEventLoop) -> deque[Any] | None:
    """The steps of a loop, if they are plain data."""
    return loop.ready if isinstance(loop, Plain) else None


Pause = Callable[[], "asyncio.Future[None] | None"]
"""Asked before the next message is taken: what to wait for first, if anything."""


class Listener:
    """The reader of an end whose messages are handed to it: a step of the event loop for each, and no task.

    It runs where a task that awaits the next message would run, so nothing happens in another order.
    """

    __slots__ = ("busy", "context", "end", "first", "handle", "over", "parse", "pause", "ready")

    def __init__(
        self,
        end: End,
        parse: Callable[[bytes], Any],
        handle: Callable[[Any], object],
        pause: Pause | None,
        first: Callable[[], object] | None,
    ) -> None:
        self.end = end
        self.parse = parse
        self.handle = handle
        self.pause = pause
        self.first = first
        """Called before the first message is handed over; then None."""
        self.context = context_of(end.loop)
        """Context of the actor: an actor that is dead or paused takes nothing."""
        self.busy = False
        """It has a message that it has not finished with, or waits before it takes the next one."""
        self.over: asyncio.Future[bool] = end.loop.create_future()
        """Done at the end of the stream, or when ``handle`` wants no more (then it is True) or raised; cancelled, the
        listener takes nothing more."""
        self.ready = ready_of(end.loop)

    def come(self, data: bytes, is_step: bool = True) -> None:
        """A message, or EOF, and those that have arrived meanwhile. ``is_step``: it is a step of the loop."""
        end, over = self.end, self.over
        try:
            while not over.done():
                if data is EOF:
                    over.set_result(False)
                    break
                end.taken += len(data)
                if end.taken >= WINDOW_UPDATE_BYTES:
                    end.update_window()
                if self.first is not None:
                    first, self.first = self.first, None
                    first()
                if self.handle(self.parse(data)):
                    over.set_result(True)
                    break
                if self.pause is not None and (wait := self.pause()) is not None:
                    wait.add_done_callback(self._go_on, context=self.context)
                    return
                if end.inbox is not None:
                    data = end.next()
                elif end.eof:
                    data = EOF
                else:
                    self.busy = False
                    return
            else:
                return
        except (KeyboardInterrupt, SystemExit):
            raise
        except asyncio.CancelledError:
            over.cancel()
            return
        except BaseException as error:
            if over.done():
                return
            over.set_exception(error)
        # That was the end: who waits for it goes on in the place of this step.
        if is_step and self.ready is not None:
            self.ready.rotate(1)

    def _go_on(self, waited: asyncio.Future[None]) -> None:
        end = self.end
        if self.pause is not None and (wait := self.pause()) is not None:
            wait.add_done_callback(self._go_on, context=self.context)
        elif end.inbox is not None:
            self.come(end.next())
        elif end.eof:
            self.come(EOF)
        else:
            self.busy = False


class End:
    """One end of a call: what it sends arrives in order; what it has received waits here until it is read."""

    is_client: ClassVar[bool] = False

    __slots__ = ("eof", "inbox", "last_ns", "latency", "link", "listener", "loop", "method", "partner", "taken",
                 "unread", "waiter", "window_waiter")  # fmt: skip

    method: str
    """``/kemu.v1.Api/Watch``, …"""

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self.link = link
        self.loop = loop
        self.partner: Any = None
        """The other end, once it exists and as long as the call lasts."""
        self.inbox: deque[bytes] | None = None
        """None: nothing waits. An empty deque takes more memory than all the rest of an idle stream."""
        self.waiter: asyncio.Future[Any] | None = None
        """Waiter of the one reader, if that is a task."""
        self.listener: Listener | None = None
        """Listener of the one reader, if messages are handed to it."""
        self.eof = False
        """The other end has half-closed the stream: it writes no more."""
        self.unread = 0
        """Bytes sent from here of which the other end has not said yet that its reader has taken them."""
        self.taken = 0
        """Bytes that the reader here has taken and the other end has not been told of."""
        self.window_waiter: asyncio.Future[None] | None = None
        self.latency: Any = None
        """For the wire: of what this end sends."""
        self.last_ns = 0
        """For the wire: when the last message sent from here arrives."""

    def receive(self, data: bytes) -> None:
        """A message has arrived."""
        listener = self.listener
        if listener is not None and not listener.busy:
            listener.busy = True
            if listener.ready is not None:
                listener.ready.append((listener.come, (data,), listener.context))
            else:
                self.loop.call_soon(listener.come, data, context=listener.context)
            return
        waiter = self.waiter
        if waiter is not None and not waiter.done():
            self.waiter = None
            waiter.set_result(data)
        elif self.inbox is None:
            self.inbox = deque((data,))
        else:
            self.inbox.append(data)

    def next(self) -> bytes:
        """Take the first message out of :attr:`inbox`, which is there."""
        inbox = self.inbox
        assert inbox is not None
        data = inbox.popleft()
        if not inbox:
            self.inbox = None
        return data

    def receive_eof(self) -> None:
        """The other end has half-closed the stream."""
        self.eof = True
        listener = self.listener
        if listener is not None and not listener.busy and not listener.over.done():
            listener.over.set_result(False)
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            if not waiter.done():
                waiter.set_result(EOF)

    async def take(self) -> Any:
        """The next message as bytes, or EOF when the stream is over, however it ended."""
        if self.inbox is not None:
            data = self.next()
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
        self.taken += len(data)
        if self.taken >= WINDOW_UPDATE_BYTES:
            self.update_window()
        return data

    def listen(
        self,
        parse: Callable[[bytes], Any],
        handle: Callable[[Any], object],
        pause: Pause | None = None,
        first: Callable[[], object] | None = None,
    ) -> asyncio.Future[bool]:
        """Have every message handed to ``handle``, from now until the stream is over, however it ends, or ``handle``
        returns something true. To be awaited: whether it did; raises what it raises. It may not be read meanwhile.
        """
        if self.waiter is not None or (self.listener is not None and not self.listener.over.done()):
            raise grpc.aio.UsageError("another task is reading this stream")
        listener = self.listener = Listener(self, parse, handle, pause, first)
        if self.inbox is not None:
            listener.busy = True
            listener.come(self.next(), is_step=False)
        elif self.eof:
            listener.over.set_result(False)
        return listener.over

    def update_window(self) -> None:
        """Tell the other end what has been read; that takes as long as any message."""
        partner = self.partner
        if partner is not None:
            taken, self.taken = self.taken, 0
            self.link.send(self, partner.receive_window_update, taken)

    def receive_window_update(self, taken: int) -> None:
        """The other end's reader has taken so many bytes more."""
        self.unread -= taken
        if self.window_waiter is not None:
            self.open_window()

    async def wait_for_window(self) -> None:
        """Wait until the other end has read enough, or the call is over."""
        while self.unread > WINDOW_BYTES:
            if self.window_waiter is not None:
                raise grpc.aio.UsageError("another task is writing to this stream")
            waiter = self.window_waiter = self.loop.create_future()
            try:
                await waiter
            finally:
                self.window_waiter = None

    def call_when_open(self, callback: Callable[[Any], object], context: contextvars.Context) -> bool:
        """Whether the window is full; then ``callback`` is called when that is over, or the call."""
        if self.unread <= WINDOW_BYTES:
            return False
        if self.window_waiter is not None:
            raise grpc.aio.UsageError("another task is writing to this stream")
        self.window_waiter = self.loop.create_future()
        self.window_waiter.add_done_callback(callback, context=context)
        return True

    def open_window(self, *, over: bool = False) -> None:
        if over:
            self.unread = 0
        waiter = self.window_waiter
        if waiter is not None and self.unread <= WINDOW_BYTES and not waiter.done():
            waiter.set_result(None)


class ClientEnd(End, abc.ABC):
    """The client's end, as the server and the connection see it."""

    is_client = True
    is_repeatable: ClassVar[bool] = False
    """One request and one response: a client library may send the request again when it does not know its outcome."""

    __slots__ = ("deadline", "is_started", "message", "metadata", "start_awaited", "status")

    message: Any
    """The request of calls with a single one, as it was given; it may already be bytes."""
    metadata: tuple[Metadatum, ...]
    status: Status | None
    is_started: bool
    """The server has the call."""
    start_awaited: bool
    """:meth:`started` is to be called when it has."""
    deadline: float | None
    """In the loop's time; where the other end keeps it, in seconds after the beginning (:meth:`Link.limit`)."""

    @property
    @abc.abstractmethod
    def request(self) -> bytes:
        """Request of calls with a single request."""

    @abc.abstractmethod
    def cancel(self) -> bool:
        """End the call; False if it is over already."""

    def started(self) -> None:
        """The server has the call."""
        self.is_started = True

    @abc.abstractmethod
    def receive_initial_metadata(self, metadata: tuple[tuple[str, str | bytes], ...]) -> None: ...

    @abc.abstractmethod
    def receive_status(self, status: Status) -> None:
        """The server has ended the call."""

    @abc.abstractmethod
    def connection_lost(self, status: Status) -> None:
        """The connection broke; messages that were received and not yet read are lost with it."""


class ServerEnd(End, abc.ABC):
    """The server's end, as the client and the connection see it."""

    __slots__ = ()

    @abc.abstractmethod
    def client_gone(self, _: object = None) -> None:
        """The client has cancelled the call, or the connection broke: the handler is cancelled."""


class Acceptor(Protocol):
    """A server, as the connection sees it."""

    def accept(self, call: ClientEnd) -> None:
        """The first message of a call has arrived."""
        ...

    def close(self) -> None:
        """Accept no more calls."""
        ...


class Link(abc.ABC):
    """One connection between a client and a server. Once broken it stays broken; the next call needs a new one."""

    __slots__ = ("broken", "calls", "client_name", "connected", "contexts", "send", "server")

    def __init__(self, server: Acceptor | None, client_name: str, send: Send) -> None:
        self.client_name = client_name
        self.server = server
        """None: no server listens there; the calls fail after a while."""
        self.send = send
        """An attribute and not a method: it is called for each message, and the link replaces it when its state
        changes instead of asking for that state each time."""
        self.calls: dict[ClientEnd, None] = {}
        """Those that are not over for the client, oldest first."""
        self.contexts: dict[ServerEnd, None] = {}
        """Those that are not over for the server, oldest first."""
        self.connected = server is not None
        """False until the server is known to be reachable: writes wait for that."""
        self.broken = False

    @abc.abstractmethod
    def start(self, call: ClientEnd) -> None:
        """Add the call to ``calls`` and have ``server.accept(call)`` called; if no server listens, ``break_client``."""

    def limit(self, call: ClientEnd, timeout_s: float, over: Callable[[], object]) -> asyncio.TimerHandle | None:
        """Before it starts: the call is ``over`` after so long. None: the other end keeps the time."""
        call.deadline = call.loop.time() + timeout_s
        return call.loop.call_later(timeout_s, over)

    @abc.abstractmethod
    def attach(self, context: ServerEnd) -> None:
        """The server has accepted a call: add its end to ``contexts``."""

    @abc.abstractmethod
    def is_blocked(self) -> bool:
        """Whether messages do not get through in one direction at least."""

    def break_client(self, details: str) -> None:
        """End all calls of the client with UNAVAILABLE."""
        status = Status(grpc.StatusCode.UNAVAILABLE, details)
        for call in list(self.calls):
            call.connection_lost(status)

    def break_server(self) -> None:
        """Cancel all handlers of the server."""
        for context in list(self.contexts):
            context.client_gone()


class _Readable(Protocol):
    async def read(self) -> Any: ...


class RequestIterator:
    """The requests of a streaming call, for handlers that iterate over them."""

    __slots__ = ("_context",)

    def __init__(self, context: _Readable) -> None:
        self._context = context

    def __aiter__(self) -> RequestIterator:
        return self

    async def __anext__(self) -> Any:
        message = await self._context.read()
        if message is EOF:
            raise StopAsyncIteration
        return message
