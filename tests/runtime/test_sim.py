"""The simulated runtime from the driver's point of view: set-up, clock, endings, failures, stop, pause."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import grpc
import pytest

from kemu import errors
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import EPOCH_UNIX_S, ActorSpec, Env
from kemu.runtime.runlog.events import own
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim
from tests.runtime.world import ECHO, talker

S = 1_000_000_000
MS = 1_000_000


def spec(name: str, actor: type, **config: Any) -> ActorSpec:
    return ActorSpec(name, f"{__name__}:{actor.__name__}", config)


class Script:
    """Base of actors that are one coroutine."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.config = config


class SlowStarter(Script):
    async def run(self) -> None:
        stub = api_pb2_grpc.ApiStub(self.env.dial("apiserver/0"))
        for _ in range(5):
            await stub.Get(api_pb2.GetRequest(name="x"))
        self.env.log(own("slow.set_up"))
        self.env.ready()
        await self.env.clock.sleep(2)
        self.env.log(own("slow.slept"))


def test_set_up_happens_at_time_zero_and_sleeps_count_from_there() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([ECHO, spec("slow", SlowStarter)])
        assert runtime.clock.now_ns() == 0
        assert runtime.loop.now_ns == 10 * MS
        await runtime.begin()
        assert runtime.clock.now_ns() == 0
        assert await runtime.run_until(10 * S, until_idle=True) == "idle"
        assert runtime.clock.now_ns() == 2 * S

    sim(main, sink=record, begin=False)
    own = [event for event in record.events if event[1] == "slow"]
    assert own == [
        (0, "slow", "actor.started", {"incarnation": 1}),
        (0, "slow", "slow.set_up", {}),
        (2 * S, "slow", "slow.slept", {}),
    ]


def test_timers_of_the_set_up_can_be_cancelled() -> None:
    async def main(runtime: SimRuntime) -> None:
        clock, fired = runtime.clock, []
        timers = [clock.call_at_ns(when * S, fired.append, when) for when in (1, 2, 3)]
        timers[0].cancel()
        await clock.sleep(0)
        await runtime.begin()
        await clock.sleep(0.5)
        timers[1].cancel()
        await clock.sleep(10)
        assert fired == [3]
        assert clock.epoch_unix_s == EPOCH_UNIX_S

    sim(main, begin=False)


def test_run_until_ends_at_the_deadline_when_stopped_or_when_idle() -> None:
    async def main(runtime: SimRuntime) -> None:
        clock, env = runtime.clock, runtime.env("user")

        async def heartbeat() -> None:
            while True:
                await env.clock.sleep(10, background=True)

        env.spawn(heartbeat(), "heartbeat")
        assert await runtime.run_until(25 * S) == "deadline"
        assert clock.now_ns() == 25 * S
        assert await runtime.run_until(25 * S) == "deadline"

        env.spawn(env.clock.sleep(7), "work")
        assert await runtime.run_until(100 * S, until_idle=True) == "idle"
        assert clock.now_ns() == 32 * S
        assert await runtime.run_until(100 * S, until_idle=True) == "idle"
        assert clock.now_ns() == 32 * S

        stop = asyncio.Event()
        env.clock.call_at_ns(33 * S, stop.set)
        assert await runtime.run_until(100 * S, stop=stop, until_idle=True) == "stopped"
        assert clock.now_ns() == 33 * S
        assert await runtime.run_until(100 * S, stop=stop) == "stopped"

        assert await runtime.run_until(10**6 * S) == "deadline"
        assert clock.now_ns() == 10**6 * S

    sim(main)


def test_a_run_that_is_never_idle_keeps_nothing_of_each_wait() -> None:
    async def main(runtime: SimRuntime) -> None:
        runtime.clock.call_at_ns(1000 * S, print)
        for second in range(1, 100):
            assert await runtime.run_until(second * S, until_idle=True) == "deadline"
        assert len(runtime.loop._idle_waiters) <= 2

    sim(main)


def test_messages_under_way_keep_a_run_alive() -> None:
    async def main(runtime: SimRuntime) -> None:
        user = runtime.env("user")
        stub = api_pb2_grpc.ApiStub(user.dial("apiserver/0"))
        call = stub.Get(api_pb2.GetRequest(name="slow"))
        assert await runtime.run_until(100 * S, until_idle=True) == "idle"
        assert runtime.clock.now_ns() == 30 * S + 2 * MS
        assert call.done()

    sim(main, actors=[ECHO])


def test_run_until_needs_a_running_clock() -> None:
    async def main(runtime: SimRuntime) -> None:
        with pytest.raises(RuntimeError, match="begin"):
            await runtime.run_until(S)

    sim(main, begin=False)


