"""A run that loses Ray, or is told to end, says what it knows, exits as documented, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu.runtime.ray import processes
from kemu.runtime.ray.driver.plans import DRIVER_CELL, CellPlan
from kemu.runtime.ray.driver.runtime import RayRuntime
from tests.ray import clusters
from tests.ray.world import CODE, Events, alive, no_more_shared_memory, shared_memory, spec, until, until_true

pytestmark = [pytest.mark.ray, pytest.mark.slow]

REPOSITORY = Path(__file__).parents[2]
WAIT_S = 200
SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: long}
spec:
  duration: 1h
  nodes: [{name: a, allocatable: {cpu: "1", memory: 1Gi}}]
  workloads:
    - {name: early, arrivals: {every: 1s, count: 1}, pods: {spec: {containers: [{name: main}]}}}
    - {name: late, start: 30m, arrivals: {every: 1s, count: 1}, pods: {spec: {containers: [{name: main}]}}}
  expect:
    - {pods: {workload: early}, all: {running: {}}}
    - {pods: {workload: late}, all: {running: {}}}
"""


class Run:
    """``kemu run`` in a process group of its own, with a temporary folder of its own."""

    def __init__(self, folder: Path, scenario: str = SCENARIO, **environment: str) -> None:
        (folder / "long.yaml").write_text(scenario)
        self.out = folder / "run"
        self.temporary = folder / "t"
        self.temporary.mkdir()
        self._shared_memory = shared_memory()
        command = [sys.executable, "-m", "kemu.doors.cli.main", "run", str(folder / "long.yaml"), "--runtime", "ray"]
        settings = {"TMPDIR": str(self.temporary), "XDG_STATE_HOME": str(folder), **environment}
        self.process = subprocess.Popen(
            [*command, "--speed", "5", "--json", "--out", str(self.out)],
            cwd=REPOSITORY,
            env={**{name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pids: list[int] = []
        """Of all processes that it had when ``members`` was last called."""

    def members(self) -> dict[str, int]:
        """Pid by name."""
        found = processes.descendants(self.process.pid)
        self.pids = [self.process.pid, *(each.pid for each in found)]
        return {processes.name(each): each.pid for each in found}

    def is_under_way(self) -> bool:
        """The first pod runs."""
        assert self.process.poll() is None, self.process.communicate()
        segments = (self.out / "cells" / "logs").glob("kubelets-*")
        return any(b"kubelet.running" in segment.read_bytes() for segment in segments)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> tuple[int, Any]:
        out, err = self.process.communicate(timeout=WAIT_S)
        assert err == "", "neither Ray nor Python has anything to say"
        until_true(lambda: not [pid for pid in self.pids if alive(pid)], timeout_s=10)
        assert list(self.temporary.iterdir()) == []
        no_more_shared_memory(self._shared_memory)
        return self.process.returncode, json.loads(out)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(**environment: str) -> Run:
        runs.append(Run(tmp_path, **environment))
        return runs[-1]

    yield start
    for run in runs:
        run.kill()


@pytest.mark.parametrize(
    ("victim", "why"),
    [
        ("gcs_server", "the GCS of Ray"),
        ("raylet", "the raylet of Ray"),
        ("broker", "was ended from outside, by SIGKILL"),
    ],
)
def test_a_run_that_loses_ray_is_unknown(start: Callable[..., Run], victim: str, why: str) -> None:
    run = start()
    until_true(run.is_under_way, timeout_s=WAIT_S)
    time.sleep(1)  # until the API server has heard of it, too
    members = run.members()
    broker = next(child.pid for child in processes.psutil().Process(run.process.pid).children())
    begun = time.monotonic()
    os.kill(broker if victim == "broker" else members[victim], signal.SIGKILL)
    code, verdict = run.end()
    assert time.monotonic() - begun < 30
    assert code == 3
    assert (verdict["verdict"], verdict["ended"]) == ("unknown", "lost")
    assert why in verdict["headline"]
    assert any(why in gap for gap in verdict["incomplete"])
    assert [each["holds"] for each in verdict["expectations"]] == [True, None], "what was seen is judged"
    assert json.loads((run.out / "verdict.json").read_text()) == verdict


def test_a_store_that_is_stopped_for_good_is_named(tmp_path: Path) -> None:
    """It cannot tell of itself; the driver sees it."""
    # Ten real seconds.
    scenario = SCENARIO.replace("duration: 1h", "duration: 50s").replace("start: 30m", "start: 49s")
    run = Run(tmp_path, scenario)
    try:
        until_true(run.is_under_way, timeout_s=WAIT_S)
        (segment,) = (run.out / "cells" / "logs").glob("store-*")
        os.kill(int(segment.name.split("-")[-2]), signal.SIGSTOP)
        run.members()
        _, verdict = run.end()
    finally:
        run.kill()
    found = [(one["process"], one["what"], one["from"]) for one in verdict["disturbances"] if one["what"] == "stopped"]
    assert found == [("cell/store", "stopped", "outside")]
    assert "cell/store stood still until the end" in verdict["headline"]


def terminate(process: subprocess.Popen[Any]) -> None:
    os.kill(process.pid, signal.SIGTERM)


def press_control_c(process: subprocess.Popen[Any]) -> None:
    os.killpg(process.pid, signal.SIGINT)


def test_sigterm_is_like_control_c(start: Callable[..., Run]) -> None:
    run = start()
    until_true(run.is_under_way, timeout_s=WAIT_S)
    run.members()
    terminate(run.process)
    code, told = run.end()
    assert (code, told["error"]) == (130, "interrupted")
    assert told["message"].startswith("interrupted at ")


@pytest.mark.parametrize("interrupt", [terminate, press_control_c])
def test_also_while_ray_starts(start: Callable[..., Run], interrupt: Callable[[subprocess.Popen[Any]], None]) -> None:
    run = start()
    until_true(lambda: "gcs_server" in run.members() or run.process.poll() is not None, timeout_s=WAIT_S)
    begun = time.monotonic()
    interrupt(run.process)
    code, told = run.end()
    assert time.monotonic() - begun < 5, "nobody waits for Ray"
    assert (code, told["message"].split(";")[0]) == (130, "interrupted while the actors started")


def test_a_wrong_address_is_one_sentence(start: Callable[..., Run]) -> None:
    begun = time.monotonic()
    run = start(RAY_ADDRESS="127.0.0.1:9")
    code, told = run.end()
    assert time.monotonic() - begun < 5 + 5, "and Python has to start"
    assert (code, told["error"]) == (2, "input")
    assert told["message"] == "cannot join the Ray cluster at 127.0.0.1:9: Connection refused"


PLAN = (CellPlan("one", ("echo/*",), resources={"place": 1}), CellPlan(DRIVER_CELL, ("*",)))


def test_the_cells_of_a_lost_raylet_come_back_elsewhere(tmp_path: Path) -> None:
    """As if their machine had crashed; what they had logged is there."""
    events = Events()
    with clusters.started([{}, {"place": 1}, {"place": 1}]) as raylets:
        runtime = RayRuntime(1, events, directory=tmp_path, cells=PLAN, ray_address=raylets.address, code=CODE)

        def raylet() -> int:
            """That of the cell."""
            process = processes.of(runtime.cells["one"].pid)
            assert process is not None
            return int(process.parent().ppid())  # the parent has forked it

        async def main() -> None:
            await runtime.launch([spec("echo/0", "Echo")])
            await runtime.begin()
            await runtime.clock.started()
            lost = raylet()
            assert lost in raylets.pids[1:]
            os.kill(lost, signal.SIGKILL)
            await until(lambda: len(events.of("actor.started", "echo/0")) == 2, timeout_s=100)
            assert {lost, raylet()} == {*raylets.pids[1:]}
            await runtime.shutdown()

        runtime.run(main())
    assert len(events.of("actor.crashed", "echo/0")) == 1
    assert len(events.of("actor.stopped", "echo/0")) == 1
    assert not [pid for pid in [*raylets.pids, raylets.gcs] if alive(pid)]
