"""The runtime ``wall``: actors come and go, stand still and go on, in one process, in real time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kemu.errors import ActorFailed
from kemu.runtime.env import SECOND_NS, ActorSpec, Env
from kemu.runtime.runlog.events import own
from kemu.runtime.wall.runtime import WallRuntime

SPEED = 10.0
WAIT_S = 10.0
"""Real time; nothing here takes a second."""


class Ticker:
    """Counts every second, in a task and in a timer, and can be told to do something at a number."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.config = config

    async def run(self) -> None:
        env = self.env
        env.disk.append("lives", b".")
        env.on_fault("overload", lambda assignment: None)
        env.ready()
        await env.clock.started()
        if self.config.get("quiet"):
            await asyncio.Event().wait()
        try:
            for number in range(1, 1000):
                env.clock.call_at_ns(
                    env.clock.now_ns() + SECOND_NS // 2, env.log, own("ticker.timer", {"number": number})
                )
                await env.clock.sleep(1, background=True)
                env.log(own("ticker.task", {"number": number, "lives": len(env.disk.read("lives"))}))
                if self.config.get("exits_at") == number and len(env.disk.read("lives")) == 1:
                    env.exit("I give up")
                if self.config.get("fails_at") == number:
                    raise LookupError("a bug")
                if self.config.get("steps"):
                    env.step("after-append")
        finally:
            env.log(own("ticker.over"))


class Events(list[tuple[int, str, str, dict[str, Any]]]):
    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self.append((time_ns, actor, kind, dict(data)))

    def of(self, actor: str, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
        return [(kind, data) for _, who, kind, data in self if who == actor and kind in kinds]


def spec(name: str, **config: Any) -> ActorSpec:
    return ActorSpec(name, f"{__name__}:Ticker", config)


class World:
    def __init__(self, directory: Path) -> None:
        self.events = Events()
        self.runtime = WallRuntime(
            1, self.events, directory=directory, speed=SPEED, loop=asyncio.get_running_loop(), epoch_unix_s=5
        )

    def numbers(self, name: str, kind: str = "ticker.task") -> list[int]:
        return [data["number"] for _, data in self.events.of(name, kind)]

    async def pass_s(self, seconds: float) -> None:
        await self.runtime.clock.sleep(seconds)

    async def begin(self, *specs: ActorSpec) -> None:
        await self.runtime.launch(specs)
        await self.runtime.begin()


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    async with asyncio.timeout(WAIT_S):
        yield made
        await made.runtime._close()


async def test_who_crashes_cleans_nothing_up_and_its_successor_finds_its_disk(world: World) -> None:
    await world.begin(spec("a"), spec("b"))
    await world.pass_s(2.5)
    await world.runtime.crash("a")
    await world.pass_s(1)
    await world.runtime.restart("a")
    await world.pass_s(2.5)
    await world.runtime.shutdown()
    assert [data["lives"] for _, data in world.events.of("a", "ticker.task")][:3] == [1, 1, 2]
    assert [kind for kind, _ in world.events.of("a", "actor.started", "actor.crashed", "actor.stopped")] == [
        "actor.started",
        "actor.crashed",
        "actor.started",
        "actor.stopped",
    ]
    assert len(world.events.of("a", "ticker.over")) == len(world.events.of("b", "ticker.over")) == 1
    assert world.numbers("b")[:4] == [1, 2, 3, 4]
    times = [time_ns for time_ns, *_ in world.events]
    assert times == sorted(times)


async def test_who_is_paused_does_nothing_and_goes_on_where_it_stood(world: World) -> None:
    await world.begin(spec("a"), spec("b"))
    await world.pass_s(2.2)
    await world.runtime.pause("a")
    stood = [one for one in world.events if one[1] == "a"]
    await world.pass_s(3)
    assert [one for one in world.events if one[1] == "a"] == stood
    assert world.numbers("b")[:4] == [1, 2, 3, 4]
    await world.runtime.resume("a")
    await world.pass_s(1.5)
    assert world.numbers("a")[:3] == [1, 2, 3]
    assert world.numbers("a", "ticker.timer")[:3] == [1, 2, 3]
    assert "call_soon" not in vars(asyncio.get_running_loop()), "the loop is as it was"


async def test_who_crashes_while_it_is_paused_leaves_no_task_behind(world: World) -> None:
    await world.begin(spec("a"))
    await world.runtime.pause("a")
    await world.runtime.crash("a")
    await asyncio.sleep(0.05)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("a:")]
    await world.runtime.restart("a")
    await world.pass_s(1.5)
    assert world.numbers("a")[:1] == [1]