class Broken(Script):
    async def run(self) -> None:
        self.env.ready()
        await self.env.clock.sleep(self.config["after_s"])
        raise LookupError("my bug")


class BrokenChild(Script):
    async def run(self) -> None:
        self.env.ready()

        async def child() -> None:
            await self.env.clock.sleep(1)
            raise LookupError("my bug")

        self.env.spawn(child(), "child")
        await asyncio.Event().wait()


class BrokenConstructor(Script):
    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        raise LookupError("my bug")


class BrokenCallback(Script):
    async def run(self) -> None:
        def fail() -> None:
            raise LookupError("my bug")

        self.env.clock.call_at_ns(S, fail)


@pytest.mark.parametrize(
    ("actor", "what"),
    [
        (
            Broken,
            r"^broken \(incarnation 1\) failed at 1.000000000 s: task 'broken: run' ended with LookupError: my bug",
        ),
        (BrokenChild, r"^broken .* task 'broken: child' ended with LookupError"),
        (BrokenConstructor, r"^broken .* its factory .*:BrokenConstructor ended with LookupError"),
        (BrokenCallback, r"^broken .* a timer ended with LookupError"),
    ],
)
def test_an_exception_of_an_actor_ends_the_run(actor: type, what: str) -> None:
    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([spec("broken", actor, after_s=1)])
        await runtime.begin()
        await runtime.run_until(10 * S)
        raise AssertionError("the run went on")

    with pytest.raises(errors.ActorFailed, match=what) as info:
        sim(main, begin=False)
    assert isinstance(info.value.__cause__, LookupError)


def test_an_exception_of_a_servicer_ends_the_run() -> None:
    async def main(runtime: SimRuntime) -> None:
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        await stub.Get(api_pb2.GetRequest(name="bug"))

    with pytest.raises(errors.ActorFailed, match=r"apiserver/0 .* handler of /kemu.v1.Api/Get .*LookupError"):
        sim(main, actors=[ECHO])


def test_unimplemented_methods_are_no_failure() -> None:
    async def main(runtime: SimRuntime) -> None:
        stub = api_pb2_grpc.ApiStub(runtime.env("user").dial("apiserver/0"))
        with pytest.raises(grpc.aio.AioRpcError) as info:
            await stub.List(api_pb2.ListRequest())
        assert info.value.code() is grpc.StatusCode.UNIMPLEMENTED

    sim(main, actors=[ECHO])


class NeverReady(Script):
    async def run(self) -> None:
        await self.env.clock.sleep(1)
        self.env.ready()


def test_a_deadlock_in_the_set_up_explains_itself() -> None:
    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([spec("never", NeverReady)])

    with pytest.raises(errors.Deadlock) as info:
        sim(main, begin=False)
    text = str(info.value)
    assert "the clock stands at 0 until begin(); 1 timers wait for it" in text
    assert "not ready: never" in text
    assert "never: run: NeverReady.run (runtime/test_sim.py:" in text


class Idler(Script):
    async def run(self) -> None:
        self.env.ready()
        await asyncio.Event().wait()


def test_many_actors_that_stop_in_one_instant_are_no_livelock() -> None:
    async def main(runtime: SimRuntime) -> None:
        runtime.loop.max_steps_per_instant = 3_000
        await runtime.launch([spec(f"idler-{number}", Idler) for number in range(2_000)])
        await runtime.shutdown()

    sim(main, begin=False)


class Reaching(Script):
    async def run(self) -> None:
        {
            "thread": lambda: threading.Thread(target=print).start(),
            "socket": lambda: socket.socket().close(),
            "sleep": lambda: time.sleep(0.001),
            "process": lambda: subprocess.run(["true"], check=True),
        }[self.config["by"]]()


@pytest.mark.parametrize("by", ["thread", "socket", "process", "sleep"])
def test_actors_cannot_reach_out_of_the_simulation(by: str) -> None:
    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([spec("reaching", Reaching, by=by)])

    with pytest.raises(errors.ActorFailed, match="reaches outside of the simulated world"):
        sim(main, begin=False)


class Tidy(Script):
    async def run(self) -> None:
        self.env.ready()
        try:
            await asyncio.Event().wait()
        finally:
            await self.env.clock.sleep(3)
            self.env.disk.append("state", b"tidy")
            self.env.log(own("tidy.up"))


class Stubborn(Script):
    async def run(self) -> None:
        self.env.ready()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.env.log(own("stubborn.no"))


