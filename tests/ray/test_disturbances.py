"""What happens to the processes of a run stands in its log, whoever did it."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from pathlib import Path

import pytest

from kemu.errors import SimulationError
from kemu.lab.checks.history import History
from kemu.lab.checks.history.disturbances import Disturbance
from kemu.lab.scenario import headlines
from kemu.runtime.env import SECOND_NS
from kemu.runtime.host.segments import Segment
from kemu.runtime.host.ticks import Account, judged
from kemu.runtime.ray.driver import cells
from kemu.runtime.ray.driver.clusters import RayCluster
from kemu.runtime.ray.driver.runtime import RayRuntime
from tests.ray.world import CODE, PLAN, Events, spec, until


@pytest.mark.ray
def test_deaths_and_stops_are_told_with_whose_doing_they_were(local_ray: RayCluster, tmp_path: Path) -> None:
    events = Events()
    runtime = RayRuntime(1, events, directory=tmp_path, cells=PLAN, code=CODE)

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("keeper/0", "Keeper"), spec("lonely/0", "Echo")])
        await runtime.begin()
        await runtime.clock.started()
        first = {name: endpoint.pid for name, endpoint in runtime.cells.items()}
        os.kill(first["one"], signal.SIGKILL)
        os.kill(first["two"], signal.SIGSTOP)
        await asyncio.sleep(1.2)
        os.kill(first["two"], signal.SIGCONT)
        await runtime.pause("lonely/0")
        await asyncio.sleep(1.0)
        await runtime.resume("lonely/0")
        await until(lambda: len(events.of("actor.started", "echo/0")) == 2)
        await runtime.crash("lonely/0")
        await runtime.restart("lonely/0")
        await until(lambda: len(events.of("actor.started", "lonely/0")) == 2)
        await runtime.inject("k", "kill", {"process": ["cell/one"], "wholeNodes": False})
        await runtime.inject("s", "stop", {"process": ["cell/two"], "wholeNodes": False})
        # As long as a process stands still, the order of what comes from the others is open.
        await asyncio.sleep(1.0)
        assert await runtime.heal("s") == 1
        await until(lambda: len(events.of("actor.started", "echo/0")) == 3)
        # This Ray was not started for the run.
        for name in ("raylet/0", "gcs", "raylet/*"):
            with pytest.raises(SimulationError, match="not started for this run"):
                runtime.processes(name)
        assert sorted(runtime.processes("cell/*")) == ["cell/alone", "cell/one", "cell/two"]
        await runtime.clock.sleep(0.5)
        await runtime.shutdown()

    runtime.run(main())
    history = History()
    for event in events:
        history.feed(*event)
    # A busy machine may have more to tell; of these things it must be exactly that.
    told = [one for one in history.disturbances if one.what != "lagged"]
    assert sorted((one.process, one.what, one.by) for one in told) == [
        ("cell/alone", "died", "crash of lonely/0"),
        ("cell/alone", "stopped", "pause of lonely/0"),
        ("cell/one", "died", ""),
        ("cell/one", "died", "k"),
        ("cell/two", "stopped", ""),
        ("cell/two", "stopped", "s"),
    ]
    assert all(one.end_ns is not None for one in told)
    stopped = next(one for one in told if one.process == "cell/two")
    assert stopped.end_ns is not None
    assert 1.1 <= (stopped.end_ns - stopped.begin_ns) / SECOND_NS <= 3.0


def _passed(late_s: float, ran_s: float, queued_s: float) -> Account:
    return Account(*(round(value * SECOND_NS) for value in (0.1 + late_s, ran_s, queued_s)))


def test_who_uses_or_waits_for_a_cpu_lags_and_who_does_neither_was_stopped() -> None:
    assert judged(_passed(3.0, 0.0, 0.1)) == "stopped"
    assert judged(_passed(3.0, 2.9, 0.0)) == "lagged"
    assert judged(_passed(3.0, 0.2, 2.7)) == "lagged"
    assert judged(_passed(1.0, 0.2, 0.7)) == ""
    assert judged(_passed(0.4, 0.0, 0.0)) == ""


def test_the_headline_counts_what_came_from_outside() -> None:
    inside = Disturbance("cell/store", "died", 1, 2, by="crash of store")
    outside = [Disturbance("cell/store", "died", 1, 2), Disturbance("gcs", "died", 5)]
    outside.append(Disturbance("etcd", "stopped", 3))
    assert headlines.disturbed([inside]) == []
    assert headlines.disturbed([inside, *outside]) == [
        "from outside, processes died 2 times and stopped 1 time",
        "etcd stood still until the end: what stopped it (SIGSTOP, a debugger) did not let it go on",
    ]


def test_a_full_disk_is_one_sentence_of_all_that_ray_tells(tmp_path: Path) -> None:
    traceback = "The actor died because of an error raised in its creation task\n  File x, line 1, in __init__\n"
    told = f"{traceback}OSError: [Errno 28] No space left on device: '/runs/cells/logs/store-1-2.segment'"
    what = "No space left on device: '/runs/cells/logs/store-1-2.segment'"
    assert cells._reason(told) == f"{what}: free some space, or choose another folder with --out"
    assert cells._reason(f"{traceback}KeyError: 'a'") == f"{traceback}KeyError: 'a'", "a bug keeps its traceback"


def test_the_error_of_a_full_disk_names_the_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"a\.segment"):
        Segment(tmp_path / "a.segment")
