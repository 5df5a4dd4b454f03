"""The server's end of in-memory gRPC: takes the handlers that generated code registers, and runs them.

To servicers it behaves like ``grpc.aio.server()`` (``tests/runtime/test_transports.py`` runs the same expectations
against both), except that handlers which are not async are called directly and not in a thread. Neighbours:
``clients`` is the other end, ``ends`` says what both share, ``networks`` carries the messages between them.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import grpc
from google.protobuf.message import Message

from kemu.runtime.rpc.ends import (
    EOF,
    FINISHED,
    NO_METADATA,
    WINDOW_BYTES,
    ClientEnd,
    Metadatum,
    Pause,
    RequestIterator,
    ServerEnd,
    Standin,
    Status,
    identity,
    ready_of,
)

Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]
OnError = Callable[[str, BaseException], None]


Begin = Callable[[Any, "Context"], None]
"""Takes a request, which it only reads, and the context; has :meth:`Context.answer` or :meth:`Context.refuse` called,
now or later."""


def begun_by(begin_of: Callable[[Any], Begin]) -> Callable[[Any], Any]:
    """Mark an asynchronous handler with one request and one response: in memory, what ``begin_of`` says for its
    servicer takes its place."""

    def mark(handler: grpc.RpcMethodHandler) -> Any:
        handler.begin_of = begin_of
        return handler

    return mark


class _Method:
    """A registered handler, and what to know of it at each call."""

    __slots__ = ("begin", "behavior", "deserialize", "generates", "is_async", "label", "serialize", "streams_in",
                 "streams_out")  # fmt: skip

    def __init__(self, label: str, handler: grpc.RpcMethodHandler) -> None:
        self.label = label
        """Label of the tasks that run it."""
        self.streams_in: bool = handler.request_streaming
        self.streams_out: bool = handler.response_streaming
        self.deserialize: Callable[[bytes], Any] = handler.request_deserializer or identity
        self.serialize: Callable[[Any], bytes] = handler.response_serializer or identity
        if self.streams_in:
            self.behavior = handler.stream_stream if self.streams_out else handler.stream_unary
        else:
            self.behavior = handler.unary_stream if self.streams_out else handler.unary_unary
        function = getattr(self.behavior, "__func__", self.behavior)
        self.generates, self.is_async = _style(function)
        begin_of = getattr(function, "begin_of", None)
        self.begin: Begin | None = begin_of and begin_of(self.behavior.__self__)


@lru_cache(1024)
def _style(behavior: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether a handler is an asynchronous generator, and whether it is asynchronous at all."""
    generates = inspect.isasyncgenfunction(behavior)
    return generates, generates or inspect.iscoroutinefunction(behavior)


_WHOLE = (Message, Standin)
_NO_METHODS: dict[str, _Method] = {}
"""Stays empty: most actors serve nothing."""


