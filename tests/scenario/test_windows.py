"""Measuring windows: which pods and which time the figures of a run are of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kemu.doors.cli import reports
from kemu.lab.checks import counters
from kemu.lab.checks.history import windows
from kemu.lab.checks.history.windows import Window
from kemu.lab.checks.scheduling import waiting
from kemu.lab.scenario import evidence
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.sweep.results import folders, rows
from kemu.lab.tell import terminal
from kemu.runtime.env import SECOND_NS as S
from tests.scenario.texts import SCENARIOS, load, problems

NODES = "  nodes: [{name: node-1, allocatable: {cpu: '2', memory: 4Gi, pods: '110'}}]\n"
SPEC = """
duration: 100s
priorityClasses: {high: 1000}
workloads:
  - name: first
    arrivals: {count: 2}
    pods: {spec: {containers: [{name: m, resources: {requests: {cpu: "1"}}}]}}
    life: {runSeconds: 40}
  - name: second
    start: 20s
    arrivals: {count: 2}
    pods: {spec: {containers: [{name: m, resources: {requests: {cpu: "1"}}}]}}
    life: {runSeconds: 20}
  - name: urgent
    start: 45s
    arrivals: {count: 1}
    pods: {spec: {priorityClassName: high, containers: [{name: m, resources: {requests: {cpu: "1"}}}]}}
    life: {runSeconds: 10}
"""


def run(spec: str, out: Path) -> runner.RunResult:
    return runner.run(load(spec, nodes=NODES), runner.Options(out=out))


def test_figures_are_of_the_pods_that_arrive_in_the_window(tmp_path: Path) -> None:
    whole, part = run(SPEC, tmp_path / "a"), run(f"{SPEC}\nmeasure: {{from: 10s, until: 30s}}", tmp_path / "b")
    assert whole.verdict["digest"] == part.verdict["digest"]
    assert "measured" not in whole.verdict
    assert part.verdict["measured"] == {"from_s": 10.0, "until_s": 30.0}
    counts = part.verdict["counts"]
    assert (counts["pods_created"], counts["pods_bound"], counts["preemptions"]) == (2, 2, 1)
    assert whole.verdict["counts"]["pods_created"] == 5
    # What does not happen to pods is counted in the whole run.
    assert counts["reclaims"] == whole.verdict["counts"]["reclaims"]
    (group,) = part.verdict["waiting"].values()
    assert (group["pods"], group["unbound"]) == (2, 0)
    assert group["max_s"] == pytest.approx(20, abs=1)
    assert list(part.verdict["workloads"]) == ["second"]
    assert part.verdict["costs"]["running.max_s"] == pytest.approx(20, abs=1)
    # The pod that was preempted after 5 s is one of the window, whenever that happened.
    assert part.verdict["costs"]["work.killed_pod_s"] == pytest.approx(5, abs=1)


@pytest.mark.parametrize(
    ("window", "share"), [("", 0.96), ("until: 40s", 1.0), ("from: 45s, until: 60s", 0.83), ("from: 90s", 0.0)]
)
def test_utilisation_is_of_the_time_of_the_window(window: str, share: float, tmp_path: Path) -> None:
    found = run(f"{SPEC}\nmeasure: {{{window}}}", tmp_path).verdict["costs"]["utilisation.cpu"]
    assert found == pytest.approx(share, abs=0.07)


def test_checks_and_expectations_about_pods_and_counters_see_the_whole_run(tmp_path: Path) -> None:
    spec = f"""{SPEC}
measure: {{from: 90s}}
checks: {{starvation: {{maxWait: 10s}}}}
expect:
  - {{pod: second-0, bound: {{before: 45s}}}}
  - {{counter: pods_created, equals: 5}}
  - {{metric: pods_created, equals: 0}}
  - {{check: no-pod-starves, holds: false}}
