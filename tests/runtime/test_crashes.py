"""A crash is not a cancel: nothing of the dead actor acts any more, and what it had fsynced survives."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

import grpc
import pytest

from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.runlog.events import own
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim
from tests.runtime.world import ECHO, STEPPER, request, talker

S = 1_000_000_000
MS = 1_000_000


class LastWords:
    """Waits in every way there is, and in each ``finally`` tries everything that an actor can do."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.event = asyncio.Event()
        self.stub = api_pb2_grpc.ApiStub(env.dial("apiserver/0"))
        self.call = self.stub.Session()
        env.disk.append("log", b"before")
        env.disk.fsync("log")

    async def run(self) -> None:
        env = self.env
        env.spawn(self.wait_for(self.event.wait()), "event")
        env.spawn(self.wait_for(self.call.read()), "read")
        env.spawn(self.wait_for(self.get_slowly()), "get")
        env.spawn(self.iterate(), "iterate")
        env.spawn(self.gather(), "gather")
        env.clock.call_at_ns(5 * S, env.log, own("words.timer", {}))
        env.ready()
        await self.wait_for(env.clock.sleep(100))

    async def get_slowly(self) -> None:
        await self.stub.Get(api_pb2.GetRequest(name="slow"))

    async def gather(self) -> None:
        await asyncio.gather(self.wait_for(asyncio.Event().wait()), self.wait_for(asyncio.Event().wait()))

    async def numbers(self) -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await self.last_words()

    async def iterate(self) -> None:
        async for _ in self.numbers():
            await self.wait_for(asyncio.Event().wait())

    async def wait_for(self, awaitable: Any) -> None:
        try:
            await awaitable
        finally:
            await self.last_words()

    async def last_words(self) -> None:
        env = self.env
        self.event.set()
        env.log(own("words.last"))
        env.ready()
        stub = api_pb2_grpc.ApiStub(env.dial("apiserver/0"))
        call = stub.Get(api_pb2.GetRequest(name="last"))
        self.call.cancel()
        for act in (
            lambda: env.disk.append("log", b"after"),
            lambda: env.disk.write("log", b"after"),
            lambda: env.spawn(self.speak(), "late"),
            lambda: env.clock.call_at_ns(0, env.log, own("words.timer", {})),
        ):
            try:
                act()
            except BaseException:
                continue
        await self.call.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=666)]))
        await env.clock.sleep(1)
        await call
        env.log(own("words.last"))

    async def speak(self) -> None:
        self.env.log(own("words.last"))


WORDS = ActorSpec("words", f"{__name__}:LastWords")


def test_nothing_of_a_crashed_actor_acts_any_more(capfd: pytest.CaptureFixture[str]) -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([ECHO, WORDS])
        await runtime.begin()
        await runtime.clock.sleep(1)
        await runtime.crash("words")
        await runtime.crash("words")
        gc.collect()
        assert await runtime.run_until(1000 * S, until_idle=True) == "idle"
        assert runtime.clock.now_ns() < 2 * S
        await runtime.restart("words")
        await runtime.clock.sleep(1)
        assert runtime._envs["words"].disk.read("log") == b"beforebefore"

    sim(main, sink=record, begin=False)
    assert record.of("words.last") == record.of("words.timer") == []
    assert [data["name"] for data in record.of("echo.get")] == ["slow", "slow"]
    assert record.of("echo.session") == []
    assert [kind for _, name, kind, _ in record.events if name == "words"] == [
        "actor.started", "actor.crashed", "actor.started",
    ]  # fmt: skip
    assert record.of("actor.started", "words") == [{"incarnation": 1}, {"incarnation": 2}]
    captured = capfd.readouterr()
    assert captured.err == ""


def test_a_live_server_hears_that_its_client_died() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([ECHO, WORDS])
        await runtime.begin()
        await runtime.clock.sleep(1)
        await runtime.crash("words")
        await runtime.run_until(1000 * S, until_idle=True)

    sim(main, sink=record, begin=False)
    assert (S + MS, "apiserver/0", "net.connection_lost", {"peer": "words"}) in record.events
    assert (S + MS, "apiserver/0", "echo.cancelled", {}) in record.events


def test_clients_of_a_crashed_server_find_it_unavailable_until_it_is_back() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([ECHO, talker("talker", count=3)])
        await runtime.begin()
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        slow = stub.Get(api_pb2.GetRequest(name="slow"))
        await runtime.clock.sleep(1.5)
        await runtime.crash("apiserver/0")
        with pytest.raises(grpc.aio.AioRpcError, match="connection reset by peer"):
            await slow
        assert runtime.clock.now_ns() == 1501 * MS
        with pytest.raises(grpc.aio.AioRpcError, match="connection refused"):
            await stub.Get(api_pb2.GetRequest(name="x"))
        assert runtime.clock.now_ns() == 1503 * MS
        await runtime.restart("apiserver/0")
        assert (await stub.Get(api_pb2.GetRequest(name="x"))).object == b"x"

    sim(main, sink=record, begin=False)
    assert record.of("talker.heard") == [{"ids": [0]}]
    assert record.of("talker.lost") == [{"code": "UNAVAILABLE", "details": "apiserver/0: connection reset by peer"}]
    assert record.of("net.connection_lost", "talker") == [{"peer": "apiserver/0"}]
    assert record.of("net.connection_lost", "user") == [{"peer": "apiserver/0"}]
    assert record.of("echo.cancelled") == []


