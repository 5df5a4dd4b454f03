"""Channels of the gateway into a world in virtual time: the part of ``grpc.aio.Channel`` that generated stubs use.

    channel = Channel(driver, "apiserver/0")
    response = await api_pb2_grpc.ApiStub(channel).Get(api_pb2.GetRequest(…), timeout=5)

Calls are awaited on the event loop outside. What they send becomes an input of the world; what they hear is told them
within a slice, and wakes them when the loop outside has its turn. Timeouts are in virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Sequence
from typing import Any

import grpc
from google.protobuf.message import Message

from kemu.lab.up.virtual.drivers import Driver, Ended
from kemu.lab.up.virtual.worlds import Answer
from kemu.runtime.rpc.ends import EOF, FINISHED, identity

UNREAD_BYTES = 64 << 20
"""Of one stream, which its client does not read: then it is ended."""

Metadata = Sequence[tuple[str, str | bytes]]


class Channel:
    """To one actor."""

    def __init__(self, driver: Driver, target: str) -> None:
        self.driver = driver
        self.target = target

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> MultiCallable:
        return MultiCallable(self, UnaryCall, method, *args, **kwargs)

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> MultiCallable:
        return MultiCallable(self, StreamCall, method, *args, **kwargs)

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> MultiCallable:
        raise grpc.aio.UsageError(f"{method}: the API has no such calls")

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> MultiCallable:
        raise grpc.aio.UsageError(f"{method}: the API has no such calls")

    async def close(self, grace: float | None = None) -> None:
        """Its calls end with the world."""


class MultiCallable:
    """One method of a stub."""

    def __init__(
        self,
        channel: Channel,
        call: type[UnaryCall] | type[StreamCall],
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> None:
        self.channel = channel
        self.method = method
        self.serialize = request_serializer or identity
        self.deserialize = response_deserializer or identity
        self._call = call

    def __call__(
        self,
        request: Message | None = None,
        *,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: object = None,
        wait_for_ready: bool | None = None,
        compression: object = None,
    ) -> Any:
        return self._call(self, request, timeout, metadata)


class _Call:
    """What calls of both kinds have in common."""

    def __init__(self, multi: MultiCallable) -> None:
        self._multi = multi
        self._driver = multi.channel.driver
        self._loop = asyncio.get_running_loop()
        self._number = self._driver.next_number()
        self._answer: Answer | None = None
        self._cancelled = False
        self._news = asyncio.Event()
        self._done_callbacks: list[Callable[[Any], Any]] = []

    def _put(self, what: str, *more: Any) -> None:
        try:
            self._driver.put([what, self._number, *more], self)
        except Ended as error:
            if self._answer is None:
                self._ended(Answer(grpc.StatusCode.UNAVAILABLE, str(error), (), None))

    def _ended(self, answer: Answer) -> None:
        self._answer = answer
        # The loop outside is not the running one within a slice; these only append to its agenda.
        self._loop.call_soon(self._news.set)
        for callback in self._done_callbacks:
            self._loop.call_soon(callback, self)
        self._done_callbacks.clear()

    def hear(self, data: bytes) -> None:
        raise AssertionError("a unary call hears nothing but its end")

    def end(self, answer: Answer) -> None:
        if self._answer is None:
            self._ended(answer)

    def done(self) -> bool:
        return self._answer is not None

    def cancelled(self) -> bool:
        return self._answer is not None and self._answer.code is grpc.StatusCode.CANCELLED

    def cancel(self) -> bool:
        if self._answer is not None:
            return False
        self._cancelled = True
        self._put("cancel")
        self.end(Answer(grpc.StatusCode.CANCELLED, "Locally cancelled by application!", (), None))
        return True

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        if self._answer is not None:
            self._loop.call_soon(callback, self)
        else:
            self._done_callbacks.append(callback)

    async def _final(self) -> Answer:
        while self._answer is None:
            self._news.clear()
            await self._news.wait()
        return self._answer

    async def code(self) -> grpc.StatusCode:
        return (await self._final()).code

    async def details(self) -> str:
        return (await self._final()).details

    async def initial_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata()

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata(*(await self._final()).trailing)

    def _check(self, answer: Answer) -> None:
        if self._cancelled:
            raise asyncio.CancelledError
        if answer.code is not grpc.StatusCode.OK:
            raise grpc.aio.AioRpcError(
                answer.code,
                grpc.aio.Metadata(),
                grpc.aio.Metadata(*answer.trailing),
                details=answer.details,
                debug_error_string=f"{self._multi.method}: {answer.details}",
            )


class UnaryCall(_Call):
    """It is awaited."""

    def __init__(self, multi: MultiCallable, request: Any, timeout: float | None, metadata: Metadata | None) -> None:
        super().__init__(multi)
        given = [multi.channel.target, multi.method, [list(each) for each in metadata or ()], timeout]
        self._driver.ask(self._number, multi.method)
        self._put("call", *given, multi.serialize(request))

    def _ended(self, answer: Answer) -> None:
        self._driver.answered(self._number)
        super()._ended(answer)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._response().__await__()

    async def _response(self) -> Any:
        try:
            answer = await self._final()
        except asyncio.CancelledError:
            self.cancel()
            raise
        self._check(answer)
        if answer.data is None:
            raise grpc.aio.InternalError("the call ended well but without a response")
        return self._multi.deserialize(answer.data)


class StreamCall(_Call):
    """``write()`` and ``read()``, or iteration."""

    def __init__(self, multi: MultiCallable, request: Any, timeout: float | None, metadata: Metadata | None) -> None:
        super().__init__(multi)
        self._inbox: deque[bytes] = deque()
        self._unread = 0
        self._closed = False
        given = [multi.channel.target, multi.method, [list(each) for each in metadata or ()], timeout]
        self._put("stream", *given)
        self._writer: asyncio.Task[None] | None = None
        if request is not None:
            self._writer = self._loop.create_task(self._write_all(request))

    def hear(self, data: bytes) -> None:
        self._inbox.append(data)
        self._unread += len(data)
        self._driver.told()
        self._loop.call_soon(self._news.set)
        if self._unread > UNREAD_BYTES:
            self._loop.call_soon(self.cancel)

    def end(self, answer: Answer) -> None:
        self._driver.told()
        super().end(answer)

    async def write(self, request: Message | None) -> None:
        """Raises ``asyncio.InvalidStateError`` when the call is over."""
        self.post(request)

    can_post = True

    def post(self, request: Any) -> None:
        if self._answer is not None:
            raise asyncio.InvalidStateError(FINISHED)
        self._driver.stir()
        self._put("write", self._multi.serialize(request))

    async def done_writing(self) -> None:
        if not self._closed and self._answer is None:
            self._closed = True
            self._put("close")

    async def wait_for_connection(self) -> None:
        """A world is always there; what becomes of the call in it shows later."""

    async def _write_all(self, requests: AsyncIterable[Any] | Iterable[Any]) -> None:
        with contextlib.suppress(asyncio.InvalidStateError):
            if isinstance(requests, AsyncIterable):
                async for request in requests:
                    self.post(request)
            else:
                for request in requests:
                    self.post(request)
            await self.done_writing()

    async def read(self) -> Any:
        """The next response; ``grpc.aio.EOF`` at the end. Raises ``AioRpcError`` when the call ended badly."""
        try:
            while not self._inbox:
                if self._answer is not None:
                    self._check(self._answer)
                    return EOF
                self._news.clear()
                await self._news.wait()
        except asyncio.CancelledError:
            self.cancel()
            raise
        data = self._inbox.popleft()
        self._unread -= len(data)
        return self._multi.deserialize(data)

    async def each(self, handle: Callable[[Any], object], pause: Any = None) -> None:
        """:meth:`read` until the end, or until ``handle`` returns something true."""
        while True:
            message = await self.read()
            if message is EOF or handle(message):
                return
            if pause is not None and (wait := pause()) is not None:
                await wait

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is EOF:
            raise StopAsyncIteration
        return message
