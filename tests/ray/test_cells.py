"""Actors in real Ray actors: how they find each other, die, come back, and what their log says of it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio
import pytest

from kemu.errors import ActorFailed, SimulationError
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.messages.v1 import api_pb2, api_pb2_grpc, cell_pb2
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.ray import processes
from kemu.runtime.ray.driver.cells import RemoteCell
from kemu.runtime.ray.driver.clusters import RayCluster
from kemu.runtime.ray.driver.plans import DRIVER_CELL, CellPlan
from kemu.runtime.ray.driver.runtime import RayRuntime
from tests.ray.world import CODE, Events, alive, nothing_left, spec, until
from tests.runtime.world import STEPPER

T = TypeVar("T")

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PLAN = (
    CellPlan("one", ("echo/*", "near/*")),
    CellPlan("two", ("keeper/*", "far/*")),
    CellPlan("alone", ("lonely/*",), size=1, eager=False),
    CellPlan(DRIVER_CELL, ("*",)),
)


class World:
    """A run, its events, and the processes that must be gone when it is over."""

    def __init__(self, directory: Path, *, speed: float = 10.0, cells: Sequence[CellPlan] = PLAN) -> None:
        self.events = Events()
        self.runtime = RayRuntime(
            1, self.events, directory=directory, speed=speed, cells=cells, code=[*CODE, STEPPER.factory]
        )
        self.pids: list[int] = []

    def note_pids(self) -> dict[str, int]:
        pids = {name: endpoint.pid for name, endpoint in self.runtime.cells.items()}
        self.pids.extend(pids.values())
        return pids

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        with nothing_left(self.pids):
            return self.runtime.run(main)

    async def get(self, peer: str, name: str = "x") -> str:
        stub = api_pb2_grpc.ApiStub(self.runtime.env("user").dial(peer))
        return (await stub.Get(api_pb2.GetRequest(name=name))).object.decode()

    async def answers(self, peer: str) -> bool:
        try:
            return bool(await self.get(peer))
        except grpc.aio.AioRpcError:
            return False

    async def wait_for_answer(self, peer: str) -> None:
        async with asyncio.timeout(60):
            while not await self.answers(peer):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@pytest.fixture
def world(local_ray: RayCluster, tmp_path: Path) -> World:
    return World(tmp_path)


def in_order(events: Events) -> bool:
    return [event[0] for event in events] == sorted(event[0] for event in events)


def test_actors_near_and_far(world: World) -> None:
    """In the same cell, in another one, and in the driver, by the same names."""
    runtime = world.runtime

    async def main() -> dict[str, int]:
        await runtime.launch([spec("echo/0", "Echo"), spec("echo/1", "Echo")])
        await runtime.launch(
            [
                spec("near/0", "Talker", to="echo/0", count=3),
                spec("far/0", "Talker", to="echo/1", count=3),
                spec("local", "Talker", to="echo/1", count=3),
            ]
        )
        pids = world.note_pids()
        here = os.getpriority(os.PRIO_PROCESS, 0)
        assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in pids.values()} == {here}, "no less of the machine"
        assert await world.get("echo/1") == f"{pids['one']} echo/1 user x"
        with pytest.raises(ValueError, match="is running"):
            await runtime.launch([spec("echo/0", "Echo")])
        with pytest.raises(KeyError):
            await runtime.crash("nobody")
        assert world.events == [], "the order of events of the set-up is known when time passes"
        await runtime.begin()
        assert await runtime.run_until(5 * SECOND_NS) == "deadline"
        await runtime.shutdown()
        return pids

    pids = world.run(main())
    assert set(pids) == {"one", "two"}, "no cell without an actor, but the eager ones"
    for talker, peer in (("near/0", "echo/0"), ("far/0", "echo/1"), ("local", "echo/1")):
        assert [data["text"] for data in world.events.of("talker.answer", talker)] == [
            f"{pids['one']} {peer} {talker} {number}" for number in range(3)
        ]
    assert in_order(world.events)
    assert [actor for _, actor, kind, _ in world.events if kind == "actor.stopped"][-2:] == ["echo/1", "echo/0"]
    assert list((runtime.directory / "logs").glob("*.segment")), "they go when the run has its verdict"


def test_a_killed_cell_comes_back_with_its_actors_and_their_disks(world: World) -> None:
    """SIGKILL from outside: noticed, started anew on another port, and nothing that was logged is lost."""
    runtime = world.runtime
    acknowledged: list[bytes] = []

    async def put(count: int) -> None:
        keeper = rpc_pb2_grpc.KVStub(runtime.env("user").dial("keeper/0"))
        for _ in range(count):
            key = b"%d" % len(acknowledged)
            await keeper.Put(rpc_pb2.PutRequest(key=key))
            acknowledged.append(key)

    async def main() -> tuple[str, str]:
        await runtime.launch(
            [spec("keeper/0", "Keeper"), spec("echo/0", "Echo"), spec("near/0", "Streamer", to="echo/0")]
        )
        await runtime.launch([spec("far/0", "Streamer", to="echo/0")])
        await runtime.begin()
        before = runtime.cells["two"]
        pid = world.note_pids()["two"]
        await put(50)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await put(1_000_000)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        killed_at = time.monotonic()
        keeper = rpc_pb2_grpc.KVStub(runtime.env("user").dial("keeper/0"))
        while True:
            try:
                kept = [kv.key for kv in (await keeper.Range(rpc_pb2.RangeRequest())).kvs]
                break
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017
                assert time.monotonic() - killed_at < 60
                await asyncio.sleep(0.05)
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) - len(acknowledged) <= 1, "one may have been kept without an answer"
        acknowledged[:] = kept
        await put(3)
        after = runtime.cells["two"]
        world.note_pids()
        assert after.pid != before.pid
        answers = len(world.events.of("streamer.answer", "far/0"))
        await until(lambda: len(world.events.of("streamer.answer", "far/0")) > answers)
        await runtime.shutdown()
        return before.target, after.target

    before, after = world.run(main())
    assert before != after, "mostly another port"
    events = world.events
    assert events.of("actor.started", "keeper/0") == [{"incarnation": 1}, {"incarnation": 2}]
    assert events.of("actor.started", "echo/0") == [{"incarnation": 1}]
    assert events.of("actor.crashed", "keeper/0") == [{}]
    assert [data["key"] for data in events.of("keeper.put")] == acknowledged
    assert [data["lines"] for data in events.of("keeper.recovered")] == [0, len(acknowledged) - 3]
    assert in_order(events)


def test_a_launch_outlives_the_death_of_a_cell(world: World, tmp_path: Path) -> None:
    """It ends when all actors are ready, in whatever process."""
    runtime = world.runtime
    gate = tmp_path / "gate"
    begun = tmp_path / "gate.begun"

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("keeper/0", "Keeper")])
        first = world.note_pids()["two"]
        slow = [spec(name, "Slow", gate=str(gate)) for name in ("far/0", "near/0")]
        launch = asyncio.ensure_future(runtime.launch(slow))
        await until(lambda: begun.exists() and begun.read_text().count("\n") == 2)
        os.kill(first, signal.SIGKILL)
        await until(lambda: begun.read_text().count("\n") == 3)
        assert not launch.done()
        gate.touch()
        await launch
        assert world.note_pids()["two"] != first
        await runtime.shutdown()

    world.run(main())
    assert len(world.events.of("slow.begun", "far/0")) == 2
    assert len(world.events.of("slow.begun", "near/0")) == 1
    assert world.events.of("actor.started", "keeper/0") == [{"incarnation": 1}, {"incarnation": 2}]


def test_a_launch_while_a_cell_is_dead(world: World) -> None:
    """What a dead process was asked for, the next one does."""
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("keeper/0", "Keeper")])
        first = world.note_pids()["two"]
        os.kill(first, signal.SIGKILL)
        await until(lambda: not runtime._fleet.cells["two"].up.is_set())
        async with asyncio.timeout(60):
            await runtime.launch([spec("far/0", "Echo")])
        assert world.note_pids()["two"] != first
        assert await world.answers("far/0")
        await runtime.shutdown()

    world.run(main())
    assert world.events.of("actor.started", "keeper/0") == [{"incarnation": 1}, {"incarnation": 2}]


def test_who_waits_for_a_dead_process_is_not_cancelled(world: World) -> None:
    """Supervisors tell all cells who lives where: one of two that die together must not take the other's along."""
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("keeper/0", "Keeper")])
        first = world.note_pids()
        remote = runtime._fleet.cells["two"]
        for pid in first.values():
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not remote.up.is_set())

        async def ask() -> None:
            await remote._stub.Statistics(cell_pb2.Empty(), wait_for_ready=True)

        asked = asyncio.create_task(ask())
        await until(lambda: all(cell.up.is_set() for cell in runtime._fleet.cells.values()))
        await world.wait_for_answer("echo/0")
        assert not asked.cancelled()
        asked.cancel()
        world.note_pids()
        await runtime.shutdown()

    world.run(main())