def test_what_a_server_sent_before_it_crashed_still_arrives() -> None:
    async def main(runtime: SimRuntime) -> None:
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        call = stub.Get(api_pb2.GetRequest(name="x"))
        await runtime.clock.sleep(0.0015)
        await runtime.crash("apiserver/0")
        assert (await call).object == b"x"

    sim(main, actors=[ECHO])


def test_a_request_to_the_old_incarnation_does_not_reach_the_new_one() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        call = stub.Get(api_pb2.GetRequest(name="x"))
        await runtime.clock.sleep(0.0005)
        await runtime.crash("apiserver/0")
        await runtime.restart("apiserver/0")
        with pytest.raises(grpc.aio.AioRpcError):
            await call

    sim(main, actors=[ECHO], sink=record)
    assert record.of("echo.get") == []


class Journal:
    """Appends its incarnation, fsyncs, appends again."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env

    async def run(self) -> None:
        disk = self.env.disk
        self.env.log(own("journal.found", {"content": disk.read("log") if disk.list() else b""}))
        disk.append("log", b"<synced>")
        disk.fsync("log")
        disk.append("log", b"<unsynced>")
        self.env.ready()
        await asyncio.Event().wait()


def test_the_disk_keeps_what_was_fsynced_and_the_seed_decides_on_the_rest() -> None:
    def found(seed: int) -> list[bytes]:
        record = Recorder()

        async def main(runtime: SimRuntime) -> None:
            for _ in range(3):
                await runtime.crash("journal")
                await runtime.restart("journal")
                await runtime.clock.sleep(1)

        sim(main, seed, [ActorSpec("journal", f"{__name__}:Journal")], sink=record)
        return [data["content"] for data in record.of("journal.found")]

    runs = [found(seed) for seed in range(20)]
    assert runs == [found(seed) for seed in range(20)]
    assert all(content.startswith(b"<synced>") for run in runs for content in run[1:])
    tails = {run[1].removeprefix(b"<synced>") for run in runs}
    assert {b"", b"<unsynced>"} < tails


def test_an_actor_may_crash_before_it_is_ready_and_be_ready_later() -> None:
    async def main(runtime: SimRuntime) -> None:
        async def chaos() -> None:
            await asyncio.sleep(0.001)
            await runtime.crash("late")
            await runtime.restart("late")

        task = asyncio.get_running_loop().create_task(chaos())
        await runtime.launch([ActorSpec("late", f"{__name__}:ReadyAtSecond")])
        await task

    sim(main, begin=False)


class ReadyAtSecond:
    starts = 0

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env

    async def run(self) -> None:
        ReadyAtSecond.starts += 1
        if ReadyAtSecond.starts > 1:
            self.env.ready()
        await asyncio.Event().wait()


def test_who_crashes_in_the_instant_of_bad_news_does_not_hear_of_it() -> None:
    """The future that it waited for has failed, and nobody asks it why: that is no failure of the run."""

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([ActorSpec("waiter", f"{__name__}:WaitsForBadNews")])
        await runtime.clock.sleep(1)
        WaitsForBadNews.news.set_exception(ConnectionError("lost"))
        del WaitsForBadNews.news
        await runtime.crash("waiter")
        gc.collect()
        await runtime.clock.sleep(1)

    sim(main)


class WaitsForBadNews:
    news: asyncio.Future[None]

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env

    async def run(self) -> None:
        WaitsForBadNews.news = asyncio.get_running_loop().create_future()
        self.env.spawn(self.wait(), "wait")
        self.env.ready()
        await asyncio.Event().wait()

    async def wait(self) -> None:
        await WaitsForBadNews.news


class Heavy(api_pb2_grpc.ApiServicer):
    """Serves, calls and waits, and leaves a weak reference to itself."""

    made: ClassVar[list[weakref.ref[Any]]] = []

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.made.append(weakref.ref(self))
        self.env = env
        self.stub = api_pb2_grpc.ApiStub(env.dial("apiserver/0"))
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        session = self.stub.Session()
        await session.write(request(1))
        await session.read()
        self.env.clock.call_at_ns(3600 * S, self.env.log, own("heavy.timer", {}))
        self.env.spawn(session.read(), "read")
        self.env.ready()
        await self.env.clock.sleep(3600)


async def echo_often(runtime: SimRuntime) -> None:
    """A server forgets its finished handlers in batches."""
    stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
    for _ in range(300):
        await stub.Get(api_pb2.GetRequest(name="x"))


HEAVY = ActorSpec("heavy", "tests.runtime.test_crashes:Heavy")


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_nothing_is_kept_of_an_actor_that_has_ended(how: str) -> None:
    async def scenario(runtime: SimRuntime) -> None:
        for second in range(1, 4):
            await getattr(runtime, how)("heavy")
            await runtime.clock.sleep(0.1)
            await echo_often(runtime)
            gc.collect()
            assert [ref() for ref in Heavy.made] == [None] * second
            await runtime.restart("heavy")
            await runtime.clock.sleep(0.1)
        assert sum(ref() is not None for ref in Heavy.made) == 1

    Heavy.made.clear()
    Heavy.made.clear()
    sim(scenario, actors=[ECHO, HEAVY])


class Farewell(api_pb2_grpc.ApiServicer):
    """Opens a stream to the API server and serves one; says something on both as it ends."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        call = api_pb2_grpc.ApiStub(self.env.dial("apiserver/0")).Session()
        await call.write(request(1))
        self.env.ready()
        try:
            await self.env.clock.sleep(100)
        finally:
            await call.write(request(666))

    async def Session(self, requests: Any, context: Any) -> None:
        try:
            await context.read()
            await self.env.clock.sleep(100)
        finally:
            await context.write(api_pb2.SessionResponse(replies=[api_pb2.Reply(id=666)]))


