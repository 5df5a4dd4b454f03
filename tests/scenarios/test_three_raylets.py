"""One run over three raylets, in which processes are killed and come back."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import heartbeats, judging, plans, plays, runner
from kemu.runtime.runlog.frames import FILE_NAME, Writer
from tests.ray import clusters
from tests.scenarios.test_shipped import failures

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: three-raylets}
spec:
  duration: 10m
  nodes: [{namePrefix: node-, count: 50, allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}]
  schedulers: [{name: red}, {name: blue}]
  workloads:
    - name: red
      arrivals: {every: 250ms, until: 60s}
      pods: {spec: {schedulerName: red, containers: [{name: main, resources: {requests: {cpu: 500m}}}]}}
    - name: blue
      arrivals: {every: 250ms, until: 60s}
      pods: {spec: {schedulerName: blue, containers: [{name: main, resources: {requests: {cpu: 500m}}}]}}
  expect:
    - {pods: {workload: red}, all: {bound: {}}}
    - {pods: {workload: blue}, all: {bound: {}}}
    - {pods: {workload: red}, all: {running: {}}}
    - {pods: {workload: blue}, all: {running: {}}}
"""


@pytest.fixture
def address() -> Iterator[str]:
    """Three raylets on this machine, each offering a resource by which cells choose it."""
    with clusters.raylets([{"control": 8}, {"schedulers": 8}, {"kubelets": 8}]) as found:
        yield found


def parent(pid: int) -> int:
    """The process that started this one: of a cell, its raylet."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def test_killed_cells_come_back_and_nothing_acknowledged_is_lost(address: str, tmp_path: Path) -> None:
    from kemu.runtime.ray.driver.plans import DRIVER_CELL, CellPlan
    from kemu.runtime.ray.driver.runtime import RayRuntime

    plan = (
        CellPlan("control", ("store", "apiserver/*"), resources={"control": 1}),
        CellPlan("schedulers", ("scheduler/*",), resources={"schedulers": 1}),
        CellPlan("kubelets", ("kubelet/*",), size=25, resources={"kubelets": 1}),
        CellPlan(DRIVER_CELL, ("*",)),
    )
    scenario = loader.loads(SCENARIO)
    writer = Writer(tmp_path / FILE_NAME, {"runtime": "ray"})
    recorder = plays.Recorder(writer.append, scenario)
    runtime = RayRuntime(
        1,
        recorder,
        directory=tmp_path / "cells",
        speed=4,
        cells=plan,
        code=plans.code(scenario),
        ray_address=address,
        interface="127.0.0.1",
    )
    killed: dict[str, tuple[int, int]] = {}
    raylets: dict[str, int] = {}

    async def kill(cell: str) -> None:
        before = runtime.cells[cell]
        os.kill(before.pid, signal.SIGKILL)
        async with asyncio.timeout(120):
            while runtime.cells[cell].pid == before.pid:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        killed[cell] = (before.pid, runtime.cells[cell].pid)

    async def main() -> judging.End:
        async def break_things() -> None:
            await runtime.clock.started()
            raylets.update({name: parent(endpoint.pid) for name, endpoint in runtime.cells.items()})
            await runtime.clock.sleep(15)
            await kill("kubelets")
            await runtime.clock.sleep(10)
            await kill("control")

        breaking = asyncio.create_task(break_things())
        end = await plays.drive(runtime, scenario, recorder, heartbeats.Heartbeats(scenario, "ray"))
        await breaking
        return end

    try:
        end = runtime.run(main())
    finally:
        writer.close()
    verdict = runner.judge(scenario, tmp_path, end).data("ray", "")
    assert set(killed) == {"kubelets", "control"}
    assert len({raylets["control"], raylets["schedulers"], raylets["kubelets"]}) == 3, raylets
    assert raylets["kubelets"] == raylets["kubelets-1"]
    assert verdict["verdict"] == "holds", failures(verdict)
    checks = {found["id"]: found["detail"] for found in verdict["checks"]}
    assert "1 recovery" in checks["acknowledged-writes-survive"]