class Server:
    """What ``add_XServicer_to_server(servicer, server)`` wants, and the calls that are being served."""

    __slots__ = ("_generic_handlers", "_methods", "_on_error", "_ready", "_spawn", "closed", "context", "loop", "name")

    def __init__(
        self,
        name: str,
        spawn: Spawn,
        loop: asyncio.AbstractEventLoop,
        on_error: OnError | None = None,
        context: contextvars.Context | None = None,
    ) -> None:
        """``spawn`` starts the task of a call, given its name. ``on_error`` hears what a handler raised by mistake.
        ``context``: in which handlers without a task run."""
        self.name = name
        self.loop = loop
        self.closed = False
        self.context = context or contextvars.copy_context()
        self._ready = ready_of(loop)
        self._spawn = spawn
        self._on_error = on_error
        self._methods = _NO_METHODS
        self._generic_handlers: tuple[Any, ...] = ()

    # Registration

    def add_registered_method_handlers(self, service_name: str, method_handlers: Mapping[str, Any]) -> None:
        if self._methods is _NO_METHODS:
            self._methods = {}
        for name, handler in method_handlers.items():
            path = f"/{service_name}/{name}"
            self._methods[path] = _Method(f"{self.name}: {path}", handler)

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[Any]) -> None:
        self._generic_handlers += tuple(generic_rpc_handlers)

    def _find(self, call: ClientEnd) -> _Method | None:
        details = _HandlerCallDetails(call.method, call.metadata)
        for generic in self._generic_handlers:
            handler = generic.service(details)
            if handler is not None:
                method = _Method(f"{self.name}: {call.method}", handler)
                self._methods = {**self._methods, call.method: method}
                return method
        return None

    # Calls

    def accept(self, call: ClientEnd) -> None:
        if self.closed or call.status is not None:
            return
        method = self._methods.get(call.method) or self._find(call)
        context = Context(call, self, method)
        call.partner = context
        call.link.attach(context)
        call.is_started = True
        if call.start_awaited:
            call.started()
        if method is None:
            context._finish(Status(grpc.StatusCode.UNIMPLEMENTED, "Method not found!"))
            return
        if method.begin is not None:
            if self._ready is not None:
                self._ready.append((self._begin, (context, method.begin), self.context))
            else:
                self.loop.call_soon(self._begin, context, method.begin, context=self.context)
            return
        if method.streams_out:
            coroutine = self._serve_stream(context, method)
        else:
            coroutine = self._serve_unary(context, method)
        context._task = self._spawn(coroutine, method.label)

    def _begin(self, context: Context, begin: Begin) -> None:
        if context._finished or self.closed:
            return
        try:
            message = context._call.message
            # A caller that begins a call without a task only reads: the message is its own, unless that is a relay.
            begin(message if isinstance(message, _WHOLE) else context._parse_request(), context)
        except asyncio.CancelledError:
            context._handler_cancelled()
        except Exception as error:
            self._handler_failed(context, error)

    async def _serve_unary(self, context: Context, method: _Method) -> None:
        try:
            request = RequestIterator(context) if method.streams_in else context._parse_request()
            response = method.behavior(request, context)
            if method.is_async:
                response = await response
            context._raise_if_over()
            if context._code is grpc.StatusCode.OK:
                context._finish(
                    Status(grpc.StatusCode.OK, context._details, context._trailing, method.serialize(response))
                )
            else:
                context._finish(Status(context._code, context._details, context._trailing))
        except asyncio.CancelledError:
            context._handler_cancelled()
            raise
        except Exception as error:
            self._handler_failed(context, error)

    async def _serve_stream(self, context: Context, method: _Method) -> None:
        try:
            request = RequestIterator(context) if method.streams_in else context._parse_request()
            if method.generates:
                async for response in method.behavior(request, context):
                    await context.write(response)
            elif method.is_async:
                await method.behavior(request, context)
            else:
                for response in method.behavior(request, context):
                    await context.write(response)
            context._raise_if_over()
            context._finish(Status(context._code, context._details, context._trailing))
        except asyncio.CancelledError:
            context._handler_cancelled()
            raise
        except Exception as error:
            self._handler_failed(context, error)

    def _handler_failed(self, context: Context, error: Exception) -> None:
        if isinstance(error, grpc.aio.AbortError):
            return
        if context._finished and isinstance(error, grpc.aio.BaseError | grpc.RpcError):
            return  # it went on with a call that is over
        code = context._code
        if code is grpc.StatusCode.OK:
            # A handler that has set another code has raised on purpose, as generated code does for UNIMPLEMENTED.
            code = grpc.StatusCode.UNKNOWN
            if self._on_error is not None:
                self._on_error(context._call.method, error)
        context._finish(Status(code, f"Unexpected {type(error)}: {error}", context._trailing))

    def close(self) -> None:
        """Accept no more calls. Those in progress end with their links and tasks."""
        self.closed = True


class _HandlerCallDetails(grpc.HandlerCallDetails):  # type: ignore[misc]
    def __init__(self, method: str, metadata: tuple[Metadatum, ...]) -> None:
        self.method = method
        self.invocation_metadata = metadata


