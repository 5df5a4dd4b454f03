"""Scenarios hold with the times of a real cluster, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.cli import catalog
from kemu.scenario.loading import loader
from kemu.scenario.playing import runner


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "name",
    [
        "chaos/apiserver-crash",
        "chaos/graceful-shutdown",
        "chaos/kubelet-partition",
        "chaos/machine-crash",
        "chaos/scheduler-crash",
        "chaos/store-crash",
        "races/two-replicas-same-pods",
    ],
)
def test_holds_with_realistic_times(name: str, seed: int, tmp_path: Path) -> None:
    scenario = loader.load(catalog.find(name), None, {"timing": "realistic", "seed": seed})
    verdict, _ = runner.run_all(scenario, runner.Options(out=tmp_path / "run", runtime="sim"))
    assert verdict["verdict"] == "holds", [one for one in verdict["checks"] if one["holds"] is False]
