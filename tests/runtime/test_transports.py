"""The same expectations of generated stubs and servicers, in memory and over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.rpc import code_pb2, status_pb2
from grpc_status import rpc_status

from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.random_streams import Streams
from kemu.runtime.rpc import pumps
from kemu.runtime.rpc.clients import MemoryChannel
from kemu.runtime.rpc.networks import LoopWire, Network, Peer, Wire
from kemu.runtime.rpc.servers import Context, Server, begun_by
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.wires import SimWires

EOF: Any = grpc.aio.EOF


class Api(api_pb2_grpc.ApiServicer):
    """Does what the name of the requested object says; Session echoes, and obeys some ids.

    A Watch whose client goes away is cancelled; over real gRPC it may read EOF just before that.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.contexts: list[Any] = []

    async def Get(self, request: api_pb2.GetRequest, context: Any) -> api_pb2.ObjectResponse:
        self.contexts.append(context)
        context.set_trailing_metadata((("served-by", "api"),))
        match request.name:
            case "abort":
                await context.abort(grpc.StatusCode.NOT_FOUND, "no such thing", (("why", "because"),))
            case "boom":
                raise ValueError("boom")
            case "code":
                context.set_code(grpc.StatusCode.ABORTED)
                context.set_details("by code")
            case "status":
                detail = status_pb2.Status(code=code_pb2.ABORTED, message="rich")
                await context.abort_with_status(rpc_status.to_status(detail))
            case "forever":
                await self._wait_for_ever()
            case "metadata":
                metadata = dict(context.invocation_metadata())
                return api_pb2.ObjectResponse(object=metadata["kemu-actor"].encode())
            case "initial":
                await context.send_initial_metadata((("first", "1"),))
        return api_pb2.ObjectResponse(object=request.name.encode())

    async def Session(
        self, requests: AsyncIterator[api_pb2.SessionRequest], context: Any
    ) -> AsyncIterator[api_pb2.SessionResponse]:
        async for request in requests:
            for call in request.calls:
                if call.id == 404:
                    await context.abort(grpc.StatusCode.OUT_OF_RANGE, "stream aborted")
                if call.id == 410:
                    return
                yield api_pb2.SessionResponse(replies=[api_pb2.Reply(id=call.id)])
        yield api_pb2.SessionResponse(replies=[api_pb2.Reply(id=1000)])

    async def Watch(self, requests: Any, context: Any) -> None:
        try:
            while (request := await context.read()) is not EOF:
                for _ in range(2):
                    await context.write(
                        api_pb2.WatchResponse(events=[api_pb2.WatchEvent(watch_id=request.create.watch_id)])
                    )
        except asyncio.CancelledError:
            self.seen.append("watch cancelled")
            raise
        self.seen.append("watch ended")

    async def _wait_for_ever(self) -> None:
        self.seen.append("waiting")
        try:
            await asyncio.Event().wait()
        finally:
            self.seen.append("wait ended")


def begin_txn(request: rpc_pb2.TxnRequest, context: Context) -> None:
    """The same as ``KV.Txn``, a step of the loop later."""
    loop = asyncio.get_running_loop()
    match len(request.compare):
        case 0:
            loop.call_soon(context.answer, rpc_pb2.TxnResponse(succeeded=True))
        case 1:
            context.refuse(grpc.StatusCode.OUT_OF_RANGE, "too old")
        case 2:
            raise ValueError("boom")


class KV(rpc_pb2_grpc.KVServicer):
    @begun_by(lambda kv: begin_txn)
    async def Txn(self, request: rpc_pb2.TxnRequest, context: Any) -> rpc_pb2.TxnResponse:
        if len(request.compare) == 1:
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, "too old")
        if len(request.compare) == 2:
            raise ValueError("boom")
        if request.compare:
            await asyncio.Event().wait()
        return rpc_pb2.TxnResponse(succeeded=True)

    async def Put(self, request: rpc_pb2.PutRequest, context: Any) -> rpc_pb2.PutResponse:
        return rpc_pb2.PutResponse(header=rpc_pb2.ResponseHeader(revision=len(request.value)))


async def reverse(request: bytes, context: Any) -> bytes:
    return bytes(reversed(request))


