"""Thirty manifests as users write them: they load, and a cluster runs them for a day, with faults and rollouts.

Here the day is half an hour long: what the scenario does at 16h comes after 20 minutes. By night it is whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.emulated.settings import values
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner

FOLDER = Path(__file__).parents[2] / "examples" / "manifests"
DAY = FOLDER / "scenario.yaml"
LENGTHS = ("half an hour", pytest.param("day", marks=pytest.mark.nightly("minutes of computing")))


def shortened(data: Any) -> Any:
    """The day in half an hour; what lasts a time lasts a 48th of it."""
    spec = data["spec"]
    spec["duration"] = "30m"
    for item in (*spec["events"], *spec["chaos"]):
        for key in ("at", "for"):
            if key in item:
                item[key] = f"{max(1, values.duration_ns(item[key]) // 48_000_000_000)}s"
    # Fewer things happen.
    spec["expect"] = [each for each in spec["expect"] if not each["id"].startswith("in-a-day-")]
    return data


def test_there_are_thirty_and_all_of_them_are_loaded() -> None:
    files = sorted(path.name for path in FOLDER.glob("[0-9]*.yaml"))
    named = [item["file"] for item in yaml.safe_load(DAY.read_text())["spec"]["manifests"]]
    assert named == files
    assert len(files) == 30


@pytest.mark.slow
@pytest.mark.parametrize("length", LENGTHS)
def test_a_cluster_runs_them(length: str, tmp_path: Path) -> None:
    data = yaml.safe_load(DAY.read_text())
    scenario = loader.of_data(shortened(data) if length != "day" else data, str(DAY))
    verdict = runner.run(scenario, runner.Options(out=tmp_path)).verdict
    # A batch pod may wait for GPUs for long; nobody asks for the detector of that.
    wrong = [each for each in verdict["expectations"] if each["holds"] is not True]
    wrong += [each for each in verdict["checks"] if each["asked"] and each["holds"] is False]
    assert not wrong
    assert verdict["verdict"] == "holds"
