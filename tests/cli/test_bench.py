"""``kemu bench``: what a command line measures, and that each workload of the scheduler comes to its end."""

from __future__ import annotations

import json
import time

import pytest

from kemu.doors.cli.main import main
from kemu.lab.bench import cells, explorations, workloads
from kemu.lab.bench.schedulers import cliffs, decisions, scheduling
from kemu.lab.exploration import branches
from kemu.lab.exploration.processes import forks
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.workers import Inline
from kemu.lab.scenario.loading import loader


def test_one_workload_in_a_size_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "decide", "--workload", "basic", "--nodes", "64", "--pods", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["decide"]
    assert [(one["nodes"], one["workload"], one["pods"], one["distinct"]) for one in found] == [
        (64, "basic", 3, False),
        (64, "basic", 3, True),
    ]
    assert all(one["us_median"] > 0 for one in found)
    assert all(one["calibration_python_ms"] > 0 < one["calibration_numpy_ms"] for one in found)


def test_throughput_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "schedule", "--workload", "SchedulingBasic", "--nodes", "20", "--pods", "3"]) == 0
    assert "left out against a real cluster: no kubelets" in capsys.readouterr().out


@pytest.mark.thorough
def test_several_numbers_of_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--nodes", "20,40"]
    assert main(["bench", "schedule", "--workload", "SchedulingBasic", *sizes, "--pods", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["schedule"]
    assert [(one["nodes"], one["pods"]) for one in found] == [(20, 3), (40, 3)]


@pytest.mark.thorough
def test_several_numbers_of_schedulers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "racing", "--nodes", "3", "--pods", "2", "--schedulers", "2,3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["racing"]
    assert [(one["nodes"], one["pods"], one["schedulers"]) for one in found] == [(3, 2, 2), (3, 2, 3)]
    assert all(one["cpu_ms_per_attempt"] > 0 < one["calls_per_attempt"] for one in found)
    assert all(one["launched_mib"] > 0 < one["calibration_python_ms"] for one in found)


@pytest.mark.thorough
def test_commands_on_the_log_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "trace", "--nodes", "2", "--pods", "5", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["trace"]
    assert found["pods"] == 5
    assert all(found[name] > 0 for name in ("log_mib", "run_s", "trace_s", "trace_without_index_s", "story_s"))


@pytest.mark.parametrize("text", ["", "5,,6", "many", "0"])
def test_numbers_of_nodes_that_are_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "decide", "--nodes", text]) == 2
    assert "not numbers above 0" in capsys.readouterr().err


def test_a_workload_that_does_not_exist_names_those_that_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "schedule", "--workload", "Nothing"]) == 2
    assert "SchedulingBasic" in capsys.readouterr().err


@pytest.mark.parametrize("workload", decisions.WORKLOADS)
def test_decisions_of_every_workload(workload: str) -> None:
    assert decisions.decide(50, workload, 5, distinct=True)["us_median"] > 0


@pytest.mark.parametrize("workload", scheduling.WORKLOADS)
def test_every_pod_of_every_workload_is_bound(workload: str) -> None:
    assert scheduling.schedule(workload, 50, 40)["pods_per_s"] > 0


@pytest.mark.parametrize("variant", scheduling.PREEMPTIONS)
def test_every_pod_on_a_full_cluster_preempts_three(variant: str) -> None:
    figures = scheduling.schedule(scheduling.PREEMPTION, 20, 20, variant)
    assert (figures["preemptions"], figures["victims"]) == (20, 60)


@pytest.mark.parametrize("workload", cliffs.WORKLOADS)
def test_what_grows_beside_the_decisions(workload: str) -> None:
    assert cliffs.cliff(workload, 510, 10)["cpu_us_median"] > 0


def test_every_cliff_is_shown_at_two_sizes() -> None:
    sizes = {one["workload"]: set() for one in cliffs.settings()}
    for one in cliffs.settings():
        sizes[one["workload"]].add(one["size"])
    assert all(len(different) == 2 for different in sizes.values())


@pytest.mark.parametrize("controller", workloads.SIZES)
def test_a_changed_pod_is_reported_by_its_controller(controller: str) -> None:
    assert workloads.changed_pod(controller, 20, 10)["us_median"] > 0


@pytest.mark.nightly("ten seconds; tests/exploration/test_branches.py compares cells by day")
def test_cells_from_one_set_up_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "LEAST_NODES", 1)
    monkeypatch.setattr(forks, "_allowed", [])
    figures = cells.cells(5)
    assert figures["cells"] == 6
    assert figures["ratio"] > 0


def test_runs_from_one_set_up_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_allowed", [])
    assert explorations.shared(1, 2, 2)["ratio"] > 0
    monkeypatch.setattr(branches, "carried_out", lambda *_: None)
    with pytest.raises(SystemExit, match="differ"):
        explorations.shared(1, 2, 2)


def test_what_a_process_does_beside_its_runs_is_measured() -> None:
    source = Source.of(loader.loads(explorations.scenario_text(1, 2, "steered")))
    begun_s = time.process_time()
    spent = explorations.spent_by(Inline(), source, 0, 6)
    all_s = time.process_time() - begun_s
    assert spent.runs == 5
    assert 0.5 * all_s < spent.in_runs_s + all_s / 6 < 1.1 * all_s
    assert spent.in_runs_s < spent.total_s < all_s
    assert 0 < spent.beside_percent < 50