def test_what_finally_blocks_send_on_open_streams_does_not_leave_a_crashed_actor() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        call = api_pb2_grpc.ApiStub(runtime.env("user").dial("farewell")).Session()
        await call.write(request(1))
        await runtime.clock.sleep(1)
        await runtime.crash("farewell")
        with pytest.raises(grpc.aio.AioRpcError, match="connection reset by peer"):
            await call.read()
        await runtime.clock.sleep(10)

    sim(main, actors=[ECHO, ActorSpec("farewell", f"{__name__}:Farewell")], sink=record)
    assert record.of("echo.session") == [{"ids": [1]}]


# At a named step


@pytest.mark.parametrize(("step", "struck_ns"), [("in-handler", 2501 * MS), ("in-task", S), ("in-timer", 500 * MS)])
def test_an_actor_crashes_at_the_step_for_which_it_is_armed_and_once_only(step: str, struck_ns: int) -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))

        async def ask() -> bytes | None:
            await runtime.clock.sleep(2.5)
            try:
                return bytes((await stub.Get(api_pb2.GetRequest())).object)
            except grpc.aio.AioRpcError:
                return None

        asked = runtime.env("user").spawn(ask(), "ask")
        await runtime.crash("apiserver/0", step)
        assert runtime.clock.now_ns() == struck_ns
        assert await asked is None
        disk = runtime._disks["apiserver/0"]
        written = disk.read("log") if disk.list() else b""
        assert len(written) <= len(record.of("stepper.after"))
        await runtime.clock.sleep_until_ns(6 * S)
        await runtime.restart("apiserver/0")
        assert (await stub.Get(api_pb2.GetRequest())).object == b"passed"

    sim(main, actors=[STEPPER], sink=record)
    assert record.of("actor.crashed") == [{"step": step}]
    times = [now_ns for now_ns, _, kind, _ in record.events if kind.startswith("stepper.")]
    assert not [now_ns for now_ns in times if struck_ns < now_ns < 6 * S]
    assert {"step": step} in record.of("stepper.before")
    at_strike = [kind for now_ns, _, kind, data in record.events if now_ns == struck_ns and data.get("step") == step]
    assert at_strike == ["stepper.before", "actor.crashed"]


def test_a_crash_armed_for_a_step_outlives_other_crashes_and_can_be_called_off() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        armed = runtime.env("user").spawn(runtime.crash("apiserver/0", "in-handler"), "armed")
        twice = runtime.env("user").spawn(runtime.crash("apiserver/0", "in-handler"), "armed twice")
        never = runtime.env("user").spawn(runtime.crash("apiserver/0", "in-task"), "never")
        await runtime.clock.sleep(0.5)
        never.cancel()
        await runtime.crash("apiserver/0")
        await runtime.restart("apiserver/0")
        await runtime.clock.sleep(3.2)
        assert record.of("stepper.after").count({"step": "in-task"}) == 3
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.Get(api_pb2.GetRequest())
        await armed
        await twice
        await runtime.restart("apiserver/0")
        assert (await stub.Get(api_pb2.GetRequest())).object == b"passed"

    sim(main, actors=[STEPPER], sink=record)
    assert record.of("actor.crashed") == [{}, {"step": "in-handler"}]
