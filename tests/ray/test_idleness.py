"""When a run on Ray is idle: only if nobody waits for anything, and everybody was there to say so. Without Ray."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kemu.errors import SimulationError
from kemu.messages.v1 import cell_pb2
from kemu.runtime import loads
from kemu.runtime.env import SECOND_NS
from kemu.runtime.ray.driver import events
from kemu.runtime.ray.driver import runtime as ray
from kemu.runtime.ray.driver.plans import DRIVER_CELL, CellPlan
from kemu.runtime.rpc import ends
from tests.ray.world import Events, spec

HERE = (CellPlan(DRIVER_CELL, ("*",)),)
"""All actors in the driver: no Ray."""


class Stream:
    """Signs of life of a cell, at given times."""

    def __init__(self, clock: list[float], times: list[float]) -> None:
        self._clock = clock
        self._times = iter(times)

    async def read(self) -> Any:
        when = next(self._times, None)
        if when is None:
            return ends.EOF
        self._clock[0] = when
        return cell_pb2.LogSegment(time_ns=1)


@pytest.mark.parametrize(
    ("times", "busy_at"), [([100.1, 100.2, 100.3], 100.0), ([100.1, 101.0, 101.1], 101.0)], ids=["speaks", "held up"]
)
async def test_a_cell_that_was_held_up_is_only_now_going_to_do_what_it_was_asked(
    times: list[float], busy_at: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = [100.0]
    monkeypatch.setattr(events, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    streams = events.EventStreams(Events(), lambda: 0, lambda error: None, loads.Loads(), 1.0, tmp_path)
    remote: Any = SimpleNamespace(
        name="cell",
        process="cell/cell",
        endpoint=SimpleNamespace(segment="cell.segment", address="127.0.0.1"),
        source=(0, 1),
        reported_at=100.0,
        log=lambda offset, follow: Stream(clock, times),
    )
    streams.open(remote)
    streams.busy_at = 100.0
    await streams.follow(remote)
    assert (streams.busy_at, remote.reported_at) == (busy_at, times[-1])


def test_a_driver_that_was_held_up_looks_once_more(tmp_path: Path) -> None:
    runtime = ray.RayRuntime(1, Events(), directory=tmp_path, cells=HERE)
    over: list[float] = []

    def hold_up() -> None:
        time.sleep(2 * ray.QUIET_S)
        over.append(time.monotonic())

    async def main() -> None:
        await runtime.launch([spec("local", "Echo")])
        await runtime.begin()
        await runtime.clock.started()
        asyncio.get_running_loop().call_later(ray.QUIET_S / 10, hold_up)
        assert await runtime.run_until(1000 * SECOND_NS, until_idle=True) == "idle"
        assert time.monotonic() - over[0] >= ray.QUIET_S
        await runtime.shutdown()

    runtime.run(main())


def test_the_beginning_is_so_far_ahead_that_all_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = ray.RayRuntime(1, Events(), directory=tmp_path, cells=HERE)
    tell = runtime._fleet.configure_all
    left_ns: list[int] = []

    async def slowly() -> None:
        await asyncio.sleep(0.2)
        await tell()
        left_ns.append(runtime._fleet.epoch_unix_ns - time.time_ns())

    monkeypatch.setattr(runtime._fleet, "configure_all", slowly)

    async def main() -> None:
        await runtime.begin()
        await runtime.shutdown()

    runtime.run(main())
    assert left_ns[-1] > 0


def test_a_task_of_the_driver_that_is_cancelled_ends_the_run(tmp_path: Path) -> None:
    runtime = ray.RayRuntime(1, Events(), directory=tmp_path, cells=HERE)

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        await runtime.launch([spec("local", "Echo")])
        await runtime.begin()
        runtime._fleet.spawn(cancelled(), "the supervision of cell a")
        await runtime.run_until(1000 * SECOND_NS)

    with pytest.raises(SimulationError, match="the supervision of cell a was cancelled"):
        runtime.run(main())
