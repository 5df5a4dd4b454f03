"""Messages that cannot be parsed are the caller's fault: INVALID_ARGUMENT, and no handler fails.

gRPC itself would end the call with UNKNOWN and the text of the exception.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from kemu.runtime.rpc.ends import identity


class Malformed(Exception):
    """Stands for a request that could not be parsed; raised where a stream is read."""


def tolerant(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """Returns a :class:`Malformed` for what ``deserialize`` cannot parse, as gRPC has no place for its exceptions."""
    parse = deserialize or identity

    def read(data: bytes) -> Any:
        try:
            return parse(data)
        except DecodeError as error:
            return Malformed(str(error))

    return read


async def refuse(context: grpc.aio.ServicerContext, malformed: Malformed) -> None:
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(malformed))


class GenericServer(Protocol):
    """``grpc.aio.Server``, or what stands before it."""

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler], /) -> None: ...


class Guarded:
    """Registers a service in a server, so that its unary requests are parsed tolerantly and what its handlers
    raise gets a status: ``add_CellServicer_to_server(cell, Guarded(server))``."""

    def __init__(self, server: GenericServer) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """Generated code registers every method by name too, which is what counts here."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        guarded = {name: _guarded(handler) for name, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, guarded),))


def _guarded(handler: grpc.RpcMethodHandler) -> Any:
    parse, serialize = tolerant(handler.request_deserializer), handler.response_serializer
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(_stream(handler.unary_stream), parse, serialize)
    return grpc.unary_unary_rpc_method_handler(_unary(handler.unary_unary), parse, serialize)


def _unary(behaviour: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    async def answer(request: Message | Malformed, context: grpc.aio.ServicerContext) -> Any:
        if isinstance(request, Malformed):
            await refuse(context, request)
        try:
            return await behaviour(request, context)
        except (ValueError, KeyError, TypeError) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{type(error).__name__}: {error}")

    return answer


def _stream(behaviour: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    async def answer(request: Message | Malformed, context: grpc.aio.ServicerContext) -> Any:
        if isinstance(request, Malformed):
            await refuse(context, request)
        async for message in behaviour(request, context):
            yield message

    return answer
