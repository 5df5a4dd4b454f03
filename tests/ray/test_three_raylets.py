"""Cells pinned to the nodes of a Ray cluster: three raylets on this machine, as in docs/ray-cluster.md."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.errors import InfrastructureError
from kemu.runtime.env import SECOND_NS
from kemu.runtime.ray.driver.clusters import RayCluster
from kemu.runtime.ray.driver.plans import DRIVER_CELL, CellPlan
from kemu.runtime.ray.driver.runtime import RayRuntime
from tests.ray import clusters
from tests.ray.world import CODE, Events, nothing_left, spec, until

pytestmark = pytest.mark.ray

PLAN = (
    CellPlan("control", ("echo/*",), resources={"node-a": 1}),
    CellPlan("schedulers", ("far/*",), resources={"node-b": 1}),
    CellPlan("kubelets", ("keeper/*",), size=2, resources={"node-c": 1}),
    CellPlan(DRIVER_CELL, ("*",)),
)


@pytest.fixture(scope="module")
def three_raylets() -> Iterator[str]:
    with clusters.raylets([{"node-a": 8}, {"node-b": 8, "kemu-named": 1}, {"node-c": 8}]) as address:
        yield address


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_cells_live_where_the_plan_says(three_raylets: str, tmp_path: Path) -> None:
    """Each kind on a raylet of its own, also after a kill; and the cluster goes on without them."""
    events = Events()
    runtime = RayRuntime(1, events, directory=tmp_path, speed=10, cells=PLAN, code=CODE, ray_address=three_raylets)
    pids: list[int] = []

    async def main() -> None:
        await runtime.launch([spec("echo/0", "Echo"), spec("far/0", "Streamer", to="echo/0")])
        await runtime.launch([spec(f"keeper/{number}", "Keeper") for number in range(3)])
        await runtime.begin()
        cells = runtime.cells
        pids.extend(endpoint.pid for endpoint in cells.values())
        raylet = {name: parent(endpoint.pid) for name, endpoint in cells.items()}
        assert set(raylet) == {"control", "schedulers", "kubelets", "kubelets-1"}
        assert len({raylet[name] for name in ("control", "schedulers", "kubelets")}) == 3
        assert raylet["kubelets-1"] == raylet["kubelets"]

        await until(lambda: events.of("streamer.answer"))
        os.kill(cells["control"].pid, signal.SIGKILL)
        await until(lambda: runtime.cells["control"].pid not in pids)
        pids.append(runtime.cells["control"].pid)
        assert parent(pids[-1]) == raylet["control"]
        answers = len(events.of("streamer.answer"))
        await until(lambda: len(events.of("streamer.answer")) > answers)
        await runtime.run_until(runtime.clock.now_ns() + SECOND_NS)
        await runtime.shutdown()

    with nothing_left(pids):
        runtime.run(main())
    assert events.of("actor.started", "echo/0") == [{"incarnation": 1}, {"incarnation": 2}]
    assert len(events.of("actor.stopped")) == 5


def test_a_cell_goes_where_a_resource_of_its_name_is_offered(
    three_raylets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the environment says which cluster it is, as for all of Ray."""
    monkeypatch.setenv("RAY_ADDRESS", three_raylets)
    events = Events()
    plan = (
        CellPlan("pinned", ("keeper/*",), resources={"node-b": 1}),
        CellPlan("named", ("echo/*",), size=1),
    )
    runtime = RayRuntime(1, events, directory=tmp_path, cells=plan, code=CODE)

    async def main() -> None:
        await runtime.launch([spec(name, "Echo") for name in ("keeper/0", "echo/0", "echo/1", "echo/2")])
        assert len({parent(endpoint.pid) for endpoint in runtime.cells.values()}) == 1
        assert set(runtime.cells) == {"pinned", "named", "named-1", "named-2"}
        await runtime.shutdown()

    runtime.run(main())
    assert len(events.of("actor.stopped")) == 4


def test_a_file_of_a_node_is_fetched(three_raylets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces; and where there is none, it is told."""
    monkeypatch.setattr("kemu.runtime.ray.driver.clusters._PIECE", 1000)
    data = bytes(range(256)) * 10
    (tmp_path / "there").write_bytes(data)
    node, _ = three_raylets.split(":")
    with RayCluster(three_raylets) as cluster:
        cluster.fetch(node, str(tmp_path / "there"), tmp_path / "new" / "here")
        assert (tmp_path / "new" / "here").read_bytes() == data
        with pytest.raises(InfrastructureError, match="No such file or directory: '/nowhere'"):
            cluster.fetch(node, "/nowhere", tmp_path / "nothing")
        with pytest.raises(InfrastructureError, match=r"the Ray cluster has no node at 10\.9\.9\.9"):
            cluster.fetch("10.9.9.9", "/nowhere", tmp_path / "nothing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "there"]