def test_a_lost_connection_is_no_death(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that cannot be reached for a while goes on, and hears afterwards what was said meanwhile."""
    runtime = world.runtime
    broken = asyncio.Event()

    def check(remote: RemoteCell) -> None:
        if broken.is_set() and remote.name == "one":
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "lost")

    def breakable(call: Any) -> Any:
        async def called(remote: RemoteCell, *args: Any) -> Any:
            check(remote)
            return await call(remote, *args)

        return called

    class Log:
        def __init__(self, remote: RemoteCell, stream: Any) -> None:
            self._remote = remote
            self._stream = stream

        async def read(self) -> Any:
            check(self._remote)
            return await self._stream.read()

    log = RemoteCell.log
    monkeypatch.setattr(RemoteCell, "log", lambda remote, *args, **kwargs: Log(remote, log(remote, *args, **kwargs)))
    for name in ("statistics", "configure", "inject", "heal"):
        monkeypatch.setattr(RemoteCell, name, breakable(getattr(RemoteCell, name)))

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("far/0", "Streamer", to="echo/0")])
        remote = runtime._fleet.cells["one"]
        pid = world.note_pids()["one"]
        await runtime.begin()
        await runtime.partition("before", ["far/0"], ["nobody"])
        await until(lambda: world.events.of("streamer.answer"))
        broken.set()
        await until(lambda: not remote.up.is_set())
        await runtime.partition("meanwhile", ["far/0"], ["echo/0"])
        await runtime.heal("before")
        broken.clear()
        await until(remote.up.is_set)
        assert remote.faults == {"meanwhile"}
        await until(lambda: world.events.of("streamer.broken", "far/0"))
        await runtime.heal("meanwhile")
        answers = len(world.events.of("streamer.answer"))
        await until(lambda: len(world.events.of("streamer.answer")) > answers)
        assert runtime.cells["one"].pid == pid
        await runtime.shutdown()

    world.run(main())
    assert world.events.of("actor.crashed") == []
    assert len(world.events.of("actor.started", "echo/0")) == 1


def test_nobody_calls_the_driver(world: World) -> None:
    """It has no server: its actors cannot be reached from cells."""
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("local", "Echo"), spec("far/0", "Talker", to="local", count=1)])
        world.note_pids()
        await runtime.begin()
        await until(lambda: world.events.of("talker.error"))
        assert (await world.get("local")).split()[1] == "local"

    world.run(main())
    assert world.events.of("talker.error")[0]["code"] == "UNAVAILABLE"


def test_crash_and_restart(world: World) -> None:
    """Alone in its cell the whole process is killed; among others only the actor is dropped."""
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("echo/1", "Echo"), spec("lonely/0", "Echo")])
        await runtime.begin()
        pids = world.note_pids()
        for name, cell in (("echo/0", "one"), ("lonely/0", "alone")):
            assert (await world.get(name)).startswith(f"{pids[cell]} ")
            with pytest.raises(ValueError, match="is running"):
                await runtime.restart(name)
            await runtime.crash(name)
            await runtime.crash(name)
            assert not await world.answers(name)
        await until(lambda: not alive(pids["alone"]))
        assert alive(pids["one"])
        assert await world.answers("echo/1")
        for name in ("echo/0", "lonely/0"):
            await runtime.restart(name)
            await world.wait_for_answer(name)
        assert (await world.get("echo/0")).startswith(f"{pids['one']} ")
        assert not (await world.get("lonely/0")).startswith(f"{pids['alone']} ")
        await runtime.stop("echo/1")
        await runtime.stop("echo/1")
        assert not await world.answers("echo/1")
        await runtime.restart("echo/1")
        await world.wait_for_answer("echo/1")
        world.note_pids()
        await runtime.shutdown()

    world.run(main())
    for name, ending in (("echo/0", "actor.crashed"), ("lonely/0", "actor.crashed"), ("echo/1", "actor.stopped")):
        kinds = [kind for _, actor, kind, _ in world.events if actor == name and kind.startswith("actor.")]
        assert kinds == ["actor.started", ending, "actor.started", "actor.stopped"], name
        assert world.events.of("actor.started", name) == [{"incarnation": 1}, {"incarnation": 2}]


def test_a_crash_at_a_step_comes_when_the_actor_gets_there(world: World) -> None:
    """In a handler, a task and a timer; alone in its cell the process is killed before its next line."""
    runtime = world.runtime

    async def main() -> None:
        names = ("lonely/0", "echo/0", "local")
        await runtime.launch([*(ActorSpec(name, STEPPER.factory) for name in names), spec("echo/1", "Echo")])
        await runtime.begin()
        pids = world.note_pids()
        for name in names:
            never = asyncio.ensure_future(runtime.crash(name, "never"))
            armed = asyncio.ensure_future(runtime.crash(name, "in-handler"))
            async with asyncio.timeout(60):
                while not armed.done():
                    await asyncio.sleep(0.02)
                    with contextlib.suppress(grpc.aio.AioRpcError):
                        assert await world.get(name) == "passed"
            never.cancel()
            for step in ("in-task", "in-timer"):
                await runtime.restart(name)
                await world.wait_for_answer(name)
                await asyncio.wait_for(runtime.crash(name, step), 30)
        assert runtime._fleet._faults == {}
        assert runtime.cells["one"].pid == pids["one"]
        assert runtime.cells["alone"].pid != pids["alone"]
        world.note_pids()
        await runtime.shutdown()

    world.run(main())
    for name in ("lonely/0", "echo/0", "local"):
        crashes = world.events.of("actor.crashed", name)
        assert crashes == [{"step": "in-handler"}, {"step": "in-task"}, {"step": "in-timer"}]
        started = [data["incarnation"] for data in world.events.of("actor.started", name)]
        assert started == [1, 2, 3]
        story = [(kind, data.get("step")) for _, who, kind, data in world.events if who == name]
        for place, (kind, step) in enumerate(story):
            if kind == "actor.crashed" and step is not None:
                assert story[place - 1] == ("stepper.before", step)
                assert all(kind == "actor.started" for kind, _ in story[place + 1 : place + 2])


def test_a_crash_before_an_actor_is_ready_is_only_a_crash(world: World) -> None:
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("near/0", "Slow")])
        world.note_pids()
        await runtime.crash("near/0")
        await runtime.restart("near/0")
        await runtime.crash("near/0")
        await runtime.restart("near/0")
        await runtime.stop("near/0")
        await asyncio.sleep(0.1)
        assert await world.answers("echo/0")
        await runtime.shutdown()

    world.run(main())
    kinds = [kind for _, actor, kind, _ in world.events if actor == "near/0" and kind.startswith("actor.")]
    assert kinds[:2] == ["actor.started", "actor.crashed"]
    assert "actor.failed" not in kinds


def test_nobody_waits_for_who_is_never_ready(world: World, tmp_path: Path) -> None:
    """Orders to a cell do not wait until those are ready that it starts; neither does the end of a run."""
    runtime = world.runtime
    never = str(tmp_path / "never")

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("far/0", "Echo"), spec("keeper/0", "Keeper")])
        world.note_pids()
        await runtime.begin()
        await runtime.crash("far/0")
        await runtime.restart("far/0", spec("far/0", "Slow", gate=never))
        await until(Path(f"{never}.begun").exists)
        async with asyncio.timeout(60):
            await runtime.crash("keeper/0")
            await runtime.shutdown()

    world.run(main())
    assert world.events.of("actor.crashed", "keeper/0") == [{}]


def test_a_crashed_process_stays_down_until_its_actor_is_restarted(world: World) -> None:
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("lonely/0", "Keeper")])
        await runtime.begin()
        pid = world.note_pids()["alone"]
        await runtime.crash("lonely/0")
        await until(lambda: runtime.cells["alone"].pid != pid)
        assert world.note_pids()["alone"] != pid
        await asyncio.sleep(0.3)
        assert len(world.events.of("keeper.recovered")) == 1
        await runtime.restart("lonely/0")
        await until(lambda: len(world.events.of("keeper.recovered")) == 2)

    world.run(main())


def test_partitions_cut_and_heal(world: World) -> None:
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("far/0", "Streamer", to="echo/0")])
        await runtime.launch([spec("near/0", "Streamer", to="echo/0"), spec("local", "Streamer", to="echo/0")])
        world.note_pids()
        await runtime.begin()
        await until(lambda: world.events.of("streamer.answer", "far/0"))
        await runtime.partition("cut", ["far/0", "near/0"], ["echo/0"])
        with pytest.raises(ValueError, match="is in force already"):
            await runtime.partition("cut", ["far/0"], ["echo/0"])
        await until(
            lambda: world.events.of("streamer.broken", "far/0") and world.events.of("streamer.broken", "near/0")
        )
        before = {name: len(world.events.of("streamer.answer", name)) for name in ("far/0", "near/0", "local")}
        await until(lambda: len(world.events.of("streamer.answer", "local")) > before["local"] + 3)
        assert len(world.events.of("streamer.answer", "far/0")) == before["far/0"]
        assert len(world.events.of("streamer.answer", "near/0")) == before["near/0"]
        await runtime.heal("cut")
        with pytest.raises(ValueError, match="no fault"):
            await runtime.heal("cut")
        await until(lambda: len(world.events.of("streamer.answer", "far/0")) > before["far/0"])
        await until(lambda: len(world.events.of("streamer.answer", "near/0")) > before["near/0"])
        await runtime.shutdown()

    world.run(main())
    assert world.events.of("streamer.broken", "local") == []
    for name in ("far/0", "near/0"):
        assert world.events.of("net.connection_lost", name)[0] == {"peer": "echo/0"}


def test_an_actor_that_fails_ends_the_run(world: World) -> None:
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("far/0", "Failing", when="task"), spec("echo/0", "Echo")])
        world.note_pids()
        await runtime.begin()
        await runtime.run_until(1000 * SECOND_NS)

    with pytest.raises(ActorFailed, match=r"far/0 \(incarnation 1\) failed at (.|\n)*LookupError: in a task"):
        world.run(main())
    assert "Traceback" in world.events.of("actor.failed", "far/0")[0]["error"]


def test_an_actor_that_fails_when_it_is_stopped_fails_the_run(world: World) -> None:
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("far/0", "Failing", when="stop"), spec("echo/0", "Echo")])
        world.note_pids()
        await runtime.shutdown()

    with pytest.raises(ActorFailed, match=r"far/0 \(incarnation 1\) failed at (.|\n)*LookupError: in the clean-up"):
        world.run(main())
    assert world.events.of("actor.stopped", "echo/0") == [{}]


def test_a_launch_that_fails_ends_the_run(world: World) -> None:
    runtime = world.runtime

    async def main() -> None:
        try:
            await runtime.launch([spec("echo/0", "Echo"), spec("far/0", "Failing", when="factory")])
        finally:
            world.note_pids()

    with pytest.raises(ActorFailed, match=r"its factory tests\.ray\.world:Failing"):
        world.run(main())


def test_a_placement_that_ray_cannot_fulfil_is_an_error(local_ray: RayCluster, tmp_path: Path) -> None:
    plan = (CellPlan("one", ("echo/*",), resources={"unicorn": 1}),)
    runtime = RayRuntime(1, Events(), directory=tmp_path, cells=plan, code=CODE, start_timeout_s=1)

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo")])

    with pytest.raises(SimulationError, match=r"cell one .* takes unicorn: 1 .* offer CPU: 3"):
        runtime.run(main())


def test_time_in_cells_stands_until_the_beginning_and_is_the_same_for_all(world: World) -> None:
    runtime = world.runtime

    async def main() -> int:
        await runtime.launch(
            [
                spec("echo/0", "Echo"),
                *(spec(name, "Sleeper", every_s=2, count=3) for name in ("far/0", "near/0", "lonely/0", "local")),
            ]
        )
        world.note_pids()
        await asyncio.sleep(0.3)
        assert runtime.clock.now_ns() == 0
        await runtime.begin()
        await runtime.clock.started()
        real_s, virtual_ns = time.monotonic(), runtime.clock.now_ns()
        # However busy the machine is: the clock of a cell stands between two readings of that of the driver.
        between = []
        for number in range(5):
            asked_ns = runtime.clock.now_ns()
            await world.get("echo/0", f"{number}")
            between.append((asked_ns, runtime.clock.now_ns()))
        assert await runtime.run_until(7 * SECOND_NS) == "deadline"
        passed_ns = runtime.clock.now_ns() - virtual_ns
        assert passed_ns <= (time.monotonic() - real_s) * 10 * SECOND_NS, "ten virtual seconds in each real one"
        # Who wakes after two seconds three times is done by then, unless the machine was.
        await until(lambda: len(world.events.of("sleeper.woke")) == 12)
        now_ns = runtime.clock.now_ns()
        await runtime.shutdown()
        told = [time_ns for time_ns, _, kind, _ in world.events if kind == "echo.get"]
        slack_ns = SECOND_NS // 100  # a millisecond of real time
        for (asked_ns, answered_ns), told_ns in zip(between, told, strict=True):
            assert asked_ns - slack_ns <= told_ns <= answered_ns + slack_ns
        return now_ns

    now_ns = world.run(main())
    for name in ("far/0", "near/0", "lonely/0", "local"):
        assert [time_ns for time_ns, actor, kind, _ in world.events if (actor, kind) == (name, "sleeper.early")] == [0]
        woken = [
            time_ns / SECOND_NS for time_ns, actor, kind, _ in world.events if (actor, kind) == (name, "sleeper.woke")
        ]
        assert len(woken) == 3
        assert all(later - earlier >= 2 for earlier, later in itertools.pairwise([0.0, *woken]))
        assert woken[-1] * SECOND_NS <= now_ns
    assert {data["unix_s"] for data in world.events.of("sleeper.woke")} == {runtime.clock.epoch_unix_s}
    assert abs(runtime.clock.epoch_unix_s - time.time()) < 120


def test_how_a_run_ends(world: World) -> None:
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch(
            [
                spec("far/0", "Sleeper", every_s=3, count=3),
                spec("near/0", "Sleeper", every_s=1, count=1_000_000, background=True),
            ]
        )
        world.note_pids()
        with pytest.raises(RuntimeError, match="begin"):
            await runtime.run_until(SECOND_NS)
        await runtime.begin()
        stop = asyncio.Event()
        runtime.env("user").clock.call_at_ns(2 * SECOND_NS, stop.set)
        assert await runtime.run_until(1000 * SECOND_NS, stop=stop, until_idle=True) == "stopped"
        assert await runtime.run_until(4 * SECOND_NS, until_idle=True) == "deadline"
        await runtime.crash("near/0")
        assert await runtime.run_until(1000 * SECOND_NS, until_idle=True) == "idle"
        assert runtime.clock.now_ns() > 9 * SECOND_NS

    world.run(main())
    assert len(world.events.of("sleeper.woke", "far/0")) == 3


def test_who_is_paused_stands_still_then(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = world.runtime
    sent: list[int] = []
    kill = os.kill

    def late(pid: int, number: int) -> None:
        """The thread that is to take it waits for a core."""
        if number == signal.SIGSTOP:
            sent.append(pid)
            asyncio.get_running_loop().call_later(0.2, kill, pid, number)
        else:
            kill(pid, number)

    async def main() -> None:
        await runtime.launch([spec("lonely/0", "Echo"), spec("echo/0", "Echo")])
        world.note_pids()
        await runtime.begin()
        monkeypatch.setattr(os, "kill", late)
        await runtime.pause("lonely/0")
        answer = asyncio.ensure_future(world.get("lonely/0"))
        await asyncio.sleep(0.3)
        assert not answer.done()
        assert processes.is_stopped(sent[0])
        await runtime.resume("lonely/0")
        assert await answer
        # Nobody waits for the stop of one that has ended, or is to go on.
        pause = asyncio.ensure_future(runtime.pause("lonely/0"))
        await asyncio.sleep(0.1)
        await runtime.crash("lonely/0")
        await pause

    world.run(main())


def test_pause_and_resume(world: World) -> None:
    runtime = world.runtime

    async def main() -> None:
        await runtime.launch([spec("lonely/0", "Echo"), spec("echo/0", "Echo"), spec("echo/1", "Echo")])
        world.note_pids()
        await runtime.begin()
        with pytest.raises(SimulationError, match="cell of its own"):
            await runtime.pause("echo/0")
        await runtime.pause("lonely/0")
        answer = asyncio.ensure_future(world.get("lonely/0"))
        await asyncio.sleep(0.3)
        assert not answer.done()
        assert await world.answers("echo/0")
        await runtime.partition("meanwhile", ["lonely/0"], ["echo/1"])
        await runtime.resume("lonely/0")
        assert await asyncio.wait_for(answer, 60)
        assert runtime._fleet.cells["alone"].faults == {"meanwhile"}, "it hears what it missed"
        await runtime.heal("meanwhile")
        # The end of a paused one does not hang, however it comes.
        await runtime.pause("lonely/0")
        await runtime.crash("lonely/0")
        await runtime.restart("lonely/0")
        await world.wait_for_answer("lonely/0")
        world.note_pids()
        await runtime.pause("lonely/0")

    world.run(main())
