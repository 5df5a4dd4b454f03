"""Calls from other cells: which actor they are for, and what becomes of them when that actor goes away.

A cell has one gRPC server for all of its actors. A call says in its metadata which actor it is for (``kemu-to``) and
who calls (``kemu-actor``); without the former it goes to the only actor of the cell that offers the method. Faults of
the network are no matter here: they act in the caller's cell (``relays``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import grpc
import grpc.aio
from google.protobuf.message import Message

from kemu.runtime import tasks
from kemu.runtime.host.calls import decoding
from kemu.runtime.host.calls.relays import TO
from kemu.runtime.rpc.ends import EOF, RequestIterator

_CANCELLATION_S = 0.005

Behaviour = Callable[[Any, Any], Any]
RpcMethodHandler = Any
"""``grpc.RpcMethodHandler``: made and taken apart here, but its parts have no type of their own."""


class Offered:
    """The methods that one actor offers. It takes the place of a server in ``add_…Servicer_to_server``."""

    def __init__(self) -> None:
        self.handlers: dict[str, RpcMethodHandler] = {}
        """By full method, ``/package.Service/Method``."""

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Generated code registers every method by name too, which is what counts here."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, RpcMethodHandler]) -> None:
        for method, handler in handlers.items():
            self.handlers[f"/{service}/{method}"] = handler

    def services(self) -> list[str]:
        return sorted({method.split("/")[1] for method in self.handlers})


class Traffic:
    """What comes in from other cells, for all actors of this one."""

    __slots__ = ("open", "received")

    def __init__(self) -> None:
        self.received = 0
        """Calls, and further messages of streams."""
        self.open = 0
        """Calls that are being served, streams too."""


class Receiver(Protocol):
    """An actor as its callers from other cells meet it."""

    @property
    def name(self) -> str: ...

    @property
    def offered(self) -> Offered: ...

    @property
    def gone(self) -> bool:
        """The actor was dropped: nothing that its code still does has an effect."""
        ...

    def handler_failed(self, method: str, error: BaseException) -> None:
        """A handler raised an unexpected exception."""
        ...


class InboundCalls:
    """The calls from other cells that one actor is serving."""

    def __init__(self, actor: Receiver, traffic: Traffic) -> None:
        self._actor = actor
        self._traffic = traffic
        self._running: dict[asyncio.Task[Any], None] = {}
        self._severed: dict[asyncio.Task[Any], str] = {}
        """With the reason."""
        self._handlers: dict[str, RpcMethodHandler] = {}

    def handler(self, method: str) -> RpcMethodHandler | None:
        """For the gRPC server: the actor's own, wrapped so that the actor's end has its effect."""
        handler = self._handlers.get(method)
        if handler is None:
            plain = self._actor.offered.handlers.get(method)
            if plain is None:
                return None
            handler = self._handlers[method] = self._wrap(method, plain)
        return handler

    def _wrap(self, method: str, handler: RpcMethodHandler) -> RpcMethodHandler:
        if handler.request_streaming:
            if handler.response_streaming:
                make, behaviour = grpc.stream_stream_rpc_method_handler, handler.stream_stream
            else:
                make, behaviour = grpc.stream_unary_rpc_method_handler, handler.stream_unary
        elif handler.response_streaming:
            make, behaviour = grpc.unary_stream_rpc_method_handler, handler.unary_stream
        else:
            make, behaviour = grpc.unary_unary_rpc_method_handler, handler.unary_unary
        answer = self._answerer(method, behaviour, request_streaming=handler.request_streaming)
        return make(answer, decoding.tolerant(handler.request_deserializer), handler.response_serializer)

    def _answerer(
        self, method: str, behaviour: Behaviour, *, request_streaming: bool
    ) -> Callable[[Any, Any], Awaitable[Any]]:
        actor, traffic = self._actor, self._traffic

        async def answer(request: Message | decoding.Malformed, context: grpc.aio.ServicerContext) -> Any:
            if isinstance(request, decoding.Malformed):
                await decoding.refuse(context, request)
            if actor.gone:
                # It went between the arrival of the call and now.
                await context.abort(grpc.StatusCode.UNAVAILABLE, f"{actor.name} does not run here")
            task = asyncio.current_task()
            assert task is not None
            self._running[task] = None
            traffic.received += 1
            traffic.open += 1
            guarded = GuardedContext(context, actor, traffic)
            try:
                result = behaviour(RequestIterator(guarded) if request_streaming else request, guarded)
                if hasattr(result, "__aiter__"):
                    async for message in result:
                        await guarded.write(message)
                    response = None
                else:
                    response = await result
                if actor.gone:
                    raise asyncio.CancelledError  # its code went on after its crash
                await guarded.began()
                return response
            except asyncio.CancelledError:
                why = self._severed.get(task)
                if why is None:
                    raise
                await guarded.began()
                await context.abort(grpc.StatusCode.UNAVAILABLE, why)
            except grpc.aio.AbortError:
                raise
            except decoding.Malformed as malformed:
                await guarded.began()
                await decoding.refuse(context, malformed)
            except Exception as error:
                # An error caused by the end of the connection is not the actor's fault.
                if task in self._severed:
                    await guarded.began()
                    await context.abort(grpc.StatusCode.UNAVAILABLE, self._severed[task])
                elif not context.done():
                    actor.handler_failed(method, error)
                raise
            finally:
                traffic.open -= 1
                del self._running[task]
                self._severed.pop(task, None)

        return answer

    def _sever(self, task: asyncio.Task[Any], why: str) -> None:
        if task not in self._severed:
            self._severed[task] = why
            # One that brings about the actor's end itself (``Env.step``) is cancelled by that.
            if task is not asyncio.current_task():
                task.cancel()

    def close(self, why: str) -> None:
        """End all calls with UNAVAILABLE."""
        for task in list(self._running):
            self._sever(task, why)


class GuardedContext:
    """The ``context`` of a call from another cell: gRPC's own, but an actor that is gone says nothing more."""

    __slots__ = ("_actor", "_context", "_first_write", "_traffic")

    def __init__(self, context: grpc.aio.ServicerContext, actor: Receiver, traffic: Traffic) -> None:
        self._traffic = traffic
        self._first_write: asyncio.Task[None] | None = None
        self._context = context
        self._actor = actor

    async def read(self) -> Any:
        message = await self._context.read()
        self._traffic.received += 1
        if isinstance(message, decoding.Malformed):
            raise message
        if message is EOF:
            # gRPC ends the stream of requests of a call that was cancelled, too, and cancels its handler in a moment.
            await asyncio.sleep(_CANCELLATION_S)
        return message

    async def write(self, message: Message) -> None:
        if self._actor.gone:
            raise asyncio.CancelledError
        if self._first_write is None:
            # The response headers go out with the first write. gRPC notes that after the write: if that is cancelled,
            # it sends them once more with the status, which the call then refuses, and the client waits for ever.
            self._first_write = asyncio.ensure_future(self._context.write(message))
            self._first_write.add_done_callback(tasks.retrieve)  # if it is not waited for any more
            await asyncio.shield(self._first_write)
        else:
            await self._context.write(message)

    async def began(self) -> None:
        """Wait for the first write if that is under way; whether it succeeds does not matter."""
        if self._first_write is not None and not self._first_write.done():
            await asyncio.wait([self._first_write])

    async def abort(self, *args: Any, **kwargs: Any) -> NoReturn:
        if self._actor.gone:
            raise asyncio.CancelledError
        await self._context.abort(*args, **kwargs)
        raise AssertionError("abort() returned")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class Called(Protocol):
    """What the router needs of an actor."""

    @property
    def offered(self) -> Offered: ...

    @property
    def calls(self) -> InboundCalls: ...


