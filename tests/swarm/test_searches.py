"""``kemu fuzz`` from beginning to end: what it finds, what it leaves, and that jobs make no difference."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from kemu.emulated.controllers.workloads.deployments import deployments
from kemu.lab.fuzz import campaigns, fresh, relations, trials
from kemu.lab.scenario.loading import loader

SMALL = {"room": "ample", "fault": "-", "second_fault": "-", "deployment": "rolling", "timing": "-"}


def search(tmp_path: Path, **options: Any) -> tuple[campaigns.Search, list[trials.Record]]:
    with campaigns.Search(campaigns.Options(tmp_path, pinned=SMALL, **options)) as made:
        return made, list(made.go())


@pytest.mark.thorough
def test_jobs_make_no_difference(tmp_path: Path) -> None:
    found = []
    for jobs in (1, 2):
        made, records = search(tmp_path, seed=4, scenarios=4, jobs=jobs)
        told = [(each.number, each.events, each.kinds, each.relation, each.is_compared) for each in records]
        found.append((told, made.coverage.data()))
    assert found[0] == found[1]


def test_what_fails_is_left_as_a_small_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug that every scenario with a Deployment shows: its controller breaks."""

    async def broken(self: Any, key: str) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(deployments.DeploymentController, "_sync", broken)
    pins = [word for name, level in SMALL.items() for word in ("--with", f"{name}={level}")]
    words = ["fuzz", "--seed", "1", "--only", "1", "--jobs", "1", "--out", str(tmp_path), "--json", *pins]
    assert main(words) == 1
    told = json.loads(capsys.readouterr().out)
    (failure,) = told["failures"]
    assert failure["id"] == "the-run-broke"
    assert failure["command"] == f"kemu run {failure['file']}"
    scenario = loader.load(Path(failure["file"]), None, {})
    assert len(scenario.nodes) == 1
    assert not scenario.chaos
    assert "Deployment" in [one.message.DESCRIPTOR.name for one in scenario.setup]
    assert main(["fuzz", failure["file"]]) == 1
    assert "planted" in capsys.readouterr().out
    assert main(["run", failure["file"], "--out", str(tmp_path / "run")]) not in (0, 2)
    monkeypatch.undo()
    assert main(["fuzz", failure["file"]]) == 0


INTERRUPTED = """
import itertools, signal, sys
from kemu.doors.cli.main import main
from kemu.emulated.controllers.workloads.deployments import deployments
from kemu.lab.fuzz import campaigns

async def broken(self, key):
    raise ValueError("planted")

deployments.DeploymentController._sync = broken
take = campaigns.Search._take
def interrupted(self, number, finding):
    take(self, number, finding)
    signal.raise_signal(signal.SIGINT)
campaigns.Search._take = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupted_search_keeps_what_it_has_found(tmp_path: Path) -> None:
    pins = [word for name, level in SMALL.items() for word in ("--with", f"{name}={level}")]
    words = ["fuzz", "--seed", "1", "--first", "1", "--jobs", "1", "--out", str(tmp_path), "--json", *pins]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 130, done.stderr
    told = json.loads(done.stdout)
    assert told["coverage"]["levels"]["met"]
    assert [failure["id"] for failure in told["failures"]] == ["the-run-broke"]
    assert Path(told["failures"][0]["file"]).exists()


def test_the_scenario_of_a_number_can_be_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["fuzz", "--seed", "3", "--only", "7", "--show"]) == 0
    file = tmp_path / "shown.yaml"
    file.write_text(capsys.readouterr().out)
    assert loader.load(file, None, {}).name == "fuzz-3-7"


@pytest.mark.parametrize(
    "words", [["--show"], ["--with", "fault"], ["--with", "fault=earthquake"], ["missing.yaml"], ["--time", "soon"]]
)
def test_wrong_input(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", *words]) == 2


def test_processes_under_other_hash_seeds_agree() -> None:
    assert fresh.differing(2, [0, 1, 2], SMALL) == []


def test_there_are_relations() -> None:
    assert len(relations.RELATIONS) >= 10
    assert all(one.doc for one in relations.RELATIONS.values())
