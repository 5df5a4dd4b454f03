"""Cascades of preemptions: the replacement of a victim preempts a pod itself."""

from __future__ import annotations

from pathlib import Path

from kemu.lab.scenario.playing import runner
from tests.scenario.texts import load

NODES = """\
  nodes:
    - {name: first, labels: {pool: first}, allocatable: {cpu: '1'}}
    - {name: second, labels: {pool: second}, allocatable: {cpu: '1'}}
"""
# High is bound to the pool of middle, whose replacement goes where low runs, whose replacement waits.
SPEC = """
duration: 60s
priorityClasses: {high: 1000, middle: 100, low: 10}
workloads:
  - name: middle
    replaceFinished: true
    arrivals: {count: 1}
    pods: {spec: {priorityClassName: middle, containers: &one [{name: m, resources: {requests: {cpu: "1"}}}]}}
  - name: low
    start: 5s
    replaceFinished: true
    arrivals: {count: 1}
    pods: {spec: {priorityClassName: low, containers: *one}}
"""
HIGH = """\
  - name: high
    start: 20s
    arrivals: {{count: 1}}
    pods: {{spec: {{priorityClassName: high, nodeSelector: {{pool: {pool}}}, containers: *one}}}}
"""


def costs(spec: str, out: Path) -> tuple[float, float, float]:
    result = runner.run(load(spec, nodes=NODES), runner.Options(out=out))
    found = result.verdict["costs"]
    return result.verdict["counts"]["preemptions"], found["preemptions.indirect"], found["preemptions.depth"]


def test_a_cascade_is_as_deep_as_victims_follow_one_another(tmp_path: Path) -> None:
    assert costs(SPEC, tmp_path / "none") == (0, 0, 0)
    found = {costs(SPEC + HIGH.format(pool=pool), tmp_path / pool) for pool in ("first", "second")}
    # One of the two pools has low itself, the other middle.
    assert found == {(1, 0, 1), (2, 1, 2)}


def test_victims_outside_the_window_do_not_count(tmp_path: Path) -> None:
    specs = [SPEC + HIGH.format(pool=pool) for pool in ("first", "second")]
    deep = next(spec for number, spec in enumerate(specs) if costs(spec, tmp_path / str(number))[2] == 2)
    assert costs(f"{deep}\nmeasure: {{from: 3s}}", tmp_path / "window") == (1, 1, 2)
