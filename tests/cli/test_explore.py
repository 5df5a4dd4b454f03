"""``kemu explore``: what it finds, what it says, what it leaves behind, how it exits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from tests.exploration import beds

BED = beds.BEDS["kubelet-admission"]
FAST = ("--jobs", "1")

NEVER_EXERCISED = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: quiet}
spec:
  duration: 5s
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  expect: [{check: voluntary-evictions-respect-budgets, holds: true}]
"""

FAILS_ANYWAY = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: hopeless}
spec:
  duration: 5s
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  expect: [{id: a-pod-comes, counter: pods_created, equals: 1}]
"""


def file_of(folder: Path, text: str, name: str = "scenario.yaml") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def bed_file(folder: Path, *, is_ablated: bool = True) -> str:
    return file_of(folder, beds.scenario(BED, is_ablated=is_ablated).to_yaml())


def explore(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["explore", *arguments, "--json", *FAST])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("found")


@pytest.fixture(scope="module")
def result(folder: Path) -> dict[str, Any]:
    arguments = ["--strategy", "observe-late", "--runs", "60", "--failures", "1", "--out", str(folder / "out")]
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", lambda *words, **_: printed.append(" ".join(map(str, words))))
        assert main(["explore", bed_file(folder), *arguments, "--json", *FAST]) == 1
    return dict(json.loads(printed[-1]))


class TestWhatIsFound:
    @pytest.mark.thorough
    def test_is_told_as_one_object(self, result: dict[str, Any]) -> None:
        assert {"scenario", "runs", "runs_per_s", "strategies", "coverage", "failures", "verdict"} <= set(result)
        assert result["verdict"] == "fails"
        assert set(result["strategies"]["observe-late"]) == {"runs", "found", "median_runs_to_first"}
        (failure,) = result["failures"]
        assert {"id", "cluster", "runs", "seed", "strategy", "command", "shrunk", "because"} <= set(failure)
        assert failure["id"] == BED.check

    def test_is_small(self, result: dict[str, Any]) -> None:
        shrunk = result["failures"][0]["shrunk"]
        assert set(shrunk) == {
            "scenario", "pods", "nodes", "schedulers", "faults", "holds", "events", "executions", "minimal",
            "why_larger",
        }  # fmt: skip
        assert (shrunk["pods"], shrunk["nodes"], shrunk["faults"], shrunk["holds"]) == (2, 1, 0, 1)

    def test_says_why(self, result: dict[str, Any]) -> None:
        sentences = result["failures"][0]["because"]
        assert 2 <= len(sentences) <= 6
        assert BED.check in sentences[-1]

    def test_fails_again_by_its_command(
        self, result: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        failure = result["failures"][0]
        assert failure["verified"]
        file = failure["shrunk"]["scenario"]
        assert failure["command"].endswith(f" run {file}")
        assert main(["run", file, "--json", "--out", str(tmp_path / "run")]) == 1
        verdict = json.loads(capsys.readouterr().out)
        assert [check["id"] for check in verdict["checks"] if check["holds"] is False] == [BED.check]

    def test_is_left_as_it_was_found_too(self, result: dict[str, Any]) -> None:
        folder = Path(result["failures"][0]["shrunk"]["scenario"]).parent
        assert {each.name for each in folder.iterdir()} >= {"scenario.yaml", "whole.yaml", "explanation.txt"}

    def test_is_told_to_people(self, result: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = folder / "people"
        arguments = ["--strategy", "observe-late", "--runs", "60", "--failures", "1", "--out", str(out), *FAST]
        assert main(["explore", str(folder / "scenario.yaml"), *arguments]) == 1
        shown = capsys.readouterr()
        assert f"{BED.check}: 1 run of" in shown.out
        assert "because" in shown.out
        assert f"run {out}/failures/{BED.check}-1/scenario.yaml" in shown.out
        assert "1 hold" in shown.out
        assert re.fullmatch(
            r"\S+ fails: 1 way to fail in \d+ runs \(\d+ different timelines, \d+ s\)", shown.out.splitlines()[-1]
        )
        assert f"(observe-late): {BED.check}" in shown.err


def test_nothing_is_found_where_the_safeguard_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--runs", "24", "--out", str(tmp_path / "out"))
    code, result = explore(capsys, bed_file(tmp_path, is_ablated=False), *arguments)
    assert (code, result["verdict"], result["failures"], result["runs"]) == (0, "holds", [], 24)
    assert len(result["strategies"]) == 8


def test_what_no_run_exercises_is_exit_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--runs", "8", "--out", str(tmp_path / "out"))
    code, result = explore(capsys, file_of(tmp_path, NEVER_EXERCISED), *arguments)
    assert (code, result["verdict"]) == (3, "unknown")
    assert result["coverage"]["unseen"] == ["check voluntary-evictions-respect-budgets"]


def test_a_scenario_that_fails_anyway_is_not_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = file_of(tmp_path, FAILS_ANYWAY)
    code, result = explore(capsys, file, "--runs", "50", "--out", str(tmp_path / "out"))
    assert (code, result["runs"]) == (1, 1)
    (failure,) = result["failures"]
    assert (failure["id"], failure["strategy"]) == ("a-pod-comes", "ordinary")
    assert main(["explore", file, "--runs", "50", "--out", str(tmp_path / "out"), *FAST]) == 1
    assert "hopeless fails as it is" in capsys.readouterr().out


@pytest.mark.thorough
def test_only_the_checks_that_are_asked_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    arguments = ("races/two-schedulers-one-node", "--strategy", "observe-late", "--runs", "10", "--out", out)
    assert explore(capsys, *arguments)[0] == 1
    code, result = explore(capsys, *arguments, "--check", "no-node-overcommitted")
    assert (code, result["failures"]) == (0, [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("races/two-schedulers-one-node", "--check", "no-such"), "no check or expectation is called no-such"),
        (("races/two-schedulers-one-node", "--strategy", "luck"), "no strategy is called luck"),
        (("races/priority-against-qos",), "has a matrix; choose one of its variants with --set schedulers[1]"),
    ],
)
def test_what_nothing_is_called_is_exit_2(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", *arguments, "--out", str(tmp_path / "out"), *FAST]) == 2
    assert message in capsys.readouterr().err


def test_a_search_begins_anew_unless_it_is_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a plugin did before it was changed says nothing about the plugin now."""
    file, out = bed_file(tmp_path, is_ablated=False), tmp_path / "out"
    arguments = (file, "--strategy", "seeds", "--out", str(out))
    explore(capsys, *arguments, "--runs", "4")
    (out / "mine.txt").write_text("notes")
    lines = (out / "campaign.jsonl").read_text().splitlines()
    _, result = explore(capsys, *arguments, "--runs", "6", "--resume")
    assert result["runs"] == 6
    resumed = (out / "campaign.jsonl").read_text().splitlines()
    assert len(resumed) == 7
    assert resumed[: len(lines)] == lines
    explore(capsys, *arguments, "--runs", "2")
    assert len((out / "campaign.jsonl").read_text().splitlines()) == 3
    assert (out / "mine.txt").read_text() == "notes"
