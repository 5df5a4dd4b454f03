"""The report of a search: each failure as a run of its own, with why it fails."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli import main

RACE = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: stale}
spec:
  duration: 20s
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  schedulers: [{name: red}, {name: blue}]
  events:
    - at: 5s
      create: {apiVersion: v1, kind: Pod, metadata: {name: red-pod},
               spec: {schedulerName: red, containers: [{name: m, resources: {requests: {cpu: "3"}}}]}}
    - at: 7s
      create: {apiVersion: v1, kind: Pod, metadata: {name: blue-pod},
               spec: {schedulerName: blue, containers: [{name: m, resources: {requests: {cpu: "3"}}}]}}
  expect:
    - {id: none-is-rejected, counter: admissions_rejected, equals: 0}
"""


def data_of(file: Path) -> Any:
    found = re.search(r'id="data">([^<]*)<', file.read_text())
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_each_failure_of_a_search_is_a_run_with_its_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, folder = tmp_path / "stale.yaml", tmp_path / "search"
    scenario.write_text(RACE)
    options = ["--runs", "12", "--strategy", "observe-late", "--failures", "1", "--no-shrink"]
    assert main.main(["explore", str(scenario), "--out", str(folder), *options]) == 1
    assert main.main(["report", str(folder)]) == 0
    page = data_of(folder / "report.html")
    (find,) = page["search"]["finds"]
    run = page["runs"][find["run"]]
    assert find["id"] == run["name"] == "none-is-rejected-1"
    assert "holds:" in find["scenario"]
    assert any("blue still counted 4 CPUs free" in one["text"] for one in run["summary"]["because"])
    assert run["summary"]["stage"]["without"].startswith("without the hold")
    assert any(one.get("ghost") for one in run["summary"]["stage"]["items"])


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["report", str(tmp_path)]) == 2
    assert "not a run folder" in capsys.readouterr().err


EXPERIMENT = """
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {name: nomination}
spec:
  scenario: seeds/starvation
  set: {duration: 40s, "schedulers[0].policy.queue": fifo}
  vary: {"schedulers[0].policy.nomination": [true, false]}
  seeds: 2
  metrics: [preemptions]
  claims: [{id: as-many, says: "preemptions(nomination=true) > 0.5 * preemptions(nomination=false)"}]
"""


def test_a_sweep_shows_its_figures_and_a_run_of_each_variant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment, folder = tmp_path / "nomination.yaml", tmp_path / "sweep"
    experiment.write_text(EXPERIMENT)
    main.main(["sweep", str(experiment), "--out", str(folder), "--jobs", "1", "--json"])
    figures = json.loads(capsys.readouterr().out)
    assert "variants" in figures, figures
    assert main.main(["report", str(folder)]) == 0
    page = data_of(folder / "report.html")
    assert page["sweep"]["variants"] == figures["variants"]
    assert page["sweep"]["claims"] == figures["claims"]
    assert [run["name"] for run in page["runs"]] == ["nomination=on, seed 1", "nomination=off, seed 1"]