class Context(ServerEnd):
    """The server's end of one call: the ``context`` that servicers get, after ``grpc.aio.ServicerContext``."""

    __slots__ = (
        "_abort_error",
        "_call",
        "_code",
        "_details",
        "_done_callbacks",
        "_finished",
        "_gone",
        "_initial_sent",
        "_method",
        "_task",
        "_trailing",
    )

    def __init__(self, call: ClientEnd, server: Server, method: _Method | None) -> None:
        # End.__init__, inlined.
        self.link = call.link
        self.loop = server.loop
        self.partner: Any = call
        self.inbox = self.waiter = self.listener = self.window_waiter = self.latency = None
        self.eof = False
        self.unread = self.taken = self.last_ns = 0
        self.method = call.method
        self._call = call
        self._method = method
        self._task: asyncio.Task[None] | None = None
        self._code = grpc.StatusCode.OK
        self._details = ""
        self._trailing: tuple[tuple[str, str | bytes], ...] = NO_METADATA
        self._abort_error: BaseException | None = None
        self._finished = False
        self._gone = False
        self._initial_sent = False
        self._done_callbacks: list[Callable[[Any], None]] | None = None

    # For servicers: messages

    async def read(self) -> Any:
        """The next request, or ``grpc.aio.EOF`` once the client has half-closed the call."""
        self._raise_if_over()
        data = await self.take()
        if data is EOF:
            return EOF
        return self._method.deserialize(data)  # type: ignore[union-attr]

    def each(
        self,
        handle: Callable[[Any], object],
        pause: Pause | None = None,
        first: Callable[[], object] | None = None,
    ) -> asyncio.Future[bool]:
        """:meth:`read` until the client half-closes the call, with a step of the loop for each request and no task that
        waits for it."""
        self._raise_if_over()
        return self.listen(self._method.deserialize, handle, pause, first)  # type: ignore[union-attr]

    can_post = True
    """:meth:`post` may take the place of :meth:`write`."""

    def post(self, message: Message | bytes) -> None:
        """:meth:`write` without waiting, even if the window is full."""
        if self._finished or self._abort_error is not None:
            self._raise_if_over()
        data = self._method.serialize(message)  # type: ignore[union-attr]
        self.unread += len(data)
        self.link.send(self, self._call.receive, data)

    async def write(self, message: Message | bytes) -> None:
        """Send a response. Waits while the flow-control window is full."""
        self.post(message)
        if self.unread > WINDOW_BYTES:
            await self.wait_for_window()

    def _parse_request(self) -> Any:
        return self._method.deserialize(self._call.request)  # type: ignore[union-attr]

    # For servicers: metadata and status

    async def send_initial_metadata(self, initial_metadata: Sequence[tuple[str, str | bytes]]) -> None:
        self._raise_if_over()
        if self._initial_sent:
            raise grpc.aio.UsageError("Send initial metadata failed: already sent")
        self._initial_sent = True
        self.link.send(self, self._call.receive_initial_metadata, tuple(initial_metadata))

    def invocation_metadata(self) -> tuple[Metadatum, ...]:
        return self._call.metadata

    def set_trailing_metadata(self, trailing_metadata: Sequence[tuple[str, str | bytes]]) -> None:
        self._trailing = tuple(trailing_metadata)

    def trailing_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        return self._trailing

    def set_code(self, code: grpc.StatusCode) -> None:
        self._code = code

    def code(self) -> int:
        code: int = self._code.value[0]
        return code

    def set_details(self, details: str) -> None:
        self._details = details

    def details(self) -> str:
        return self._details

    def answer(self, response: Message | Standin | bytes) -> None:
        """End the call well, where no handler waits. The caller gets this very message: it may not be changed."""
        if not self._finished:
            # As _finish(Status(…)), without the calls that those are: every transaction ends here.
            status = tuple.__new__(Status, (grpc.StatusCode.OK, self._details, self._trailing, None, response))
            link = self.link
            link.send(self, self._call.receive_status, status)
            if self._done_callbacks is not None:
                self._end()
                return
            self._finished = True
            link.contexts.pop(self, None)

    def refuse(self, code: grpc.StatusCode, details: str) -> None:
        """End the call otherwise, where no handler waits."""
        self._finish(Status(code, details, self._trailing))

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, str | bytes]] = NO_METADATA,
    ) -> NoReturn:
        if self._abort_error is not None:
            raise grpc.aio.UsageError("Abort already called!")
        self._raise_if_over()
        self._abort_error = grpc.aio.AbortError("Locally aborted.")
        self._finish(Status(code, details or self._details, tuple(trailing_metadata) or self._trailing))
        raise self._abort_error

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        await self.abort(status.code, status.details, status.trailing_metadata)

    def peer(self) -> str:
        return self.link.client_name

    def peer_identities(self) -> None:
        return None

    def peeridentity_key(self) -> None:
        return None

    def auth_context(self) -> dict[str, Any]:
        return {}

    def set_compression(self, compression: grpc.Compression) -> None:
        pass

    def disable_next_message_compression(self) -> None:
        pass

    def time_remaining(self) -> float | None:
        """Seconds until the client's deadline; None where it has none."""
        deadline = self._call.deadline
        return None if deadline is None else max(0.0, deadline - self.loop.time())

    def cancelled(self) -> bool:
        return self._gone

    def done(self) -> bool:
        return self._finished

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        if self._done_callbacks is None:
            self._done_callbacks = []
        self._done_callbacks.append(callback)

    # How it ends

    def _raise_if_over(self) -> None:
        if self._abort_error is not None:
            raise self._abort_error
        if self._finished:
            raise grpc.aio.UsageError(FINISHED)

    def _finish(self, status: Status) -> None:
        """Tell the client how the call ended."""
        if self._finished:
            return
        self.link.send(self, self._call.receive_status, status)
        self._end()

    def _end(self) -> None:
        self._finished = True
        self.link.contexts.pop(self, None)
        if self._done_callbacks is not None:
            for callback in self._done_callbacks:
                self.loop.call_soon(callback, self)
            self._done_callbacks = None

    def client_gone(self, _: object = None) -> None:
        if not self._finished:
            self._gone = True
            self._end()
            self.eof = True
            if self._task is not None:
                self._task.cancel()

    def _handler_cancelled(self) -> None:
        if not self._finished:
            self._finish(Status(grpc.StatusCode.CANCELLED, "The handler was cancelled", self._trailing))