async def test_the_fault_pause_strikes_and_ends(world: World) -> None:
    await world.begin(spec("a"), spec("b"))
    await world.runtime.inject("stand", "pause", {"actor": ["a"]})
    with pytest.raises(ValueError, match="in force"):
        await world.runtime.inject("stand", "pause", {"actor": ["b"]})
    await world.pass_s(2)
    assert world.numbers("a") == []
    assert await world.runtime.heal("stand") == 1
    await world.pass_s(2)
    assert world.numbers("a")[:1] == [1]
    with pytest.raises(ValueError, match="no fault"):
        await world.runtime.heal("stand")


async def test_an_actor_that_ends_itself_is_started_again(world: World) -> None:
    await world.begin(spec("a", exits_at=2))
    await world.pass_s(5)
    assert [kind for kind, _ in world.events.of("a", "actor.started", "actor.exited", "actor.crashed")] == [
        "actor.started",
        "actor.exited",
        "actor.crashed",
        "actor.started",
    ]
    assert world.numbers("a")[:3] == [1, 2, 1]


async def test_a_crash_at_a_step_returns_when_it_has_happened(world: World) -> None:
    await world.begin(spec("a", steps=True))
    await world.runtime.crash("a", "after-append")
    assert world.numbers("a") == [1]
    assert world.events.of("a", "actor.crashed") == [("actor.crashed", {"step": "after-append"})]
    await world.runtime.restart("a")
    await world.pass_s(2.5)
    assert world.numbers("a")[:3] == [1, 1, 2], "it struck once"


async def test_an_actor_that_fails_ends_the_run(world: World) -> None:
    await world.runtime.launch([spec("a", fails_at=1)])
    with pytest.raises(ActorFailed, match="a bug"):
        await _driven(world)
    assert world.events.of("a", "actor.failed")


async def _driven(world: World) -> None:
    async def main() -> None:
        await world.runtime.begin()
        await world.runtime.run_until(60 * SECOND_NS)

    await world.runtime._run(main())


async def test_a_run_is_over_at_its_deadline_when_told_and_when_idle(world: World) -> None:
    await world.begin(spec("a"))
    assert await world.runtime.run_until(2 * SECOND_NS) == "deadline"
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, stop.set)
    assert await world.runtime.run_until(1000 * SECOND_NS, stop=stop) == "stopped"


async def test_a_run_is_idle_when_only_housekeeping_is_left(world: World) -> None:
    world.runtime.env("operator").log(own("somebody.decided"))
    await world.begin(spec("a", quiet=True))
    assert await world.runtime.run_until(1000 * SECOND_NS, until_idle=True) == "idle"
    assert world.runtime.clock.now_ns() < 100 * SECOND_NS


async def test_timestamps_are_those_of_the_machine_however_long_the_setup_takes(tmp_path: Path) -> None:
    """Clients wait for the second after an object's creation, by their own clock."""
    dated: list[int] = []
    runtime = WallRuntime(
        1, Events(), directory=tmp_path, loop=asyncio.get_running_loop(), epoch_unix_s=5, on_date=dated.append
    )
    time.sleep(1.2)  # noqa: ASYNC251  (nothing else is to happen)
    before_ns = time.time_ns()
    await runtime.begin()
    shown_ns = runtime.clock.unix_ns()
    after_ns = time.time_ns()
    assert before_ns - 1_000_000 <= shown_ns <= after_ns + 1_000_000
    assert dated == [runtime.clock.epoch_unix_s]
    await runtime._close()


async def test_what_one_process_cannot_do_is_refused(world: World) -> None:
    await world.begin(spec("a"))
    with pytest.raises(ValueError, match="lostRenames is impossible"):
        await world.runtime.inject("x", "lostRenames", {"actor": ["a"]})
    with pytest.raises(KeyError):
        await world.runtime.crash("nobody")


def test_ray_is_not_imported() -> None:
    code = "import sys, kemu.runtime.wall.runtime; print([name for name in sys.modules if name.split('.')[0] == 'ray'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
