"""``kemu csv``: the figures of runs as tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from kemu.doors.cli import exits, main
from tests.scenario.texts import HEAD

SCENARIO = (
    HEAD
    + """
  seed: 1
  duration: 1m
  nodes: [{name: node-1, allocatable: {cpu: "2", memory: 8Gi, pods: "110"}}]
  workloads:
    - name: w
      arrivals: {every: 1s, count: 3}
      pods: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
"""
)
MATRIX = (
    SCENARIO + "  matrix: {seed: 1..2, parameters: {nodes: {values: [1, 2], sets: 'workloads[0].arrivals.count'}}}\n"
)


def run(tmp_path: Path, text: str) -> Path:
    (tmp_path / "a.yaml").write_text(text)
    assert main.main(["run", str(tmp_path / "a.yaml"), "--out", str(tmp_path / "run"), "--json"]) == exits.HOLDS
    return tmp_path / "run"


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    capsys.readouterr()
    assert main.main(["csv", *arguments]) == exits.HOLDS
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_one_line_for_each_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(tmp_path, SCENARIO)
    found = rows(capsys, str(folder))
    assert [row["name"] for row in found] == ["w-0", "w-1", "w-2"]
    assert [row["node"] for row in found] == ["node-1", "node-1", ""]
    assert [row["censored"] for row in found] == ["false", "false", "true"]
    assert [float(row["created_s"]) for row in found] == pytest.approx([0.002, 1.002, 2.002])
    # w-2 waited to the end of the run.
    end_s = json.loads((folder / "verdict.json").read_text())["virtual_s"]
    assert float(found[2]["waited_s"]) == pytest.approx(end_s - 2.002, abs=1e-5)
    assert found[2]["bound_s"] == found[2]["running_s"] == ""
    assert {row["scheduler"] for row in found[:2]} == {"default-scheduler/0"}
    assert [row["workload"] for row in found] == ["w"] * 3


def test_one_line_for_each_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(run(tmp_path, MATRIX))
    found = rows(capsys, folder, "--variants")
    assert [(row["seed"], row["nodes"], row["pods_created"]) for row in found] == [
        ("1", "1", "1"), ("1", "2", "2"), ("2", "1", "1"), ("2", "2", "2"),
    ]  # fmt: skip
    assert {row["verdict"] for row in found} == {"holds"}
    assert {row["waiting.0.unbound"] for row in found} == {"0"}
    pods = rows(capsys, folder)
    assert [(row["seed"], row["nodes"], row["name"]) for row in pods] == [
        ("1", "1", "w-0"), ("1", "2", "w-0"), ("1", "2", "w-1"),
        ("2", "1", "w-0"), ("2", "2", "w-0"), ("2", "2", "w-1"),
    ]  # fmt: skip


def test_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(run(tmp_path, SCENARIO))
    printed = rows(capsys, folder)
    assert main.main(["csv", folder, "--out", str(tmp_path / "pods.csv")]) == exits.HOLDS
    with (tmp_path / "pods.csv").open() as file:
        assert list(csv.DictReader(file)) == printed


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["csv", str(tmp_path)]) == exits.INPUT
    assert capsys.readouterr().err == f"kemu: {tmp_path}: not a run folder: it has no run.kemu\n"
    folder = run(tmp_path, SCENARIO)
    capsys.readouterr()
    nowhere = tmp_path / "none" / "pods.csv"
    assert main.main(["csv", str(folder), "--out", str(nowhere)]) == exits.INPUT
    assert capsys.readouterr().err == f"kemu: --out {nowhere}: No such file or directory\n"


PREEMPTION = (
    HEAD
    + """
  priorityClasses: {high: 10}
  nodes: [{name: node-1, allocatable: {cpu: "1", memory: 8Gi, pods: "110"}}]
  workloads:
    - name: low
      arrivals: {count: 1}
      pods: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
    - name: high
      start: 5s
      arrivals: {count: 2}
      pods: {spec: {priorityClassName: high, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
"""
)


def test_who_was_preempted_for_whom(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(run(tmp_path, PREEMPTION))
    assert [(row["name"], row["preempted"], row["preempted_by"]) for row in rows(capsys, folder)] == [
        ("low-0", "1", "default/high-0"), ("high-0", "0", ""), ("high-1", "0", ""),
    ]  # fmt: skip


def test_the_figures_of_each_workload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(tmp_path, PREEMPTION)
    (found,) = rows(capsys, str(folder), "--variants")
    high = json.loads((folder / "verdict.json").read_text())["workloads"]["high"]
    assert float(found["workloads.high.max_s"]) == high["max_s"] > 0
    assert (found["workloads.high.unbound"], found["workloads.low.preempted"]) == ("1", "1")


def test_a_folder_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, SCENARIO)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "run").rename(tmp_path / "runs" / "curve-sim-0")
    capsys.readouterr()
    for command in ("csv", "replay", "story"):
        assert main.main([command, "runs/curve"]) == exits.INPUT
        assert capsys.readouterr().err == "kemu: runs/curve: no such folder; did you mean runs/curve-sim-0?\n"
    assert main.main(["csv", "elsewhere/x"]) == exits.INPUT
    assert capsys.readouterr().err == "kemu: elsewhere/x: no such folder\n"