def serve(api: Api, server: Any) -> None:
    """What generated code registers, and a handler that is only found through a generic one."""
    api_pb2_grpc.add_ApiServicer_to_server(api, server)
    rpc_pb2_grpc.add_KVServicer_to_server(KV(), server)
    methods = {"Reverse": grpc.unary_unary_rpc_method_handler(reverse)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("kemu.test.Generic", methods),))


class World:
    """One transport: a servicer, and stubs to it."""

    def __init__(self, api: Api, channel: Any, nowhere: Any) -> None:
        self.api = api
        self.channel = channel
        self.stub = api_pb2_grpc.ApiStub(channel)
        self.kv = rpc_pb2_grpc.KVStub(channel)
        self.nowhere = api_pb2_grpc.ApiStub(nowhere)

    async def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(200):
            if condition():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it never came true")


Expectation = Callable[[World], Awaitable[None]]


def in_memory(loop: asyncio.AbstractEventLoop, wire_to: Callable[[str], Wire]) -> World:
    """A servicer and stubs to it on that loop."""
    network = Network(wire_to, lambda *_: None)

    def peer(name: str) -> tuple[Peer, Server]:
        server = Server(name, lambda coroutine, label: loop.create_task(coroutine, name=label), loop)
        return Peer(name, server), server

    api = Api()
    serving, server = peer("apiserver/0")
    serve(api, server)
    network.join(serving)
    client, _ = peer("client")
    return World(
        api,
        MemoryChannel(lambda: network.connect(client, "apiserver/0"), loop),
        MemoryChannel(lambda: network.connect(client, "nowhere"), loop),
    )


def over_virtual_network(expect: Expectation) -> None:
    loop = VirtualLoop()  # type: ignore[abstract]
    loop.run(expect(in_memory(loop, SimWires(loop, Streams(0), {}).to)))


def within_a_cell(expect: Expectation) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        await expect(in_memory(loop, lambda _: LoopWire(loop)))

    asyncio.run(main())