def test_stop_lets_an_actor_clean_up_within_bounds() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([spec("tidy", Tidy), spec("stubborn", Stubborn)])
        await runtime.begin()
        await runtime.clock.sleep(1)
        await runtime.stop("tidy")
        assert runtime.clock.now_ns() == 4 * S
        await runtime.stop("tidy")
        await runtime.stop("stubborn")
        assert 60 * S < runtime.clock.now_ns() < 200 * S
        await runtime.restart("tidy")
        await runtime.clock.sleep(1)
        assert runtime._envs["tidy"].disk.read("state") == b"tidy"
        await runtime.shutdown()

    sim(main, sink=record, begin=False)
    assert [event[2] for event in record.events if event[1] == "tidy"] == [
        "actor.started", "tidy.up", "actor.stopped", "actor.started", "tidy.up", "actor.stopped",
    ]  # fmt: skip


def test_a_stopped_server_breaks_its_streams() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([ECHO, talker("talker", count=100)])
        await runtime.begin()
        await runtime.clock.sleep(2.5)
        await runtime.stop("apiserver/0")
        await runtime.run_until(10 * S, until_idle=True)

    sim(main, sink=record, begin=False)
    assert record.of("talker.heard") == [{"ids": [0]}, {"ids": [1]}]
    assert record.of("talker.lost") == [{"code": "UNAVAILABLE", "details": "apiserver/0: connection reset by peer"}]
    assert record.of("echo.cancelled") == [{}]


def test_many_actors_are_stopped_together() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([spec(f"tidy/{number}", Tidy) for number in range(300)])
        await runtime.begin()
        await runtime.pause("tidy/7")
        await runtime.shutdown()
        assert runtime.clock.now_ns() == 3 * S

    sim(main, sink=record, begin=False)
    assert len(record.of("tidy.up")) == len(record.of("actor.stopped")) == 300
    stopped = [name for _, name, kind, _ in record.events if kind == "actor.stopped"]
    assert stopped == [f"tidy/{number}" for number in reversed(range(300))]


# Stop, crash and restart at the same time


def ending(meanwhile: Callable[[SimRuntime], Coroutine[Any, Any, None]]) -> tuple[Recorder, int]:
    """Stop an actor that takes 3 s to clean up, and do something else 1 s later; how long the stop took in all."""
    record = Recorder()

    async def main(runtime: SimRuntime) -> int:
        stop = runtime.env("user").spawn(runtime.stop("tidy"), "stop")
        await runtime.clock.sleep(1)
        await meanwhile(runtime)
        await stop
        return runtime.clock.now_ns()

    return record, sim(main, actors=[spec("tidy", Tidy)], sink=record)


def lives(record: Recorder) -> list[str]:
    return [kind for _, name, kind, _ in record.events if name == "tidy"]


def test_a_crash_ends_a_stop() -> None:
    async def crash(runtime: SimRuntime) -> None:
        await runtime.crash("tidy")

    record, now_ns = ending(crash)
    assert now_ns == S
    assert lives(record) == ["actor.started", "actor.crashed"]


def test_a_restart_after_a_crash_ends_a_stop_and_is_not_undone_by_it() -> None:
    async def crash_and_restart(runtime: SimRuntime) -> None:
        await runtime.crash("tidy")
        await runtime.restart("tidy")
        await runtime.clock.sleep(100)
        with pytest.raises(ValueError, match="is running"):
            await runtime.restart("tidy")

    record, _ = ending(crash_and_restart)
    assert lives(record) == ["actor.started", "actor.crashed", "actor.started"]


def test_two_stops_are_one_and_both_wait() -> None:
    async def stop(runtime: SimRuntime) -> None:
        await runtime.stop("tidy")
        assert runtime.clock.now_ns() == 3 * S

    record, now_ns = ending(stop)
    assert now_ns == 3 * S
    assert lives(record) == ["actor.started", "tidy.up", "actor.stopped"]


def test_no_restart_during_a_stop() -> None:
    async def restart(runtime: SimRuntime) -> None:
        with pytest.raises(ValueError, match="is running"):
            await runtime.restart("tidy")

    _, now_ns = ending(restart)
    assert now_ns == 3 * S


def test_who_gives_up_a_stop_leaves_nothing_half_stopped() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        stop = runtime.env("user").spawn(runtime.stop("tidy"), "stop")
        await runtime.clock.sleep(1)
        stop.cancel()
        await runtime.clock.sleep(1)
        await runtime.restart("tidy")
        assert runtime._envs["tidy"].disk.list() == []

    sim(main, actors=[spec("tidy", Tidy)], sink=record)
    assert lives(record)[:3] == ["actor.started", "actor.stopped", "actor.started"]


