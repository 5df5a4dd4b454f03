"""kemu.explore: runs that fail are found, run again, shrunk and explained from Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kemu
from kemu.errors import KemuError, ScenarioError
from kemu.lab.scenario import catalog
from tests.samples import one_in

RACE = "races/two-schedulers-one-node"
SURPRISED = [{"id": "red-is-bound", "pod": "red-pod", "bound": {}}]
"""Holds unless scheduler red hears of what blue has done."""
PATH = {**os.environ, "PYTHONPATH": str(Path(kemu.__file__).parents[1])}
SETTINGS: dict[str, Any] = {"expect": SURPRISED}


def explore(**arguments: Any) -> kemu.Exploration:
    return kemu.explore(RACE, settings=SETTINGS, **arguments)


def test_what_is_found_is_run_again_shrunk_and_explained() -> None:
    counted: list[int] = []
    exploration = explore(runs=30, strategy="observe-late", failures=1, progress=counted.append)
    assert (exploration.verdict, exploration.holds) == ("fails", False)
    assert counted == list(range(1, exploration.runs + 1))
    (failure,) = exploration.failures
    assert (failure.check, failure.strategy, failure.runs[0]) == ("red-is-bound", "observe-late", exploration.runs - 1)
    run = failure.run()
    assert [finding.id for finding in run.failures] == ["red-is-bound"]
    assert kemu.run(failure.yaml).digest == run.digest, "it stands alone"
    small = failure.shrink()
    assert (small.pods, small.nodes, small.messages, small.minimal) == (2, 1, 1, True)
    assert [finding.id for finding in kemu.run(small.yaml).failures] == ["red-is-bound"]
    assert "1. The news that blue-pod was created reached scheduler red only after" in small.explain()
    with pytest.raises(kemu.RunFailed, match="✗ red-is-bound: "):
        exploration.check()


def test_equal_searches_find_the_same_with_one_job_or_two() -> None:
    one, two = (explore(runs=24, jobs=jobs, seed=3) for jobs in (1, 2))
    assert [record.digest for record in one.records] == [record.digest for record in two.records]
    assert [repr(failure) for failure in one.failures] == [repr(failure) for failure in two.failures]
    assert {name: data["runs"] for name, data in one.strategies.items()} == dict.fromkeys(one.strategies, 3)


def test_a_search_that_finds_nothing_holds() -> None:
    exploration = explore(runs=5, strategy=["seeds"])
    assert (exploration.verdict, exploration.runs, exploration.failures) == ("holds", 5, ())
    exploration.check()
    assert exploration.data["runs"] == 5


def test_what_never_happened_is_told() -> None:
    late = [{"id": "late", "pods": {"workload": "web"}, "all": {"running": {"before": "25s"}}}]
    spec = {
        "nodes": [{"name": "n"}],
        "duration": "20s",
        "timing": {"podStart": "3s"},
        "workloads": [
            {"name": "web", "arrivals": {"every": "1s"}, "pods": {"spec": {"containers": [{"name": "m"}]}}},
        ],
        "expect": late,
    }
    exploration = kemu.explore(spec, runs=2, strategy="seeds")
    assert (exploration.verdict, exploration.unseen) == ("unknown", ["expectation late"])
    with pytest.raises(kemu.RunFailed, match="unknown after 2 runs: expectation late"):
        exploration.check()


def test_a_search_can_be_taken_up_again(tmp_path: Path) -> None:
    first = explore(runs=3, strategy="seeds", out=tmp_path)
    seen: list[int] = []
    second = explore(runs=6, strategy="seeds", out=tmp_path, progress=seen.append)
    assert second.runs == 6
    assert [record.digest for record in second.records[:3]] == [record.digest for record in first.records]


FIRST_FIT = Path(__file__).resolve().parents[2] / "examples" / "schedulers" / "first-fit.yaml"


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.nightly("equal to that with two jobs")), 2])
def test_a_scheduler_of_ones_own_is_explored_and_what_is_found_stands_alone(jobs: int, tmp_path: Path) -> None:
    once = [{"id": "once", "counter": "admissions_rejected", "equals": 0}]
    settings = {"schedulers[0].config.transactions": False, "expect": once}
    exploration = kemu.explore(FIRST_FIT, runs=4, jobs=jobs, settings=settings, failures=1)
    (failure,) = exploration.failures
    assert failure.check == "once"
    small = failure.shrink()
    assert (small.pods, small.nodes, small.minimal) == (2, 1, True)
    (tmp_path / "small.yaml").write_text(small.yaml)
    command = [sys.executable, "-m", "kemu.doors.cli.main", "run", "small.yaml", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=PATH, check=False)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (1, "fails"), done.stderr


def test_with_its_transactions_it_gives_no_room_away_twice() -> None:
    once = [{"id": "once", "counter": "admissions_rejected", "equals": 0}]
    kemu.explore(FIRST_FIT, runs=24 // one_in(3), settings={"expect": once}).check()


def test_mistakes() -> None:
    with pytest.raises(KemuError, match="no strategy is called luck"):
        explore(strategy="luck", runs=1)
    with pytest.raises(ScenarioError, match="schedulerz"):
        kemu.explore(RACE, settings={"schedulerz": []}, runs=1)
    with pytest.raises(KemuError, match="has a matrix"):
        kemu.explore(catalog.find("seeds/starvation"), runs=1)


def test_a_run_that_holds_has_nothing_to_explain() -> None:
    with pytest.raises(KemuError):
        kemu.run(RACE).explain()
