"""The client's end of in-memory gRPC: the part of ``grpc.aio.Channel`` that generated stubs use.

Calls behave like those of ``grpc.aio`` (``tests/runtime/test_transports.py`` runs the same expectations against both),
with two differences: a call begins when it is made, not in the next turn of the loop; and a call that is dropped
without ``cancel()`` stays open, because nothing may depend on when garbage is collected. Messages are serialised when
they are sent and parsed when they are read. Neighbours: ``servers`` is the other end, ``ends`` says what both share,
``networks`` carries the messages between them.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Generator, Iterable, Sequence
from typing import Any, TypedDict, Unpack

import grpc
from google.protobuf.message import Message

from kemu.runtime.env import Codec
from kemu.runtime.rpc.ends import (
    EOF,
    FINISHED,
    NO_METADATA,
    WINDOW_BYTES,
    ClientEnd,
    Link,
    Metadatum,
    Pause,
    Standin,
    Status,
    identity,
)

Metadata = Sequence[tuple[str, str | bytes]]

_CANCELLED = Status(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
_HALF_CLOSED = 'RPC is half closed after calling "done_writing".'
_MIXED_STYLES = "The iterator and read/write APIs may not be mixed on a single RPC."


class MemoryChannel:
    """A channel to one server by name.

    ``connect`` makes a link to wherever that server is now; it never fails, its calls do.
    """

    __slots__ = ("_arguments", "_closed", "_connect", "current", "loop", "metadata")

    takes_standins = True
    """Whether a request may be a :class:`~kemu.runtime.rpc.ends.Standin`."""

    def __init__(
        self,
        connect: Callable[..., Link],
        loop: asyncio.AbstractEventLoop,
        metadata: Metadata = NO_METADATA,
        arguments: tuple[object, ...] = (),
    ) -> None:
        """``metadata`` goes with every call; ``arguments``: for ``connect``."""
        self.loop = loop
        self.metadata = tuple(Metadatum(key, value) for key, value in metadata)
        self._connect = connect
        self._arguments = arguments
        self.current: Link | None = None
        """The connection, if it was needed yet; it may be broken."""
        self._closed = False

    def link(self) -> Link:
        """The current connection, or a new one if that is broken."""
        link = self.current
        if link is None or link.broken:
            if self._closed:
                raise grpc.aio.UsageError("Channel is closed.")
            link = self.current = self._connect(*self._arguments)
        return link

    def is_blocked(self) -> bool:
        """Whether its connection lasts although messages do not get through."""
        return self.current is not None and not self.current.broken and self.current.is_blocked()

    def unary_unary(
        self,
        method: str,
        request_serializer: Codec | None = None,
        response_deserializer: Codec | None = None,
        *,
        _registered_method: bool | None = False,
    ) -> Callable[..., Any]:
        multi = MultiCallable(self, method, request_serializer, response_deserializer)
        return functools.partial(UnaryUnaryCall, multi)

    def unary_stream(
        self,
        method: str,
        request_serializer: Codec | None = None,
        response_deserializer: Codec | None = None,
        *,
        _registered_method: bool | None = False,
    ) -> Callable[..., Any]:
        multi = MultiCallable(self, method, request_serializer, response_deserializer)
        return functools.partial(UnaryStreamCall, multi)

    def stream_unary(
        self,
        method: str,
        request_serializer: Codec | None = None,
        response_deserializer: Codec | None = None,
        *,
        _registered_method: bool | None = False,
    ) -> Callable[..., Any]:
        multi = MultiCallable(self, method, request_serializer, response_deserializer)
        return functools.partial(StreamUnaryCall, multi)

    def stream_stream(
        self,
        method: str,
        request_serializer: Codec | None = None,
        response_deserializer: Codec | None = None,
        *,
        _registered_method: bool | None = False,
    ) -> Callable[..., Any]:
        multi = MultiCallable(self, method, request_serializer, response_deserializer)
        return functools.partial(StreamStreamCall, multi)

    async def close(self, grace: float | None = None) -> None:
        """Cancel all calls; new ones are refused."""
        self._closed = True
        link, self.current = self.current, None
        if link is not None:
            for call in list(link.calls):
                call.cancel()

    async def __aenter__(self) -> MemoryChannel:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()


class MultiCallable:
    """One method of a stub, as its calls see it."""

    __slots__ = ("channel", "deserialize", "method", "serialize")

    def __init__(
        self,
        channel: MemoryChannel,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
    ) -> None:
        self.channel = channel
        self.method = method
        self.serialize = request_serializer or identity
        self.deserialize = response_deserializer or identity


class Options(TypedDict, total=False):
    """What a stub's method takes beside its request."""

    timeout: float | None
    metadata: Metadata | None
    credentials: object
    wait_for_ready: bool | None
    compression: object