def test_one_crash_does_not_hold_up_the_end_of_a_run() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        runtime.env("user").spawn(runtime.shutdown(), "shutdown")
        await runtime.clock.sleep(1)
        await runtime.crash("tidy/1")
        await runtime.shutdown()
        assert runtime.clock.now_ns() == 3 * S

    sim(main, actors=[spec(f"tidy/{number}", Tidy) for number in range(3)], sink=record)
    assert [name for _, name, kind, _ in record.events if kind == "actor.stopped"] == ["tidy/2", "tidy/0"]


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_a_paused_actor_can_be_stopped_and_crashed(how: str) -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.pause("tidy")
        await runtime.clock.sleep(1)
        await getattr(runtime, how)("tidy")
        await runtime.resume("tidy")
        await runtime.clock.sleep(10)
        await runtime.restart("tidy")
        await runtime.clock.sleep(1)

    sim(main, actors=[spec("tidy", Tidy)], sink=record)
    ended = ["tidy.up", "actor.stopped"] if how == "stop" else ["actor.crashed"]
    assert lives(record)[: len(ended) + 2] == ["actor.started", *ended, "actor.started"]


def test_ctrl_c_ends_the_run_at_once() -> None:
    record = Recorder()
    gc.enable()  # Whatever another test has left.

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([spec("tidy", Tidy)])
        await runtime.begin()
        runtime.clock.call_at_ns(5 * S, signal.raise_signal, signal.SIGINT)
        await runtime.run_until(100 * S)

    with pytest.raises(KeyboardInterrupt):
        sim(main, sink=record, begin=False)
    assert record.of("tidy.up") == []
    assert gc.isenabled()
    assert sim(_now) == 0


async def _now(runtime: SimRuntime) -> int:
    return runtime.clock.now_ns()


class Cycles(Script):
    """Makes garbage in cycles, whose finalisers log: they must run at the same steps in every run."""

    async def run(self) -> None:
        self.env.ready()
        for number in range(20_000):
            self.leave_cycle(number)
            await self.env.clock.sleep(0.001)

    def leave_cycle(self, number: int) -> None:
        cycle: list[object] = [Noisy(self.env, number)]
        cycle.append(cycle)


class Noisy:
    def __init__(self, env: Env, number: int) -> None:
        self.env = env
        self.number = number

    def __del__(self) -> None:
        self.env.log(own("noisy.del", {"number": self.number}))


def test_garbage_is_collected_at_fixed_points_of_the_run() -> None:
    def run(ballast: int) -> list[Any]:
        record = Recorder()

        async def main(runtime: SimRuntime) -> None:
            garbage = [[] for _ in range(ballast)]
            await runtime.launch([spec(f"cycles/{number}", Cycles) for number in range(3)])
            await runtime.begin()
            await runtime.run_until(100 * S, until_idle=True)
            del garbage

        sim(main, sink=record, begin=False)
        return record.events

    events = run(0)
    assert any(kind == "noisy.del" for _, _, kind, _ in events)
    assert events == run(12_345)


def test_a_paused_actor_stands_still_and_goes_on_where_it_was() -> None:
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.launch([ECHO, talker("talker", count=5)])
        await runtime.begin()
        await runtime.clock.sleep(1.5)
        await runtime.pause("apiserver/0")
        await runtime.clock.sleep(3)
        assert len(record.of("echo.session")) == 1
        await runtime.resume("apiserver/0")
        await runtime.run_until(100 * S, until_idle=True)

    sim(main, sink=record, begin=False)
    heard = [(time_ns, data["ids"]) for time_ns, _, kind, data in record.events if kind == "talker.heard"]
    assert [numbers for _, numbers in heard] == [[0], [1], [2], [3], [4]]
    assert [time_ns // S for time_ns, _ in heard] == [1, 4, 4, 4, 5]
    assert record.of("talker.end") == [{}]


def test_names_must_be_new_and_known() -> None:
    async def main(runtime: SimRuntime) -> None:
        with pytest.raises(ValueError, match="is running"):
            await runtime.launch([ECHO])
        with pytest.raises(KeyError):
            await runtime.crash("nobody")
        with pytest.raises(ValueError, match="is running"):
            await runtime.restart("apiserver/0")

    sim(main, actors=[ECHO])


def test_each_actor_has_a_random_stream_of_its_own() -> None:
    def draws(seed: int) -> dict[str, float]:
        async def main(runtime: SimRuntime) -> dict[str, float]:
            return {name: runtime.env(name).random.random() for name in ("a", "b")}

        return sim(main, seed=seed)

    assert draws(1) == draws(1)
    assert len({*draws(1).values(), *draws(2).values()}) == 4
