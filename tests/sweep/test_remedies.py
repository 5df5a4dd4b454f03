"""Remedies: what a file changes, and what is said of the difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import kemu
from kemu.doors.cli.main import main
from kemu.errors import KemuError, ScenarioError
from kemu.lab.scenario.loading import loader
from kemu.lab.sweep.remedies import changes, comparing

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: shop}
spec:
  duration: 2m
  nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}]
  manifests:
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: 4
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: web, image: web:1, resources: {requests: {cpu: "2"}}}, {name: log, image: log:1}]}
  workloads:
    - name: batch
      start: 5s
      arrivals: {every: {exponential: {mean: 4s}}, count: 8}
      pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
      life: {runSeconds: 10}
"""
SMALLER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"template": {"spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "500m"}}}]}}},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "shop.yaml"
    found.write_text(SCENARIO)
    return found


@pytest.fixture
def spec(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(loader.load(file).to_yaml())["spec"]
    return found


def test_an_object_that_is_there_is_patched_by_the_keys_of_its_lists(spec: dict[str, Any]) -> None:
    remedy = changes.of_data("smaller", SMALLER, spec)
    assert (remedy.changed, remedy.added) == (1, 0)
    (web,) = remedy.overrides["manifests"]
    containers = {one["name"]: one for one in web["spec"]["template"]["spec"]["containers"]}
    assert containers["web"]["resources"]["requests"]["cpu"] == "500m"
    assert containers["web"]["image"] == "web:1"
    assert "log" in containers


def test_any_other_object_is_added(spec: dict[str, Any]) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    remedy = changes.of_data("budget", [budget, SMALLER], spec)
    assert (remedy.changed, remedy.added) == (1, 1)
    assert [each["kind"] for each in remedy.overrides["manifests"]] == ["Deployment", "PodDisruptionBudget"]


def test_a_part_of_a_scenario_is_merged_by_names(spec: dict[str, Any]) -> None:
    remedy = changes.of_data("short", {"spec": {"workloads": [{"name": "batch", "life": {"runSeconds": 1}}]}}, spec)
    (batch,) = remedy.overrides["workloads"]
    assert batch["life"] == {"runSeconds": 1}
    assert batch["arrivals"]["count"] == 8


def test_all_mistakes_of_a_remedy_at_once(spec: dict[str, Any]) -> None:
    wrong = {**SMALLER, "spec": {"replicas": "many"}}
    with pytest.raises(ScenarioError) as caught:
        changes.of_data("wrong", [wrong, 3, {"spec": {"manifests": []}}], spec)
    told = str(caught.value)
    for part in ("does not fit the object that it changes", "is neither an object", "objects stand in the file"):
        assert part in told


@pytest.mark.parametrize(
    ("text", "said"),
    [("evictions", "METRIC < NUMBER"), ("evictons < 1", "evictions"), ("waiting.max_s < 1.2.3", "is no number")],
)
def test_goals_that_are_none(text: str, said: str) -> None:
    with pytest.raises(KemuError, match=said):
        comparing.goal(text)


def test_what_got_better_and_the_exit_code(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "smaller.yaml").write_text(yaml.safe_dump(SMALLER))
    nothing = {**SMALLER, "spec": {"minReadySeconds": 0}}
    (tmp_path / "nothing.yaml").write_text(yaml.safe_dump(nothing))
    words = ["compare", str(file), "--seeds", "5", "--jobs", "1", "--json"]
    words += ["--with", str(tmp_path / "nothing.yaml"), "--with", str(tmp_path / "smaller.yaml")]
    assert main([*words, "--goal", "waiting.max_s < 60"]) == 0
    told = json.loads(capsys.readouterr().out)
    base, same, better = told["variants"]
    assert told["reached"] == [str(tmp_path / "smaller.yaml")]
    assert same["metrics"]["waiting.max_s"]["outcome"] == "same"
    figures = better["metrics"]["waiting.max_s"]
    assert figures["outcome"] == "better"
    difference = figures["difference"]
    assert difference["high"] < 0
    assert difference["low"] <= difference["estimate"] <= difference["high"]
    # Paired: the mean of differences is the difference of means.
    expected = figures["mean"]["estimate"] - base["metrics"]["waiting.max_s"]["mean"]["estimate"]
    assert difference["estimate"] == pytest.approx(expected)
    assert main([*words, "--goal", "waiting.max_s < 0"]) == 1
    assert main([*words[:-2], "--with", str(tmp_path / "none.yaml")]) == 2


def test_long_lines_go_on_below_what_they_say(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "smaller.yaml").write_text(yaml.safe_dump(SMALLER))
    words = ["compare", str(file), "--seeds", "2", "--jobs", "1", "--with", str(tmp_path / "smaller.yaml")]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("  better   waiting.p50_s"))
    body = lines[place].index("87.2 s")
    assert lines[place + 1][:body].isspace()
    assert lines[place + 1][body:].endswith(")")
    # Paths, which have no spaces, alone are longer.
    assert all(len(line) <= 60 for line in lines if str(tmp_path) not in line), lines


def test_an_incident_as_a_regression_test(file: Path) -> None:
    found = kemu.compare(file, {"smaller": SMALLER}, seeds=3, goal="waiting.max_s < 60")
    assert found.outcome("smaller", "waiting.max_s") == "better"
    assert found.reached == ("smaller",)
    found.check()
    with pytest.raises(kemu.RunFailed, match="reached by none"):
        kemu.compare(file, {"smaller": SMALLER}, seeds=2, goal="pods_succeeded > 100").check()