class Call(ClientEnd):
    """The client's end of one call of any kind."""

    __slots__ = (
        "_done_callbacks",
        "_half_closed",
        "_initial_metadata",
        "_iterates",
        "_locally_cancelled",
        "_request",
        "_status_waiters",
        "_timer",
        "_writer",
        "deserialize",
        "serialize",
    )

    def __init__(
        self,
        multi: MultiCallable,
        request: Any = None,
        *,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: object = None,
        wait_for_ready: bool | None = None,
        compression: object = None,
    ) -> None:
        """``timeout`` in seconds. For methods that take a stream, ``request`` is an iterable, async or not, or None."""
        if wait_for_ready:
            raise grpc.aio.UsageError("wait_for_ready is not supported in memory: try again after UNAVAILABLE")
        channel = multi.channel
        link = channel.current
        if link is None or link.broken:
            link = channel.link()
        # End.__init__, inlined.
        self.link = link
        self.loop = channel.loop
        self.partner = self.inbox = self.waiter = self.listener = self.window_waiter = self.latency = None
        self.eof = False
        self.unread = self.taken = self.last_ns = 0
        self.method = multi.method
        self.serialize = multi.serialize
        self.deserialize = multi.deserialize
        self.message = request
        self._request: bytes | None = None if self.is_repeatable else request
        """Of a call with one request and one response: made when it is asked for."""
        self.metadata = channel.metadata
        if metadata:
            self.metadata += tuple(Metadatum(key, value) for key, value in metadata)
        self.status = None
        self.deadline = None
        self._timer: asyncio.TimerHandle | None = None
        self._status_waiters: list[asyncio.Future[None]] | None = None
        self._done_callbacks: list[Callable[[Any], Any]] | None = None
        self._initial_metadata: tuple[tuple[str, str | bytes], ...] | None = None
        self.is_started = False
        self.start_awaited = False
        self._locally_cancelled = False
        self._iterates: bool | None = None
        self._half_closed = False
        self._writer: asyncio.Task[None] | None = None
        if timeout is not None:
            self._timer = link.limit(self, timeout, self._deadline_exceeded)
        link.start(self)

    # For links and servers

    @property
    def request(self) -> bytes:
        data = self._request
        if data is None:
            message = self.message
            data = message.SerializeToString() if isinstance(message, Standin) else self.serialize(message)
            self._request = data
        return data

    def started(self) -> None:
        self.is_started = True
        if self.start_awaited:
            self._wake_status_waiters()

    def receive_initial_metadata(self, metadata: tuple[tuple[str, str | bytes], ...]) -> None:
        self._initial_metadata = metadata
        self._wake_status_waiters()

    def receive_status(self, status: Status) -> None:
        if self.status is None:
            self._end(status)
            self.partner = None

    def connection_lost(self, status: Status) -> None:
        if self.status is None:
            self.inbox = None
            self._end(status)
            self.partner = None

    def _forward(self, data: bytes) -> None:
        partner = self.partner
        if partner is not None:
            partner.receive(data)

    def _forward_eof(self, _: object) -> None:
        partner = self.partner
        if partner is not None:
            partner.receive_eof()

    def _forward_cancel(self, _: object) -> None:
        partner = self.partner
        if partner is not None:
            self.partner = None
            partner.client_gone()

    # For applications

    def done(self) -> bool:
        return self.status is not None and not self.inbox

    def cancelled(self) -> bool:
        return self.status is not None and self.status.code is grpc.StatusCode.CANCELLED

    def cancel(self) -> bool:
        if self.status is not None:
            return False
        self._locally_cancelled = True
        self._abandon(_CANCELLED)
        return True

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        if self.status is not None:
            self.loop.call_soon(callback, self)
        elif self._done_callbacks is None:
            self._done_callbacks = [callback]
        else:
            self._done_callbacks.append(callback)

    def time_remaining(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - self.loop.time())

    async def initial_metadata(self) -> grpc.aio.Metadata:
        while self._initial_metadata is None and self.status is None:
            await self._status_changed()
        return grpc.aio.Metadata(*(self._initial_metadata or ()))

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata(*(await self._final_status()).trailing)

    async def code(self) -> grpc.StatusCode:
        return (await self._final_status()).code

    async def details(self) -> str:
        return (await self._final_status()).details

    async def debug_error_string(self) -> str:
        return (await self._final_status()).details

    async def wait_for_connection(self) -> None:
        """Until the server has the call. Raises ``AioRpcError`` when that fails."""
        self.start_awaited = True
        while not self.is_started and self.status is None:
            await self._status_changed()
        if self.status is not None:
            self._raise_for_status(self.status)

    # Within

    def _deadline_exceeded(self) -> None:
        if self.status is None:
            self._timer = None
            self._abandon(Status(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"))

    def _abandon(self, status: Status) -> None:
        """End the call from this side, and tell the server."""
        self.inbox = None
        link = self.link
        if not link.broken:
            link.send(self, self._forward_cancel, None)
        self._end(status)

    def _end(self, status: Status) -> None:
        self.status = status
        self.link.calls.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.eof = True
        if self.listener is not None or self.waiter is not None:
            self.receive_eof()
        if self._writer is not None:
            self._writer.cancel()
        if self.window_waiter is not None:
            self.open_window(over=True)
        waiters = self._status_waiters
        if waiters is not None:  # _wake_status_waiters, inlined
            self._status_waiters = None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        if self._done_callbacks is not None:
            for callback in self._done_callbacks:
                self.loop.call_soon(callback, self)
            self._done_callbacks = None

    def _wake_status_waiters(self) -> None:
        waiters, self._status_waiters = self._status_waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def _status_changed(self) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = self.loop.create_future()
        if self._status_waiters is None:
            self._status_waiters = [waiter]
        else:
            self._status_waiters.append(waiter)
        return waiter

    async def _final_status(self) -> Status:
        while self.status is None:
            await self._status_changed()
        return self.status

    def _raise_for_status(self, status: Status) -> None:
        if self._locally_cancelled:
            raise asyncio.CancelledError
        if status.code is not grpc.StatusCode.OK:
            raise grpc.aio.AioRpcError(
                status.code,
                grpc.aio.Metadata(*(self._initial_metadata or ())),
                grpc.aio.Metadata(*status.trailing),
                details=status.details,
                debug_error_string=f"{self.method}: {status.details}",
            )

    def __repr__(self) -> str:
        state = "running" if self.status is None else self.status.code.name
        return f"<{type(self).__name__} {self.method} {state}>"


class _UnaryResponse(Call):
    """Calls with one response: they are awaited."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Any]:
        while self.status is None:
            waiter = self.loop.create_future()  # _status_changed, inlined
            if self._status_waiters is None:
                self._status_waiters = [waiter]
            else:
                self._status_waiters.append(waiter)
            try:
                yield from waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
        status = self.status
        if status.message is not None:
            return status.message
        if status.response is None:
            self._raise_for_status(status)
            raise grpc.aio.InternalError("the call ended well but without a response")
        return self.deserialize(status.response)


class _StreamResponse(Call):
    """Calls with a stream of responses: ``read()`` or ``async for``, not both."""

    __slots__ = ()

    def read(self) -> Coroutine[Any, Any, Any]:
        """The next response; ``grpc.aio.EOF`` at the end. Raises ``AioRpcError`` when the call ended badly."""
        if self._iterates:
            raise grpc.aio.UsageError(_MIXED_STYLES)
        self._iterates = False
        return self._read()

    async def _read(self) -> Any:
        try:
            data = await self.take()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if data is EOF:
            self._raise_for_status(await self._final_status())
            return EOF
        return self.deserialize(data)

    async def each(
        self,
        handle: Callable[[Any], object],
        pause: Pause | None = None,
        first: Callable[[], object] | None = None,
    ) -> None:
        """:meth:`read` until the end, with a step of the loop for each response and no task that waits for it."""
        try:
            if await self.reading(handle, pause, first):
                return
        except asyncio.CancelledError:
            self.cancel()
            raise
        self.check()

    def reading(
        self, handle: Callable[[Any], object], pause: Pause | None, first: Callable[[], object] | None
    ) -> asyncio.Future[bool]:
        """The wait of :meth:`each`. Where its end is reached, :meth:`check` says how."""
        self._iterates = False
        return self.listen(self.deserialize, handle, pause, first)

    def check(self) -> None:
        """Raises what awaiting the end of the call, which is over, would raise."""
        assert self.status is not None
        self._raise_for_status(self.status)

    def __aiter__(self) -> AsyncIterator[Any]:
        if self._iterates is False:
            raise grpc.aio.UsageError(_MIXED_STYLES)
        self._iterates = True
        return self

    async def __anext__(self) -> Any:
        message = await self._read()
        if message is EOF:
            raise StopAsyncIteration
        return message


class _StreamRequest(Call):
    """Calls with a stream of requests: ``write()``, or an iterable that was given at the start."""

    __slots__ = ()

    def _start_writing(self, requests: AsyncIterable[Any] | Iterable[Any] | None) -> None:
        if requests is not None:
            self._writer = self.loop.create_task(self._write_all(requests))

    async def write(self, request: Message | bytes | None) -> None:
        """Send one request. Waits while the flow-control window is full.

        Raises ``asyncio.InvalidStateError`` when the call is over, ``AioRpcError`` when it ends meanwhile.
        """
        if self._writer is not None:
            raise grpc.aio.UsageError(_MIXED_STYLES)
        await self._write(request)

    @property
    def can_post(self) -> bool:
        """Whether :meth:`post` may take the place of :meth:`write`."""
        return self.link.connected

    def post(self, request: Message | bytes | None) -> None:
        """:meth:`write` without waiting, even if the window is full. Raises ``asyncio.InvalidStateError``."""
        if self.status is not None:
            raise asyncio.InvalidStateError(FINISHED)
        if self._half_closed:
            raise asyncio.InvalidStateError(_HALF_CLOSED)
        data = self.serialize(request)
        self.unread += len(data)
        self.link.send(self, self._forward, data)

    async def _write(self, request: Message | bytes | None) -> None:
        if self.status is None and not self._half_closed and not self.link.connected:
            await self._wait_for_link()
        self.post(request)
        if self.unread > WINDOW_BYTES:
            try:
                await self.wait_for_window()
            except asyncio.CancelledError:
                self.cancel()
                raise
            if self.status is not None:
                self._raise_for_status(self.status)

    async def _wait_for_link(self) -> None:
        try:
            await self.wait_for_connection()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self.status is not None:
            raise asyncio.InvalidStateError(FINISHED)

    async def done_writing(self) -> None:
        """Half-close the call: the server reads EOF after the last message. May be repeated."""
        if self._writer is not None:
            raise grpc.aio.UsageError(_MIXED_STYLES)
        self._half_close()

    def _half_close(self) -> None:
        if self.status is None and not self._half_closed:
            self._half_closed = True
            self.link.send(self, self._forward_eof, None)

    async def _write_all(self, requests: AsyncIterable[Any] | Iterable[Any]) -> None:
        try:
            if isinstance(requests, AsyncIterable):
                async for request in requests:
                    await self._write(request)
            else:
                for request in requests:
                    await self._write(request)
            self._half_close()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass  # the call is over; its reader learns why
        except BaseException:
            # As grpc.aio: an iterator that fails cancels the call.
            self.cancel()
            raise


class UnaryUnaryCall(_UnaryResponse):
    """As with ``grpc.aio``, a request must not be changed once it is on its way."""

    is_repeatable = True

    __slots__ = ()

    def receive_status(self, status: Status) -> None:
        if self.status is not None:
            return
        if self._timer is not None or self._done_callbacks is not None:
            self._end(status)
        else:  # _end, inlined: nothing is streamed
            self.status = status
            self.eof = True
            self.link.calls.pop(self, None)
            waiters = self._status_waiters
            if waiters is not None:
                self._status_waiters = None
                for waiter in waiters:
                    if not waiter.done():
                        waiter.set_result(None)
        self.partner = None


class UnaryStreamCall(_StreamResponse):
    __slots__ = ()

    def __init__(
        self, multi: MultiCallable, request: Message | bytes | None = None, **options: Unpack[Options]
    ) -> None:
        super().__init__(multi, multi.serialize(request), **options)


class StreamUnaryCall(_StreamRequest, _UnaryResponse):
    __slots__ = ()

    def __init__(self, multi: MultiCallable, request: Any = None, **options: Unpack[Options]) -> None:
        super().__init__(multi, b"", **options)
        self._start_writing(request)


class StreamStreamCall(_StreamRequest, _StreamResponse):
    __slots__ = ()

    def __init__(self, multi: MultiCallable, request: Any = None, **options: Unpack[Options]) -> None:
        super().__init__(multi, b"", **options)
        self._start_writing(request)