"""
    verdict = run(spec, tmp_path).verdict
    assert [one["holds"] for one in verdict["expectations"]] == [True] * 4
    assert "no pod arrived in the time that is measured" in verdict["headline"]


def test_counters_of_pods_are_what_is_told_of_them(tmp_path: Path) -> None:
    """A window around everything counts what the run does."""
    for name in (
        "races/two-schedulers-one-node",
        "seeds/eviction-ping-pong",
        "museum/130429-preemption-loop-of-two-schedulers",
    ):
        (_, variant), *_ = loader.variants(loader.load(SCENARIOS / f"{name}.yaml"))
        history = runner.run(variant, runner.Options(out=tmp_path / name)).history
        whole = counters.counts(history)
        history.window = Window(until_ns=history.now_ns + 1)
        assert counters.measured(history) == whole
        assert whole["pods_created"]


def test_results_of_a_run_folder_are_those_of_the_verdict(tmp_path: Path) -> None:
    result = run(f"{SPEC}\nmeasure: {{from: 10s, until: 30s}}", tmp_path)
    kept = folders.record_of(tmp_path).rows
    assert kept is not None
    for name in ("utilisation.cpu", "running.max_s"):
        assert kept.run[name] == pytest.approx(result.verdict["costs"][name], abs=1e-6)
    assert kept.run["pods_created"] == 2
    assert [row["pods"] for row in kept.run["priorities"]] == [2]
    pods: Any = rows.nested(kept)["pods"]
    waited = dict(zip(pods["name"], pods["waited_s"], strict=True))
    assert {name for name, seconds in waited.items() if seconds is not None} == {"second-0", "second-1"}
    assert len(waited) == 5


def test_a_window_of_the_whole_run_changes_nothing() -> None:
    assert Window().is_whole
    assert Window().data(5 * S) == {}
    assert windows.of({}).is_whole
    assert Window().share(2 * S, 7 * S) == 5 * S
    assert Window(from_ns=3 * S, until_ns=6 * S).share(2 * S, 7 * S) == 3 * S
    assert Window(from_ns=8 * S).share(2 * S, 7 * S) == 0
    assert [Window(from_ns=3, until_ns=6).has(time) for time in (2, 3, 5, 6)] == [False, True, True, False]


def test_every_variant_measures_what_it_says(tmp_path: Path) -> None:
    spec = f"{SPEC}\nmeasure: {{from: 10s}}\nmatrix: {{measure.until: [15s, 30s]}}"
    verdict, results = runner.run_all(load(spec, nodes=NODES), runner.Options(out=tmp_path))
    assert [result.verdict["counts"]["pods_created"] for result in results] == [0, 2]
    assert "measured" not in verdict
    assert sum(group["pods"] for group in verdict["waiting"].values()) == 2
    # What is pooled, and what compares variants, is what is measured.
    assert len(waiting.measured(results[1].history)) == 2
    assert evidence.metric(results[0].history, "waiting.max_s", None) is None
    assert evidence.metric(results[1].history, "pods_bound", None) == 2


def test_people_are_told_of_what_the_figures_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = "figures measured from 10s to 30s: of the pods that arrived then, and of that time"
    verdict = run(f"{SPEC}\nmeasure: {{from: 10s, until: 30s}}", tmp_path).verdict
    terminal.show_figures(Console(width=120), verdict)
    assert told in capsys.readouterr().out
    file, _ = reports.write(tmp_path, tmp_path / "page.html", None)
    assert told in file.read_text()
    terminal.show_figures(Console(width=120), {**verdict, "measured": None})
    assert "figures measured" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "path", "what"),
    [
        ("measure: {from: 5m, until: 5m}", "spec.measure.until", "is not after from, 5m"),
        ("measure: {from: 11m}", "spec.measure.from", "is after the end of the run at 10m"),
        ("measure: {until: 11m}", "spec.measure.until", "is after the end of the run at 10m"),
        ("measure: {til: 1m}", "spec.measure.til", "not a key"),
        ("measure: 5m", "spec.measure", "must be a mapping"),
    ],
)
def test_a_window_outside_of_the_run_is_refused(spec: str, path: str, what: str) -> None:
    (found,) = problems(spec)
    assert (found.path, what in found.message) == (path, True)
