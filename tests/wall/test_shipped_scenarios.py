"""Shipped scenarios on the runtime ``wall``: the same actors and faults, the same expectations."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.errors import KemuError
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.runlog import folders

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.parametrize("name", ["chaos/killed-cells", "chaos/store-crash", "chaos/scheduler-pause"])
def test_it_holds(name: str, tmp_path: Path) -> None:
    scenario = loader.load(SCENARIOS / f"{name}.yaml")
    result = runner.run(scenario, runner.Options(out=tmp_path / "run", runtime="wall", speed=40))
    assert result.verdict["verdict"] == "holds", result.verdict["headline"]
    assert result.verdict["runtime"] == "wall"
    assert result.verdict["counts"]["pods_bound"] > 0
    assert (tmp_path / "run" / folders.VERDICT_FILE).exists()


@pytest.mark.parametrize("name", ["chaos/lost-renames"])
def test_what_it_cannot_do_is_refused_before_it_begins(name: str, tmp_path: Path) -> None:
    with pytest.raises(KemuError, match="needs --runtime sim"):
        runner.run(loader.load(SCENARIOS / f"{name}.yaml"), runner.Options(out=tmp_path / "run", runtime="wall"))
