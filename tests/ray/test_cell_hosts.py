"""What a cell does, without Ray: its server and its actors run on the loop of the test."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio
import msgpack
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from kemu.emulated.client import endpoints, sessions
from kemu.emulated.objects.wire import swaps
from kemu.errors import ServiceUnavailable
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.messages.k8s import coordination_v1_pb2, core_v1_pb2
from kemu.messages.v1 import api_pb2, api_pb2_grpc, cell_pb2
from kemu.runtime import file_names
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.host.calls import channels
from tests.ray.pairs import Cells, code_of, get
from tests.ray.world import EOF, spec


async def test_calls_find_their_actor_near_and_far(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"), spec("echo/1", "Echo"))
    for number, peer in itertools.product((0, 1), ("echo/0", "echo/1")):
        response = await cells.stub(number, peer).Get(get())
        assert response.object.decode().split()[1:] == [peer, "test", "x"]


async def test_a_call_without_metadata_goes_to_the_only_actor_that_offers_it(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"), spec("keeper/0", "Keeper"))
    async with grpc.aio.insecure_channel(cells.cells[0].host.target) as unsigned:
        channel = cells.signed(unsigned, "test")
        plain = api_pb2_grpc.ApiStub(channel)
        assert (await plain.Get(get())).object.split()[1] == b"echo/0"
        await cells.start(0, spec("echo/1", "Echo"))
        assert await code_of(plain.Get(get())) is grpc.StatusCode.INVALID_ARGUMENT
        to = (("kemu-to", "echo/1"),)
        assert (await plain.Get(get(), metadata=to)).object.split()[1] == b"echo/1"
        assert await code_of(plain.Get(get(), metadata=(("kemu-to", "echo/2"),))) is grpc.StatusCode.UNAVAILABLE
        keeper = rpc_pb2_grpc.KVStub(channel)
        assert await code_of(keeper.Range(rpc_pb2.RangeRequest(), metadata=to)) is grpc.StatusCode.UNIMPLEMENTED
        assert await code_of(rpc_pb2_grpc.MaintenanceStub(channel).Status(rpc_pb2.StatusRequest())) is (
            grpc.StatusCode.UNIMPLEMENTED
        )


@pytest.mark.parametrize("caller", [0, 1], ids=["near", "far"])
async def test_streams_both_ways(cells: Cells, caller: int) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    call = cells.stub(caller, "echo/0").Session()
    for number in range(3):
        await call.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=number)]))
        assert [reply.id for reply in (await call.read()).replies] == [number]
    await call.done_writing()
    assert await call.read() is EOF
    assert await call.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("caller", [0, 1], ids=["near", "far"])
async def test_nobody_there_is_unavailable_at_once(cells: Cells, caller: int) -> None:
    before = time.monotonic()
    assert await code_of(cells.stub(caller, "nobody").Get(get())) is grpc.StatusCode.UNAVAILABLE
    # As it is while an actor is down whose cell lives.
    cells.addresses["echo/0"] = (cells.cells[0].host.target, 1)
    await cells.configure()
    assert await code_of(cells.stub(caller, "echo/0").Get(get())) is grpc.StatusCode.UNAVAILABLE
    assert time.monotonic() - before < 20, "long before any timeout"


@pytest.mark.parametrize("caller", [0, 1], ids=["near", "far"])
async def test_a_crash_ends_calls_and_a_restart_is_found(cells: Cells, caller: int) -> None:
    await cells.start(0, spec("echo/0", "Echo"), spec("echo/1", "Echo"))
    stub = cells.stub(caller, "echo/0")
    slow = stub.Get(get("slow"))
    session = stub.Session()
    await session.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=1)]))
    await session.read()
    await cells.controls[0].Stop(cell_pb2.StopRequest(actors=["echo/0"], crash=True))
    assert await code_of(slow) is grpc.StatusCode.UNAVAILABLE
    assert await code_of(session.read()) is grpc.StatusCode.UNAVAILABLE
    assert await code_of(stub.Get(get())) is grpc.StatusCode.UNAVAILABLE
    # The other one has not noticed.
    assert (await cells.stub(caller, "echo/1").Get(get())).object
    log = cells.log(0)
    assert log.of("actor.crashed", "echo/0") == [{}]
    assert log.of("echo.cancelled") == [], "a crashed actor says nothing any more"
    assert cells.log(caller).of("net.connection_lost", "test") == [{"peer": "echo/0"}]

    await cells.start(0, spec("echo/0", "Echo"))
    assert (await stub.Get(get())).object.split()[1] == b"echo/0"
    assert cells.log(0).of("actor.started", "echo/0") == [{"incarnation": 1}, {"incarnation": 2}]


async def test_a_stop_lets_the_actor_clean_up_and_a_crash_does_not(cells: Cells) -> None:
    neighbour = spec("echo/0", "Echo")
    await cells.start(0, neighbour, spec("keeper/0", "Keeper"), spec("keeper/1", "Keeper"))
    await cells.controls[0].Stop(cell_pb2.StopRequest(actors=["keeper/0"]))
    await cells.controls[0].Stop(cell_pb2.StopRequest(actors=["keeper/1"], crash=True))
    disks = cells.cells[0].host.directory / "disks"
    assert (disks / "keeper%2F0" / "good-bye").read_bytes() == b"good-bye\n"
    assert not (disks / "keeper%2F1" / "good-bye").exists()
    assert cells.log(0).of("actor.stopped") == [{}]


async def test_who_shares_a_cell_is_dropped_alone_even_when_the_others_are_away(cells: Cells) -> None:
    """Or the process of this test would be killed."""
    await cells.start(0, spec("keeper/0", "Keeper"), spec("keeper/1", "Keeper"))
    for name in ("keeper/0", "keeper/1"):
        await cells.controls[0].Stop(cell_pb2.StopRequest(actors=[name], crash=True))
        assert cells.log(0).of("actor.crashed", name) == [{}]
    await cells.start(0, spec("keeper/1", "Keeper"))
    assert len(cells.log(0).of("actor.started", "keeper/1")) == 2


async def test_the_disk_and_new_chance_after_a_restart(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"), spec("keeper/0", "Keeper"))
    keeper = rpc_pb2_grpc.KVStub(cells.cells[1].host.env("test").dial("keeper/0"))
    for number in range(3):
        await keeper.Put(rpc_pb2.PutRequest(key=b"%d" % number))
    await cells.controls[0].Stop(cell_pb2.StopRequest(actors=["keeper/0"], crash=True))
    await cells.start(0, spec("keeper/0", "Keeper"))
    assert [kv.key for kv in (await keeper.Range(rpc_pb2.RangeRequest())).kvs] == [b"0", b"1", b"2"]
    first, second = cells.log(0).of("keeper.recovered")
    assert (first["lines"], second["lines"]) == (0, 3)
    assert first["chance"] != second["chance"]


@pytest.mark.parametrize("when", ["factory", "run"])
async def test_an_actor_that_fails_at_its_start_is_reported_by_the_start(cells: Cells, when: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await cells.start(0, spec("bad", "Failing", when=when))
    assert caught.value.code() is grpc.StatusCode.ABORTED
    assert "bad (incarnation 1) failed" in (caught.value.details() or "")
    assert "LookupError: in " in (caught.value.details() or "")


@pytest.mark.parametrize("when", ["task", "timer", "handler"])
async def test_an_actor_that_fails_later_is_dropped_and_reported(cells: Cells, when: str) -> None:
    if when == "handler":
        await cells.start(0, spec("bad", "Echo"))
        code = await code_of(cells.stub(1, "bad").Get(get("bug")))
        assert code in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE)
    else:
        await cells.start(0, spec("bad", "Failing", when=when))
        await cells.configure(begun=True)
    async with asyncio.timeout(30):
        while not (failures := cells.log(0).of("actor.failed", "bad")):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert "LookupError" in failures[0]["error"]
    assert "Traceback" in failures[0]["error"]
    assert "world.py" in failures[0]["error"]
    statistics = await cells.controls[0].Statistics(cell_pb2.Empty())
    assert {state.name: state.running for state in statistics.actors}["bad"] is False


async def test_the_same_name_twice_is_refused(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    assert await code_of(cells.start(0, spec("echo/0", "Echo"))) is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize("caller", [0, 1], ids=["near", "far"])
async def test_a_short_partition_only_delays(cells: Cells, caller: int) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    # Keepalive breaks connections after fifty real seconds.
    await cells.configure(begun=True, speed=0.1)
    stub = cells.stub(caller, "echo/0")
    session = stub.Session()
    await session.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=1)]))
    await session.read()
    await cells.cut("cut", "test", "echo/0")
    late = asyncio.ensure_future(stub.Get(get()))
    await session.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=2)]))
    answer = asyncio.ensure_future(session.read())
    await asyncio.sleep(0.2)
    assert not late.done()
    assert not answer.done()
    assert cells.log(0).of("echo.session") == [{"ids": [1]}]
    for control in cells.controls:
        await control.Heal(cell_pb2.HealRequest(id="cut"))
    assert (await asyncio.wait_for(late, 40)).object
    assert [reply.id for reply in (await asyncio.wait_for(answer, 40)).replies] == [2]


@pytest.mark.parametrize("caller", [0, 1], ids=["near", "far"])
async def test_a_long_partition_breaks_connections_on_both_sides(cells: Cells, caller: int) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=50)
    stub = cells.stub(caller, "echo/0")
    session = stub.Session()
    await session.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=1)]))
    await session.read()
    # At speed 50 a busy machine is behind by half a virtual second at any time: so from before the cut.
    before_ns = cells.cells[0].host.clock.now_ns()
    await cells.cut("cut", "echo/0", "test")
    assert await code_of(session.read()) is grpc.StatusCode.UNAVAILABLE
    assert cells.cells[0].host.clock.now_ns() - before_ns >= 4.5 * SECOND_NS
    assert await code_of(stub.Get(get())) is grpc.StatusCode.UNAVAILABLE
    async with asyncio.timeout(30):
        while not (  # noqa: ASYNC110
            cells.log(0).of("echo.over", "echo/0") == [{}]
            and {"peer": "test"} in cells.logged("net.connection_lost", "echo/0")
            and {"peer": "echo/0"} in cells.logged("net.connection_lost", "test")
        ):
            await asyncio.sleep(0.01)
    # Everybody else gets through, and after healing so does the other.
    assert (await cells.stub(caller, "echo/0", caller="third").Get(get())).object
    for control in cells.controls:
        await control.Heal(cell_pb2.HealRequest(id="cut"))
    assert (await stub.Get(get())).object


async def test_within_a_cell_keepalive_tells_of_a_crash_behind_a_partition(cells: Cells) -> None:
    """As in the simulation: nothing gets through a partition, not even the news that the peer died."""
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=20)
    session = cells.stub(0, "echo/0").Session()
    await session.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=1)]))
    await session.read()
    await cells.cut("cut", "echo/0", "test")
    before_ns = cells.cells[0].host.clock.now_ns()
    cells.cells[0].host.crash("echo/0")
    assert await code_of(session.read()) is grpc.StatusCode.UNAVAILABLE
    assert cells.cells[0].host.clock.now_ns() - before_ns >= 4.5 * SECOND_NS
    assert cells.log(0).of("net.connection_lost", "test") == [{"peer": "echo/0"}]


async def test_connections_to_targets_that_are_gone_are_closed_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_CLOSE_AFTER_S", 0.01)
    connections = channels.Connections()
    gone = [connections.to(f"127.0.0.1:{port}") for port in range(1, 20)]
    stays = connections.to("127.0.0.1:20")
    connections.retain({"127.0.0.1:20"})
    async with asyncio.timeout(30):
        while connections._closing:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert all(channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN for channel in gone)
    assert connections.to("127.0.0.1:20") is stays
    await connections.close()
    assert stays.get_state() is grpc.ChannelConnectivity.SHUTDOWN


@pytest.mark.parametrize("caller", [0, 1], ids=["near", "far"])
async def test_a_one_way_partition_loses_the_answer_of_what_was_done(cells: Cells, caller: int) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=50)
    await cells.cut("cut", "echo/0", "test", one_way=True)
    assert await code_of(cells.stub(caller, "echo/0").Get(get("done"))) is grpc.StatusCode.UNAVAILABLE
    assert cells.log(0).of("echo.get") == [{"name": "done"}]


async def test_timeouts_are_in_virtual_seconds(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=50)
    for caller in (0, 1):
        before = time.monotonic()
        assert await code_of(cells.stub(caller, "echo/0").Get(get("slow"), timeout=5)) is (
            grpc.StatusCode.DEADLINE_EXCEEDED
        )
        assert 0.09 < time.monotonic() - before < 4, "not five real seconds"


async def test_who_waits_for_an_answer_is_not_idle(cells: Cells) -> None:
    """Of a request on a session the runtime cannot see that it is under way."""
    neighbour = spec("echo/0", "Echo")
    await cells.start(0, neighbour, spec("silent", "Silent"))
    host = cells.cells[1].host
    env = host.env("test")
    session = sessions.Session(env, endpoints.Endpoints(env, "silent"))

    async def ask(message: type[Any], heard: int) -> asyncio.Future[Any]:
        answer = session.send(session.next_call(), message, True)
        async with asyncio.timeout(30):
            while len(cells.log(0).of("silent.heard")) < heard:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return answer

    lease = await ask(coordination_v1_pb2.Lease, 1)
    assert host.pending == 0, "heartbeats never end"
    pod = await ask(core_v1_pb2.Pod, 2)
    assert host.pending == 1
    await cells.controls[0].Stop(cell_pb2.StopRequest(actors=["silent"], crash=True))
    for answer in (lease, pod):
        with pytest.raises(ServiceUnavailable):
            await answer
    assert host.pending == env.clock.pending


async def test_large_messages_pass(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    name = "x" * (6 << 20)
    assert len((await cells.stub(1, "echo/0").Get(get(name))).object) > len(name)


async def test_reflection_and_health_follow_the_actors(cells: Cells) -> None:
    target = cells.cells[0].host.target

    def services() -> list[str]:
        with grpc.insecure_channel(target) as channel:
            return list(ProtoReflectionDescriptorDatabase(cells.signed(channel, "test")).get_services())

    async def serving(service: str) -> bool:
        async with grpc.aio.insecure_channel(target) as channel:
            try:
                response = await health_pb2_grpc.HealthStub(cells.signed(channel, "test")).Check(
                    health_pb2.HealthCheckRequest(service=service)
                )
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.NOT_FOUND  # noqa: PT017
                return False
            return bool(response.status == health_pb2.HealthCheckResponse.SERVING)

    assert "kemu.v1.Cell" in await asyncio.to_thread(services)
    assert "kemu.v1.Api" not in await asyncio.to_thread(services)
    assert await serving("")
    assert not await serving("kemu.v1.Api")
    await cells.start(0, spec("echo/0", "Echo"))
    assert "kemu.v1.Api" in await asyncio.to_thread(services)
    assert await serving("kemu.v1.Api")
    await cells.controls[0].Stop(cell_pb2.StopRequest(actors=["echo/0"]))
    assert not await serving("kemu.v1.Api")


async def test_the_log_can_be_followed_and_resumed(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    kinds: list[str] = []
    follow = cells.controls[0].Log(cell_pb2.LogRequest(offset=0, follow=True))

    async def take(enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not enough():
                segment = await follow.read()
                kinds.extend(msgpack.unpackb(payload)[2] for payload in segment.events)

    await take(lambda: len(kinds) >= 1)
    await cells.stub(1, "echo/0").Get(get())
    await take(lambda: len(kinds) >= 2)
    assert kinds == ["actor.started", "echo.get"]
    follow.cancel()
    await cells.stub(1, "echo/0").Get(get())
    rest = [segment async for segment in cells.controls[0].Log(cell_pb2.LogRequest(offset=1))]
    assert [msgpack.unpackb(payload)[2] for segment in rest for payload in segment.events] == ["echo.get", "echo.get"]


async def test_a_log_says_how_far_it_has_come_and_what_is_pending(cells: Cells) -> None:
    await cells.start(0, spec("sleeper", "Sleeper", every_s=3600), spec("idler", "Sleeper", every_s=9, background=True))
    follow = cells.controls[0].Log(cell_pb2.LogRequest(offset=0, follow=True))
    first = await follow.read()
    assert (first.time_ns, first.pending) == (0, 1)
    await cells.configure(begun=True, speed=20)
    async with asyncio.timeout(30):
        while (await follow.read()).time_ns < 3 * SECOND_NS:
            pass
    follow.cancel()


def test_names_of_actors_as_directories() -> None:
    names = ["store", "kubelet/node-1", "a%2Fb", "a/b", "scheduler/x/0"]
    assert len({file_names.of_actor(name) for name in names}) == len(names)
    assert not any("/" in file_names.of_actor(name) for name in names)


@pytest.mark.parametrize("caller", [0, 1], ids=["near", "far"])
async def test_a_swap_reaches_the_store_of_another_cell_as_a_message(cells: Cells, caller: int) -> None:
    await cells.start(0, ActorSpec("store", "kemu.emulated.store.server:Store", {}))
    channel: Any = cells.cells[caller].host.env("test").dial("store")
    assert channel.takes_standins
    store: Any = rpc_pb2_grpc.KVStub(channel)
    for expected, is_done in ((0, True), (0, False)):
        response = await store.Txn(swaps.Swap((b"key", expected, b"value")))
        assert isinstance(response, swaps.Swapped) == (is_done and caller == 0)
        assert is_done == (isinstance(response, swaps.Swapped) or response.succeeded)
