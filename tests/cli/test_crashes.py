"""A bug in kemu itself: exit code 4, and a report that a user can send, whatever made the run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu import errors
from kemu.doors.cli.main import main
from kemu.emulated.controllers.disruption import DisruptionController
from kemu.runtime import user_code
from kemu.runtime.runlog import folders

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: budget}
spec:
  seed: 7
  nodes: [{name: n}]
  duration: 20s
  events:
  - {at: 5s, create: {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 1}}}
  - {at: 15s, create: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: main}]}}}
"""

EXPERIMENT = """
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {name: broken}
spec: {scenario: budget.yaml, seeds: 2}
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # A call of None raises in the controller itself: what a test raises would be code of the user.
    monkeypatch.setattr(DisruptionController, "_wanted", None)
    file = tmp_path / "budget.yaml"
    file.write_text(SCENARIO)
    return file


def check_report(file: Path) -> None:
    text = file.read_text()
    for part in ("kemu: ", "python: ", "scenario: budget", "seed: 7", "Traceback", "_wanted", "kind: Scenario"):
        assert part in text, part
    assert "controller/disruption" in text.split("--- the last")[1]


@pytest.mark.parametrize("runtime", ["sim", "wall"])
def test_a_run_leaves_a_report_and_says_where(
    runtime: str, scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["run", str(scenario), "--runtime", runtime, "--speed", "20", "--out", str(out)]) == 4
    check_report(out / folders.CRASH_FILE)
    told = capsys.readouterr().err
    assert "bug in kemu" in told
    assert str(out / folders.CRASH_FILE) in told
    assert main(["run", str(scenario), "--runtime", runtime, "--speed", "20", "--out", str(out), "--json"]) == 4
    data = json.loads(capsys.readouterr().out)
    assert (data["error"], data["report"]) == ("internal", str(out / folders.CRASH_FILE))


def test_kemu_up_leaves_a_report(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "up"
    assert main(["up", str(scenario), "--for", "60s", "--speed", "20", "--out", str(out)]) == 4
    check_report(out / folders.CRASH_FILE)
    assert str(out / folders.CRASH_FILE) in capsys.readouterr().err


def test_a_later_run_takes_the_report_away(scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["run", str(scenario), "--out", str(tmp_path / "run")]) == 4
    monkeypatch.undo()
    assert main(["run", str(scenario), "--out", str(tmp_path / "run")]) == 0
    assert not (tmp_path / "run" / folders.CRASH_FILE).exists()


class InThisProcess:
    """An executor to whose runs the planted bug is known."""

    def __init__(self, jobs: int, limit_s: float = 0) -> None:
        pass

    running = slots = 1

    def run(self, source: Any, tasks: Iterable[Any], *, in_order: bool = True, needs: object = None) -> Iterator[Any]:
        return (task.carry_out(source) for task in tasks)

    def close(self) -> None:
        pass


def test_searches_and_sweeps_leave_a_report(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kemu.lab.exploration.workers.Workers", InThisProcess)
    out = tmp_path / "search"
    assert main(["explore", str(scenario), "--runs", "2", "--jobs", "1", "--no-shrink", "--out", str(out)]) == 4
    (report,) = out.glob(f"*/*/{folders.CRASH_FILE}")
    check_report(report)
    assert str(report) in capsys.readouterr().err
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    out = tmp_path / "sweep"
    assert main(["sweep", str(tmp_path / "experiment.yaml"), "--jobs", "1", "--no-plots", "--out", str(out)]) == 4
    assert "_wanted" in (out / folders.CRASH_FILE).read_text()
    assert str(out / folders.CRASH_FILE) in capsys.readouterr().err


def test_a_command_without_a_run_leaves_a_report_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kemu.doors.cli.commands.runs.scenarios.catalog", None)
    assert main(["scenarios", "list"]) == 4
    report = Path(capsys.readouterr().err.split(": ")[-1].strip())
    assert "AttributeError" in report.read_text()
    report.unlink()


def test_a_failure_in_another_process_is_still_told_from_one_that_was_meant() -> None:
    for error, kind in (
        (KeyError("x"), errors.ActorCrashed),
        (errors.NotFound("x"), errors.ActorCrashed),
        (errors.KemuError("x"), errors.ActorFailed),
        (OSError(28, "x"), errors.ActorFailed),
    ):
        assert type(user_code.from_text(str(user_code.failed("store/0 failed", error)))) is kind
