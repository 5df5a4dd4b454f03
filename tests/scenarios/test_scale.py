"""The scenarios of the largest clusters, scaled down; the nightly runs them at full size."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.lab.bench.clusters import large_clusters
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner


def test_all_of_them_are_measured() -> None:
    shipped = {name.partition("/")[2] for name in catalog.shipped() if name.startswith(f"{large_clusters.FOLDER}/")}
    assert shipped == set(large_clusters.WORKLOADS)


@pytest.mark.parametrize(("workload", "nodes"), [("largest-cluster", 400), ("mass-preemption", 200)])
def test_holds(workload: str, nodes: int, tmp_path: Path) -> None:
    path = catalog.find(f"{large_clusters.FOLDER}/{workload}")
    scenario = loader.load(path, None, large_clusters.scaled(path, nodes))
    assert len(scenario.nodes) == nodes
    verdict = runner.run(scenario, runner.Options(out=tmp_path / "run")).verdict
    assert verdict["verdict"] == "holds", verdict["headline"]
    assert verdict["counts"]["pods_bound"] >= 0.6 * nodes
    if workload == "mass-preemption":
        assert verdict["counts"]["preemptions"] == 0.3 * nodes


def test_with_the_time_that_was_measured_for_each_node_it_would_take_hours(tmp_path: Path) -> None:
    """As the description of the scenario says. 130,000 nodes of 1.4 us each take as long as 200 of 910 us."""
    path = catalog.find("scale/mass-preemption")
    slow = {"timing.schedulingCycle.perNode": "910us"}
    scenario = loader.load(path, None, {**large_clusters.scaled(path, 200), **slow})
    verdict = runner.run(scenario, runner.Options(out=tmp_path / "run")).verdict
    assert verdict["counts"]["preemptions"] == 60
    shutdown_s = 5
    assert (verdict["waiting"]["1000"]["max_s"] - shutdown_s) / 60 * 39_000 > 1.9 * 3600
