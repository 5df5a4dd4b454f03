"""Latency, order, partitions and broken connections."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import ActorSpec
from kemu.runtime.faults.kinds import KINDS
from kemu.runtime.runlog.events import own
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim
from tests.runtime.world import ECHO, ids, request, talker

S = 1_000_000_000
MS = 1_000_000


class Watcher(api_pb2_grpc.ApiServicer):
    """Answers a watch request with one event."""

    def __init__(self, env: Any, config: Any) -> None:
        self.env = env
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        self.env.ready()

    async def Watch(self, requests: Any, context: Any) -> None:
        async for _ in requests:
            await context.write(api_pb2.WatchResponse())


def test_latency_depends_on_who_talks_to_whom_about_what() -> None:
    timing = {"apiLatency": 0.010, "watchLatency": 0.300, "storeLatency": 0.002}

    async def main(runtime: SimRuntime) -> None:
        user, clock = runtime.env("user"), runtime.clock
        stub = api_pb2_grpc.ApiStub(user.dial("apiserver/0"))
        await stub.Get(api_pb2.GetRequest())
        assert clock.now_ns() == 20 * MS
        watch = api_pb2_grpc.ApiStub(user.dial("apiserver/1")).Watch()
        await watch.write(api_pb2.WatchRequest())
        await watch.read()
        assert clock.now_ns() == 330 * MS
        await api_pb2_grpc.ApiStub(user.dial("store")).Get(api_pb2.GetRequest())
        assert clock.now_ns() == 334 * MS
        await api_pb2_grpc.ApiStub(user.dial("other")).Get(api_pb2.GetRequest())
        assert clock.now_ns() == 336 * MS

    actors = [
        ECHO,
        ActorSpec("apiserver/1", f"{__name__}:Watcher"),
        ActorSpec("store", ECHO.factory),
        ActorSpec("other", ECHO.factory),
    ]
    sim(main, actors=actors, timing=timing)


def test_a_stream_keeps_its_order_and_calls_overtake_each_other() -> None:
    timing = {"apiLatency": {"exponential": {"mean": 0.1}}}

    async def main(runtime: SimRuntime) -> None:
        record: list[int] = []
        env = runtime.env("user")
        stub = api_pb2_grpc.ApiStub(env.dial("apiserver/0"))
        stream = stub.Session()
        for number in range(100):
            await stream.write(request(number))
        await stream.done_writing()
        heard = []
        while (message := await stream.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]
            heard += ids(message)
        assert heard == list(range(100))

        async def get(number: int) -> None:
            await stub.Get(api_pb2.GetRequest(name=str(number)))
            record.append(number)

        await asyncio.gather(*(get(number) for number in range(100)))
        assert record != list(range(100))
        assert sorted(record) == list(range(100))

    sim(main, actors=[ECHO], timing=timing)


def test_zero_latency_takes_no_time() -> None:
    async def main(runtime: SimRuntime) -> None:
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        for _ in range(100):
            await stub.Get(api_pb2.GetRequest())
        assert runtime.clock.now_ns() == 0

    sim(main, actors=[ECHO], timing={"apiLatency": 0})


def partitioned_talk(seconds: float, *, one_way: bool = False, swap: bool = False) -> Recorder:
    """A talker that says a number each second; at 2.5 s the network is cut for some seconds."""
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([ECHO, talker("talker", count=20)])
        await runtime.begin()
        await runtime.clock.sleep(2.5)
        sides = (["apiserver/0"], ["talker"]) if swap else (["talker"], ["apiserver/0"])
        await runtime.partition("cut", *sides, one_way=one_way)
        await runtime.clock.sleep(seconds)
        await runtime.heal("cut")
        await runtime.run_until(100 * S, until_idle=True)

    sim(main, begin=False, sink=record)
    return record


def times(record: Recorder, kind: str) -> list[int]:
    return [now_ns for now_ns, _, what, _ in record.events if what == kind]


def test_a_short_partition_only_delays() -> None:
    record = partitioned_talk(3)
    assert record.of("talker.heard") == [{"ids": [number]} for number in range(20)]
    heard = times(record, "talker.heard")
    assert heard[1] == 2 * S + 2 * MS
    assert heard[2] == heard[4] == int(5.5 * S) + 2 * MS
    assert record.of("talker.end") == [{}]
    assert record.of("net.connection_lost") == []


def test_a_long_partition_breaks_the_connection_at_both_ends() -> None:
    record = partitioned_talk(10)
    assert record.of("talker.heard") == [{"ids": [0]}, {"ids": [1]}]
    assert record.of("echo.session") == [{"ids": [0]}, {"ids": [1]}]
    assert record.of("talker.lost") == [{"code": "UNAVAILABLE", "details": "apiserver/0: keepalive watchdog timeout"}]
    assert times(record, "talker.lost") == times(record, "echo.cancelled") == [int(7.5 * S)]
    assert record.of("net.connection_lost", "talker") == [{"peer": "apiserver/0"}]
    assert record.of("net.connection_lost", "apiserver/0") == [{"peer": "talker"}]
    assert record.of("talker.gave_up") == [{"number": 7}]


def test_a_one_way_partition_lets_the_other_direction_through() -> None:
    record = partitioned_talk(10, one_way=True)
    assert record.of("echo.session") == [{"ids": [0]}, {"ids": [1]}]

    record = partitioned_talk(10, one_way=True, swap=True)
    assert record.of("echo.session") == [{"ids": [number]} for number in range(7)]
    assert record.of("talker.heard") == [{"ids": [0]}, {"ids": [1]}]
    assert times(record, "talker.lost") == [int(7.5 * S)]


def test_calls_begun_in_a_partition_fail_after_the_detection_time() -> None:
    async def main(runtime: SimRuntime) -> None:
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        await runtime.partition("cut", ["user"], ["apiserver/0"])
        await runtime.clock.sleep(1)
        for _ in range(2):
            before_ns = runtime.clock.now_ns()
            with pytest.raises(grpc.aio.AioRpcError, match="connection timed out") as info:
                await stub.Get(api_pb2.GetRequest())
            assert info.value.code() is grpc.StatusCode.UNAVAILABLE
            assert runtime.clock.now_ns() - before_ns == 2 * S
        stream = stub.Session()
        with pytest.raises(grpc.aio.AioRpcError, match="connection timed out"):
            await stream.write(request(1))
        call = stub.Get(api_pb2.GetRequest(name="late"))
        await runtime.clock.sleep(1)
        await runtime.heal("cut")
        assert (await call).object == b"late"
        assert (await stub.Get(api_pb2.GetRequest(name="x"))).object == b"x"

    sim(main, actors=[ECHO], timing={"keepaliveTimeout": 2})


def test_a_crash_behind_a_partition_is_noticed_by_keepalive_or_after_healing() -> None:
    async def main(runtime: SimRuntime) -> None:
        clock = runtime.clock
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        for heal_after_s, noticed_after_s in ((10, 5.0), (3, 3.001)):
            start_ns = clock.now_ns()
            call = stub.Get(api_pb2.GetRequest(name="slow"))
            await clock.sleep(0.5)
            await runtime.partition("cut", ["user"], ["apiserver/0"])
            await runtime.crash("apiserver/0")
            runtime.clock.call_at_ns(clock.now_ns() + heal_after_s * S, lambda: runtime.faults.end("cut"))
            with pytest.raises(grpc.aio.AioRpcError):
                await call
            assert clock.now_ns() - start_ns == int((0.5 + noticed_after_s) * S)
            await clock.sleep(20)
            await runtime.restart("apiserver/0")

    sim(main, actors=[ECHO])


IN_FORCE: dict[str, dict[str, Any]] = {
    "partition": {"oneWay": False},
    "one-way partition": {"oneWay": True},
    "delay": {"by": {"exponential": {"mean": 0.5}}},
    "drop": {"probability": 0.4},
    "bandwidth": {"bytesPerSecond": 300.0},
    "reset": {},
    "halfOpen": {},
}


@given(
    seed=st.integers(0, 1000),
    faults=st.lists(
        st.tuples(st.floats(0, 6), st.floats(0, 7), st.sampled_from(sorted(IN_FORCE)), st.booleans()), max_size=6
    ),
    crash_at=st.none() | st.floats(0, 30),
)
@settings(deadline=None, max_examples=120)
def test_a_stream_never_has_a_gap(
    seed: int, faults: list[tuple[float, float, str, bool]], crash_at: float | None
) -> None:
    """Whatever happens to the connection, and whoever dies: each side has heard the beginning of what was said."""
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([ECHO, talker("talker", count=200, every_s=0.1)])
        await runtime.begin()
        if crash_at is not None:
            runtime.env("chaos").spawn(crash(runtime, crash_at), "crash")
        for number, (before, lasts, what, swap) in enumerate(faults):
            await runtime.clock.sleep(before)
            sides = [["apiserver/0"], ["talker"]] if swap else [["talker"], ["apiserver/0"]]
            parameters = {**IN_FORCE[what], "between": sides, "from": sides[0], "to": sides[1]}
            kind = KINDS[what.removeprefix("one-way ")]
            await runtime.inject(f"fault {number}", kind.name, parameters)
            if kind.lasts:
                # Some faults overlap the next one.
                runtime.clock.call_at_ns(
                    runtime.clock.now_ns() + round(lasts * S), lambda fault=f"fault {number}": runtime.faults.end(fault)
                )
            await runtime.clock.sleep(lasts / 2)
        assert await runtime.run_until(1000 * S, until_idle=True) == "idle"

    async def crash(runtime: SimRuntime, after_s: float) -> None:
        await runtime.clock.sleep(after_s)
        await runtime.crash("apiserver/0")

    sim(main, seed, sink=record, begin=False, timing={"apiLatency": {"exponential": {"mean": 0.2}}})
    said = [number for data in record.of("echo.session") for number in data["ids"]]
    heard = [number for data in record.of("talker.heard") for number in data["ids"]]
    assert said == list(range(len(said)))
    assert heard == said[: len(heard)]
    if record.of("talker.end"):
        assert len(heard) == 200
    else:
        assert record.of("talker.lost")


def test_partitions_overlap_and_touch_only_those_named() -> None:
    async def main(runtime: SimRuntime) -> None:
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        other = api_pb2_grpc.ApiStub(runtime.env("other").dial("apiserver/0"))
        await runtime.partition("one", ["user"], ["apiserver/0", "store"])
        await runtime.partition("two", ["apiserver/0"], ["user"], one_way=True)
        await other.Get(api_pb2.GetRequest())
        call = stub.Get(api_pb2.GetRequest())
        await runtime.heal("one")
        await runtime.clock.sleep(1)
        assert not call.done()
        await runtime.heal("two")
        await call
        with pytest.raises(ValueError, match="no fault 'two' is in force"):
            await runtime.heal("two")
        await runtime.partition("one", [], [])
        with pytest.raises(ValueError, match="in force already"):
            await runtime.partition("one", [], [])

    sim(main, actors=[ECHO])


# Flow control ---------------------------------------------------------------------------------------------------------


class Reader(api_pb2_grpc.ApiServicer):
    """Reads a Session as fast as it can, and logs how much has come."""

    def __init__(self, env: Any, config: Any) -> None:
        self.env = env
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        self.env.ready()

    async def Session(self, requests: Any, context: Any) -> None:
        async for message in requests:
            self.env.log(own("read", {"bytes": message.ByteSize()}))


READER = ActorSpec("apiserver/0", f"{__name__}:Reader")
CHUNK = 256 * 1024


def chunk() -> api_pb2.SessionRequest:
    return api_pb2.SessionRequest(calls=[api_pb2.Call(get=api_pb2.GetRequest(name="x" * CHUNK))])


def test_a_window_update_takes_as_long_as_a_message() -> None:
    """A writer whose window is full waits for a whole round trip, however fast the reader is."""

    async def main(runtime: SimRuntime) -> None:
        stream = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0")).Session()
        written = []
        for _ in range(12):
            await stream.write(chunk())
            written.append(runtime.clock.now_ns() // MS)
        assert written[:3] == [0, 0, 0]
        assert all(when_ms % 200 == 0 for when_ms in written)
        assert 400 <= written[-1] <= 1000

    sim(main, actors=[READER], timing={"apiLatency": 0.1})


def test_a_window_does_not_open_across_a_partition() -> None:
    """What the reader has taken is no news for the writer while the way back is cut."""

    async def main(runtime: SimRuntime) -> None:
        stream = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0")).Session()
        await stream.write(chunk())
        await runtime.clock.sleep(1)
        await runtime.partition("cut", ["apiserver/0"], ["user"], one_way=True)
        begun_ns = runtime.clock.now_ns()
        runtime.clock.call_at_ns(begun_ns + 3 * S, lambda: runtime.faults.end("cut"))
        for _ in range(6):
            await stream.write(chunk())
        assert runtime.clock.now_ns() - begun_ns >= 3 * S

    sim(main, actors=[READER])


# Who may send ---------------------------------------------------------------------------------------------------------


class Mourner(api_pb2_grpc.ApiServicer):
    """Sends a request in its clean-up, by a connection that it has and by a new one."""

    def __init__(self, env: Any, config: Any) -> None:
        self.env = env

    async def run(self) -> None:
        self.env.ready()
        self.env.spawn(self.work(), "work")
        await asyncio.Event().wait()

    async def work(self) -> None:
        stub = api_pb2_grpc.ApiStub(self.env.dial("apiserver/0"))
        await stub.Get(api_pb2.GetRequest(name="alive"))
        try:
            await asyncio.Event().wait()
        finally:
            for target in ("apiserver/0", "apiserver/1"):
                other = api_pb2_grpc.ApiStub(self.env.dial(target))
                try:
                    await other.Get(api_pb2.GetRequest(name=f"dead to {target}"))
                except grpc.aio.AioRpcError as error:
                    self.env.log(own("mourner.refused", {"code": error.code().name}))


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_who_has_left_the_network_sends_nothing(how: str) -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.clock.sleep(1)
        await (runtime.stop("mourner") if how == "stop" else runtime.crash("mourner"))
        assert runtime.clock.now_ns() < 3 * S, "its clean-up ends"
        await runtime.clock.sleep(10)

    actors = [ECHO, ActorSpec("apiserver/1", ECHO.factory), ActorSpec("mourner", f"{__name__}:Mourner")]
    sim(main, actors=actors, sink=record)
    assert [data["name"] for data in record.of("echo.get")] == ["alive"]
    if how == "stop":
        assert record.of("mourner.refused") == [{"code": "UNAVAILABLE"}] * 2


# Keepalive ------------------------------------------------------------------------------------------------------------


def test_keepalive_pings_from_time_to_time() -> None:
    """A cut shows after the next ping and the patience with it, not at once."""

    async def main(runtime: SimRuntime) -> None:
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        call = stub.Get(api_pb2.GetRequest(name="slow"))
        await runtime.clock.sleep(12)
        await runtime.partition("cut", ["user"], ["apiserver/0"])
        with pytest.raises(grpc.aio.AioRpcError, match="keepalive"):
            await call
        assert runtime.clock.now_ns() == 23 * S

    sim(main, actors=[ECHO], timing={"keepaliveTime": 10, "keepaliveTimeout": 3})
