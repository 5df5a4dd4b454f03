"""The disruption controller keeps budgets up to date, and evictions ask them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import policy_v1_pb2
from kemu.runtime.runlog.frames import FILE_NAME, Reader

KEY = "/registry/poddisruptionbudgets/default/budget"

HEAD = """\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 10m
  nodes: [{namePrefix: node-, count: 3}]
  manifests:
    - apiVersion: policy/v1
      kind: PodDisruptionBudget
      metadata: {name: budget}
      spec: {%s, selector: {matchLabels: {app: x}}}
"""
REPLICAS = """\
    - apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {name: web}
      spec:
        replicas: 5
        selector: {matchLabels: {app: x}}
        template:
          metadata: {labels: {app: x}, annotations: {kemu.dev/start-seconds: "10"}}
          spec: {containers: [{name: m}]}
"""
PODS = """\
    - apiVersion: v1
      kind: Pod
      metadata: {name: a, labels: {app: x}}
      spec: {nodeName: node-1, containers: [{name: m}]}
    - apiVersion: v1
      kind: Pod
      metadata: {name: b, labels: {app: x}}
      spec: {nodeName: node-2, containers: [{name: m}]}
"""


def play(text: str, folder: Path) -> tuple[list[tuple[float, Any]], dict[str, Any]]:
    """The statuses that the budget had, with their times, and the verdict."""
    result = runner.run(loader.loads(text), runner.Options(out=folder))
    found = []
    with Reader(folder / FILE_NAME) as reader:
        for event in reader:
            if event.kind == "store.txn":
                for _, key, value, _, _ in event.data["changes"]:
                    if key == KEY:
                        budget = policy_v1_pb2.PodDisruptionBudget.FromString(value)
                        found.append((event.time_ns / 1e9, budget.status))
    return found, result.verdict


@pytest.mark.parametrize(
    ("budget", "expected", "desired", "allowed"),
    [
        ("maxUnavailable: 2", 5, 3, 2),
        ("maxUnavailable: 30%", 5, 3, 2),
        ("minAvailable: 4", 5, 4, 1),
        ("minAvailable: 50%", 5, 3, 2),
        ("minAvailable: 9", 5, 9, 0),
    ],
)
def test_what_a_budget_allows(budget: str, expected: int, desired: int, allowed: int, tmp_path: Path) -> None:
    statuses, _ = play(HEAD % budget + REPLICAS, tmp_path)
    _, last = statuses[-1]
    assert (last.expectedPods, last.desiredHealthy, last.currentHealthy) == (expected, desired, 5)
    assert last.disruptionsAllowed == allowed
    assert last.conditions[0].status == str(allowed > 0)
    # As long as nobody is ready, nothing may be disrupted.
    assert all(status.disruptionsAllowed == 0 for at_s, status in statuses if at_s < 10)


def test_pods_without_a_controller_count_only_against_a_number(tmp_path: Path) -> None:
    statuses, _ = play(HEAD % "minAvailable: 1" + PODS, tmp_path / "number")
    assert statuses[-1][1].disruptionsAllowed == 1
    statuses, _ = play(HEAD % "maxUnavailable: 50%" + PODS, tmp_path / "share")
    assert (statuses[-1][1].expectedPods, statuses[-1][1].disruptionsAllowed) == (0, 0)


def test_evictions_ask_the_budget(tmp_path: Path) -> None:
    text = HEAD % "minAvailable: 1" + PODS
    text += "  events: [{at: 30s, evict: {pod: a}}, {at: 30s, evict: {pod: b}}, {at: 90s, evict: {pod: b}}]\n"
    text += "  expect: [{pod: a, evicted: {reason: EvictionByEvictionAPI}}, {pod: b, phase: Running}]\n"
    statuses, verdict = play(text, tmp_path)
    assert verdict["verdict"] == "holds"
    assert verdict["counts"]["requests_refused"] == 2
    assert next(list(status.disruptedPods) for at_s, status in statuses if at_s > 30) == ["a"]
    assert list(statuses[-1][1].disruptedPods) == []


STATED = "      status: {disruptionsAllowed: 7, currentHealthy: 1, desiredHealthy: 1}\n"


def test_a_status_that_is_stated_is_put_right(tmp_path: Path) -> None:
    statuses, _ = play(HEAD % "minAvailable: 1" + STATED + PODS, tmp_path)
    assert [status.disruptionsAllowed for _, status in statuses] == [0, 7, 1]


def test_a_status_that_is_stated_stays_where_the_controller_is_left_out(tmp_path: Path) -> None:
    text = (HEAD % "minAvailable: 1").replace("  duration", "  controllers: []\n  duration")
    statuses, _ = play(text + STATED + PODS, tmp_path)
    assert [status.disruptionsAllowed for _, status in statuses] == [0, 7]