class Router(grpc.GenericRpcHandler):  # type: ignore[misc,type-arg]
    """Finds the actor that a call is for, by its metadata."""

    def __init__(self, actors: Mapping[str, Called]) -> None:
        """``actors``: those of the cell as they are, kept up to date by its owner."""
        self._actors = actors

    def service(self, call: grpc.HandlerCallDetails) -> RpcMethodHandler | None:
        method = call.method
        to = _from_metadata(call.invocation_metadata, TO)
        if to is not None:
            found = self._actors.get(to)
            if found is None:
                return refusal(grpc.StatusCode.UNAVAILABLE, f"{to} does not run here")
            handler = found.calls.handler(method)
            if handler is None:
                return refusal(grpc.StatusCode.UNIMPLEMENTED, f"{to} does not offer {method}")
            return handler
        offering = [name for name, actor in sorted(self._actors.items()) if method in actor.offered.handlers]
        if not offering:
            return None
        if len(offering) > 1:
            which = ", ".join(offering)
            return refusal(
                grpc.StatusCode.INVALID_ARGUMENT, f"several actors here offer {method}: say in {TO} which of {which}"
            )
        return self._actors[offering[0]].calls.handler(method)


def _from_metadata(metadata: Iterable[tuple[str, str | bytes]] | None, key: str) -> str | None:
    for name, value in metadata or ():
        if name == key:
            return str(value)
    return None


def refusal(code: grpc.StatusCode, why: str) -> RpcMethodHandler:
    """Refusal of a call, whatever its method is and without reading its request."""

    async def refuse(request: Message, context: grpc.aio.ServicerContext) -> None:
        await context.abort(code, why)

    # Whatever the method is, a stream handler can end the call.
    return grpc.stream_stream_rpc_method_handler(refuse)