def over_grpc(expect: Expectation) -> None:
    async def main() -> None:
        api = Api()
        server = grpc.aio.server()
        serve(api, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with (
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
            grpc.aio.insecure_channel("127.0.0.1:1") as nowhere,
        ):
            try:
                await expect(World(api, channel, nowhere))
            finally:
                await server.stop(None)

    asyncio.run(main())


@pytest.fixture(params=[over_virtual_network, within_a_cell, over_grpc])
def over(request: pytest.FixtureRequest) -> Callable[[Expectation], None]:
    transport: Callable[[Expectation], None] = request.param
    return transport


Over = Callable[[Expectation], None]


def get(name: str) -> api_pb2.GetRequest:
    return api_pb2.GetRequest(name=name)


def session(*ids: int) -> api_pb2.SessionRequest:
    return api_pb2.SessionRequest(calls=[api_pb2.Call(id=number) for number in ids])


def watch(number: int = 0) -> api_pb2.WatchRequest:
    return api_pb2.WatchRequest(create=api_pb2.WatchCreate(watch_id=number))


async def failure(awaitable: Awaitable[Any]) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as info:
        await awaitable
    return info.value


def test_a_unary_call_answers_and_may_be_awaited_again(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Get(get("x"))
        assert (await call).object == b"x"
        assert (await call).object == b"x"
        assert await call.code() is grpc.StatusCode.OK
        assert await call.details() == ""
        assert dict(await call.trailing_metadata()) == {"served-by": "api"}
        assert call.done()
        assert not call.cancelled()
        assert not call.cancel()
        assert world.api.contexts[0].time_remaining() is None
        assert (await world.kv.Put(rpc_pb2.PutRequest(key=b"k", value=b"four"))).header.revision == 4

    over(expect)


def test_metadata_travels_both_ways(over: Over) -> None:
    async def expect(world: World) -> None:
        response = await world.stub.Get(get("metadata"), metadata=(("kemu-actor", "me"),))
        assert response.object == b"me"
        call = world.stub.Get(get("initial"))
        assert dict(await call.initial_metadata()) == {"first": "1"}
        assert (await call).object == b"initial"

    over(expect)


def test_an_aborted_call_raises_with_code_details_and_metadata(over: Over) -> None:
    async def expect(world: World) -> None:
        error = await failure(world.stub.Get(get("abort")))
        assert error.code() is grpc.StatusCode.NOT_FOUND
        assert error.details() == "no such thing"
        assert dict(error.trailing_metadata()) == {"why": "because"}

        error = await failure(world.stub.Get(get("code")))
        assert (error.code(), error.details()) == (grpc.StatusCode.ABORTED, "by code")
        assert dict(error.trailing_metadata()) == {"served-by": "api"}

        error = await failure(world.stub.Get(get("status")))
        assert (error.code(), error.details()) == (grpc.StatusCode.ABORTED, "rich")
        assert rpc_status.from_call(error).message == "rich"

    over(expect)


def test_a_handler_that_raises_is_unknown_to_the_client(over: Over) -> None:
    async def expect(world: World) -> None:
        error = await failure(world.stub.Get(get("boom")))
        assert error.code() is grpc.StatusCode.UNKNOWN
        assert error.details() == "Unexpected <class 'ValueError'>: boom"

    over(expect)


def test_methods_that_are_not_there_are_unimplemented(over: Over) -> None:
    async def expect(world: World) -> None:
        error = await failure(world.stub.List(api_pb2.ListRequest()))
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        error = await failure(world.channel.unary_unary("/no.Such/Method")(b""))
        assert (error.code(), error.details()) == (grpc.StatusCode.UNIMPLEMENTED, "Method not found!")

    over(expect)


def test_generic_handlers_are_found(over: Over) -> None:
    async def expect(world: World) -> None:
        for _ in range(2):
            assert await world.channel.unary_unary("/kemu.test.Generic/Reverse")(b"abc") == b"cba"

    over(expect)


def test_a_deadline_ends_the_call_at_both_ends(over: Over) -> None:
    async def expect(world: World) -> None:
        error = await failure(world.stub.Get(get("forever"), timeout=0.1))
        assert (error.code(), error.details()) == (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        await world.until(lambda: world.api.seen == ["waiting", "wait ended"])

    over(expect)


def test_cancel_ends_the_call_at_both_ends(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Get(get("forever"))
        await world.until(lambda: world.api.seen == ["waiting"])
        assert call.cancel()
        assert call.cancelled()
        assert call.done()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await call.code() is grpc.StatusCode.CANCELLED
        assert await call.details() == "Locally cancelled by application!"
        await world.until(lambda: world.api.seen == ["waiting", "wait ended"])

    over(expect)


def test_cancelling_the_waiting_task_cancels_the_call(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Get(get("forever"))

        async def wait() -> None:
            await call

        task = asyncio.get_running_loop().create_task(wait())
        await world.until(lambda: world.api.seen == ["waiting"])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert call.cancelled()
        await world.until(lambda: world.api.seen == ["waiting", "wait ended"])

    over(expect)


def test_a_stream_is_read_and_written_in_order_to_its_end(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Session()
        await call.write(session(1, 2))
        await call.write(session(3))
        assert [(await call.read()).replies[0].id for _ in range(3)] == [1, 2, 3]
        await call.done_writing()
        await call.done_writing()
        with pytest.raises(asyncio.InvalidStateError, match="half closed"):
            await call.write(session(4))
        assert (await call.read()).replies[0].id == 1000
        assert await call.read() is EOF
        assert await call.read() is EOF
        assert await call.code() is grpc.StatusCode.OK
        assert call.done()
        with pytest.raises(asyncio.InvalidStateError, match="already finished"):
            await call.write(session(4))

    over(expect)


def test_an_aborted_stream_first_delivers_what_was_written(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Session()
        await call.write(session(1, 404))
        assert (await call.read()).replies[0].id == 1
        for _ in range(2):
            error = await failure(call.read())
            assert (error.code(), error.details()) == (grpc.StatusCode.OUT_OF_RANGE, "stream aborted")
        assert call.done()
        assert not call.cancelled()
        with pytest.raises(asyncio.InvalidStateError, match="already finished"):
            await call.write(session(1))

    over(expect)


def test_a_server_may_end_a_stream_first(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Session()
        await call.write(session(410))
        assert await call.read() is EOF
        with pytest.raises(asyncio.InvalidStateError, match="already finished"):
            await call.write(session(1))

    over(expect)


def test_a_stream_from_an_iterator_is_half_closed_at_its_end(over: Over) -> None:
    async def requests() -> AsyncIterator[api_pb2.WatchRequest]:
        yield watch(1)
        yield watch(2)

    async def expect(world: World) -> None:
        for given in (requests(), iter([watch(1), watch(2)])):
            ids = [response.events[0].watch_id async for response in world.stub.Watch(given)]
            assert ids == [1, 1, 2, 2]
        assert world.api.seen == ["watch ended", "watch ended"]

    over(expect)


def test_an_iterator_that_fails_cancels_the_call(over: Over) -> None:
    async def requests() -> AsyncIterator[api_pb2.WatchRequest]:
        yield watch(1)
        await asyncio.sleep(0.05)
        raise grpc.aio.UsageError("not an error of the loop's")

    async def expect(world: World) -> None:
        call = world.stub.Watch(requests())
        assert (await call.read()).events[0].watch_id == 1
        assert (await call.read()).events[0].watch_id == 1
        with pytest.raises(asyncio.CancelledError):
            await call.read()
        await world.until(lambda: len(world.api.seen) == 1)

    over(expect)


def test_styles_may_not_be_mixed(over: Over) -> None:
    async def requests() -> AsyncIterator[api_pb2.WatchRequest]:
        yield watch()

    async def expect(world: World) -> None:
        call = world.stub.Watch(requests())
        with pytest.raises(grpc.aio.UsageError):
            await call.write(watch())
        assert (await call.read()).events
        with pytest.raises(grpc.aio.UsageError):
            async for _ in call:
                pass
        call.cancel()

    over(expect)


def test_a_cancelled_stream_cancels_its_handler(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Watch()
        await call.write(watch())
        await call.read()
        assert call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call.read()
        with pytest.raises(asyncio.InvalidStateError, match="already finished"):
            await call.write(watch())
        assert await call.code() is grpc.StatusCode.CANCELLED
        await world.until(lambda: len(world.api.seen) == 1)

    over(expect)


def test_a_cancelled_read_cancels_the_stream(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Watch()
        await call.write(watch())
        await call.read()
        await call.read()
        reader = asyncio.get_running_loop().create_task(call.read())
        await asyncio.sleep(0.01)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert call.cancelled()
        await world.until(lambda: len(world.api.seen) == 1)

    over(expect)


def test_a_server_that_is_away_is_unavailable(over: Over) -> None:
    async def expect(world: World) -> None:
        error = await failure(world.nowhere.Get(get("x")))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "onnection refused" in error.details()

        call = world.nowhere.Watch()
        assert (await failure(call.write(watch()))).code() is grpc.StatusCode.UNAVAILABLE
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(watch())
        assert (await failure(call.read())).code() is grpc.StatusCode.UNAVAILABLE

        call = world.nowhere.Watch()
        assert (await failure(call.wait_for_connection())).code() is grpc.StatusCode.UNAVAILABLE
        call = world.stub.Watch()
        await call.wait_for_connection()
        call.cancel()

    over(expect)


def test_done_callbacks_hear_of_the_end(over: Over) -> None:
    async def expect(world: World) -> None:
        heard: list[bool] = []
        call = world.stub.Get(get("x"))
        call.add_done_callback(lambda done: heard.append(done.done()))
        await call
        await world.until(lambda: heard == [True])

    over(expect)


def test_a_slow_reader_holds_up_the_writer(over: Over) -> None:
    """Of 8 MiB that nobody reads, only a part leaves the writer."""

    async def expect(world: World) -> None:
        call = world.stub.Session()
        big = session(*range(200_000))
        written: list[int] = []

        async def write() -> None:
            for number in range(20):
                await call.write(big)
                written.append(number)

        writer = asyncio.get_running_loop().create_task(write())
        await asyncio.sleep(0.2)
        assert len(written) < 20
        call.cancel()
        with pytest.raises((asyncio.CancelledError, grpc.aio.AioRpcError)):
            await writer

    over(expect)


def test_what_arrives_is_handed_over_in_order_until_the_reader_wants_no_more(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Session()
        taken: list[int] = []

        def handle(response: api_pb2.SessionResponse) -> bool:
            taken.extend(reply.id for reply in response.replies)
            return taken[-1] == 4

        await call.write(session(1, 2))
        await call.write(session(3, 4, 5))
        await pumps.each(call, handle)
        assert taken == [1, 2, 3, 4]
        call.cancel()

    over(expect)


def test_handing_over_ends_as_reading_does(over: Over) -> None:
    async def expect(world: World) -> None:
        taken: list[int] = []
        call = world.stub.Session()
        await call.write(session(7))
        await call.done_writing()
        await pumps.each(call, lambda response: taken.append(response.replies[0].id))
        assert taken == [7, 1000]
        call = world.stub.Session()
        await call.write(session(404))
        assert (await failure(pumps.each(call, taken.append))).code() is grpc.StatusCode.OUT_OF_RANGE

    over(expect)


def test_what_the_reader_raises_comes_out_and_nothing_more_is_handed_over(over: Over) -> None:
    async def expect(world: World) -> None:
        taken: list[int] = []

        def handle(response: api_pb2.SessionResponse) -> None:
            taken.append(response.replies[0].id)
            raise KeyError("two")

        call = world.stub.Session()
        await call.write(session(1))
        await call.write(session(2))
        with pytest.raises(KeyError):
            await pumps.each(call, handle)
        assert taken == [1]
        call.cancel()

    over(expect)


def test_a_reader_that_pauses_gets_nothing_meanwhile(over: Over) -> None:
    async def expect(world: World) -> None:
        taken: list[int] = []
        pauses: list[asyncio.Future[None]] = []

        def pause() -> asyncio.Future[None] | None:
            if len(taken) == 1 and not pauses:
                pauses.append(asyncio.get_running_loop().create_future())
                return pauses[0]
            return None

        call = world.stub.Session()
        await call.write(session(1))
        await call.write(session(2))
        await call.done_writing()
        reading = asyncio.ensure_future(pumps.each(call, lambda one: taken.append(one.replies[0].id), pause))
        await world.until(lambda: bool(pauses))
        await asyncio.sleep(0.05)
        assert taken == [1]
        pauses[0].set_result(None)
        await reading
        assert taken == [1, 2, 1000]

    over(expect)


def test_a_pump_writes_what_comes_and_waits_while_its_reader_does_not_read(over: Over) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Session()
        waiting: list[Any] = [session(1)]
        written: list[int] = []

        def spawn(coroutine: Any, name: str) -> asyncio.Task[Any]:
            return asyncio.ensure_future(coroutine)

        def take() -> Any:
            return waiting.pop(0) if waiting else None

        pump = pumps.Pump(spawn, call, take, "writer", lambda: written.append(len(waiting)))
        answers = []
        answers.append((await call.read()).replies[0].id)
        # One large message is more than the window holds; what comes behind it waits.
        large = api_pb2.SessionRequest(
            calls=[api_pb2.Call(id=2, create=api_pb2.CreateRequest(object=b"x" * (3 << 20)))]
        )
        waiting += [large, session(3)]
        pump.wake()
        answers += [(await call.read()).replies[0].id for _ in range(2)]
        assert answers == [1, 2, 3]
        await world.until(lambda: len(written) == 3)
        assert not pump.is_writing
        pump.stop()
        waiting.append(session(4))
        pump.wake()
        await asyncio.sleep(0.05)
        assert waiting
        call.cancel()

    over(expect)


def test_a_handler_that_is_begun_without_a_task_answers_as_one_with_a_task_does(over: Over) -> None:
    def txn(compares: int) -> rpc_pb2.TxnRequest:
        return rpc_pb2.TxnRequest(compare=[rpc_pb2.Compare(key=b"k")] * compares)

    async def expect(world: World) -> None:
        kv = world.kv
        assert (await kv.Txn(txn(0))).succeeded
        refused = await failure(kv.Txn(txn(1)))
        assert (refused.code(), refused.details()) == (grpc.StatusCode.OUT_OF_RANGE, "too old")
        assert (await failure(kv.Txn(txn(2)))).code() is grpc.StatusCode.UNKNOWN
        late = await failure(kv.Txn(txn(3), timeout=0.05))
        assert late.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    over(expect)


@pytest.mark.parametrize("run", [over_virtual_network, within_a_cell])
def test_an_end_keeps_no_inbox_once_it_is_read(run: Callable[[Expectation], None]) -> None:
    async def expect(world: World) -> None:
        call = world.stub.Session()
        await call.write(session(1))
        await call.write(session(2))
        await world.until(lambda: call.inbox is not None and len(call.inbox) == 2)
        assert [(await call.read()).replies[0].id for _ in range(2)] == [1, 2]
        assert call.inbox is None

    run(expect)
