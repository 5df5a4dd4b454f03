"""What a call meets when its actor goes: without Ray and without sockets, so that the moment can be chosen."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from kemu.runtime.host.calls.inbound import InboundCalls, Traffic


class Context:
    """gRPC's, whose write ends when told and whose abort says whether one was under way."""

    def __init__(self) -> None:
        self.began, self.release = asyncio.Event(), asyncio.Event()
        self.writing = False
        self.aborted: tuple[grpc.StatusCode, bool] | None = None

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def read(self) -> Any:
        raise NotImplementedError

    async def write(self, message: Any) -> None:
        self.writing = True
        self.began.set()
        await self.release.wait()
        self.writing = False

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        self.aborted = (code, self.writing)
        raise grpc.aio.AbortError

    def done(self) -> bool:
        return False


def calls_of(behaviour: Any) -> tuple[Any, Any, InboundCalls]:
    handler = grpc.stream_stream_rpc_method_handler(behaviour)
    actor: Any = SimpleNamespace(
        name="echo/0",
        gone=False,
        partitions=SimpleNamespace(active=False),
        offered=SimpleNamespace(handlers={"/echo": handler}),
        handler_failed=lambda method, error: None,
    )
    calls = InboundCalls(actor, Traffic())
    wrapped = calls.handler("/echo")
    assert wrapped is not None
    return wrapped.stream_stream, actor, calls


async def test_a_call_that_arrived_before_the_crash_does_not_run_after_it() -> None:
    ran = []

    async def behaviour(requests: Any, context: Any) -> None:
        ran.append(context)

    answer, actor, _ = calls_of(behaviour)
    actor.gone = True
    context = Context()
    with pytest.raises(grpc.aio.AbortError):
        await answer(None, context)
    assert (ran, context.aborted) == ([], (grpc.StatusCode.UNAVAILABLE, False))


async def test_the_status_that_ends_a_call_waits_for_the_first_write() -> None:
    async def behaviour(requests: Any, context: Any) -> None:
        await context.write(b"one")

    answer, _, calls = calls_of(behaviour)
    context = Context()
    task = asyncio.ensure_future(answer(None, context))
    await context.began.wait()
    calls.close("reset")
    for _ in range(5):
        await asyncio.sleep(0)
    assert context.aborted is None
    context.release.set()
    with pytest.raises(grpc.aio.AbortError):
        await task
    assert context.aborted == (grpc.StatusCode.UNAVAILABLE, False)


class Servicer(grpc.GenericRpcHandler):  # type: ignore[misc,type-arg]
    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def service(self, call: grpc.HandlerCallDetails) -> Any:
        return self._handler


def _raw(behaviour: Any) -> Any:
    return grpc.stream_stream_rpc_method_handler(behaviour)


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("spawned", [False, True], ids=["the handler writes", "a task of the actor writes"])
async def test_a_crash_in_the_middle_of_a_write_reaches_the_client(before: int, spawned: bool) -> None:
    """Over a socket: with the first write and with later ones, while the window of the connection is full."""
    blocked = asyncio.Event()
    writers = []

    async def write(context: Any) -> None:
        for _ in range(before):
            await context.write(b"small")
        blocked.set()
        await context.write(b"x" * 40_000_000)

    async def behaviour(requests: Any, context: Any) -> None:
        if spawned:
            writers.append(asyncio.ensure_future(write(context)))
            await asyncio.Event().wait()
        else:
            await write(context)

    answer, actor, calls = calls_of(behaviour)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Servicer(_raw(answer)),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    options = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        call: Any = channel.stream_stream("/echo/Echo")()
        await blocked.wait()
        await asyncio.sleep(0.05)
        actor.gone = True
        calls.close("reset")
        for writer in writers:
            writer.cancel()

        async def drained() -> None:
            async for _ in call:
                pass

        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await asyncio.wait_for(drained(), 10)
        assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
        assert failure.value.details() == "reset"
    await server.stop(0)
