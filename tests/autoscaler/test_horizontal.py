"""HorizontalPodAutoscalers in scenarios: what they do over time, and scenarios that do not name their controller."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.autoscaler.horizontal import rates
from kemu.errors import ScenarioError
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import autoscaling_v2_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.frames import FILE_NAME, Reader

SCENARIO = """\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 20m
  nodes: [{namePrefix: node-, count: 3, allocatable: {cpu: 8, memory: 16Gi, pods: 110}}]
  controllers: %s
  manifests:
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: 2
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}, annotations: {kemu.dev/usage: "{cpu: %s}"}}
          spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}
    - apiVersion: autoscaling/v2
      kind: HorizontalPodAutoscaler
      metadata: {name: web}
      spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 10%s}
"""
ALL = "[horizontal-pod-autoscaler, deployment, replicaset]"


def play(
    text: str, folder: Path
) -> tuple[list[tuple[int, int, int]], autoscaling_v2_pb2.HorizontalPodAutoscalerStatus]:
    """When it scaled (whole seconds), from what to what; and its status at the end."""
    runner.run(loader.loads(text), runner.Options(out=folder))
    scaled, status = [], autoscaling_v2_pb2.HorizontalPodAutoscalerStatus()
    with Reader(folder / FILE_NAME) as reader:
        for event in reader:
            if event.kind == "hpa.scaled":
                scaled.append((event.time_ns // SECOND_NS, event.data["before"], event.data["replicas"]))
            elif event.kind == "store.txn":
                for _, key, value, _, _ in event.data["changes"]:
                    if key == "/registry/horizontalpodautoscalers/default/web" and value:
                        status = autoscaling_v2_pb2.HorizontalPodAutoscaler.FromString(value).status
    return scaled, status


def test_it_grows_to_twice_its_size_at_once_up_to_its_most(tmp_path: Path) -> None:
    scaled, status = play(SCENARIO % (ALL, "160m", ""), tmp_path)
    assert [(before, after) for _, before, after in scaled] == [(2, 4), (4, 8), (8, 10)]
    conditions = {one.type: (one.status, one.reason) for one in status.conditions}
    assert conditions["ScalingActive"] == ("True", "ValidMetricFound")
    assert conditions["ScalingLimited"] == ("True", "TooManyReplicas")
    (metric,) = status.currentMetrics
    assert metric.resource.current.averageUtilization == 160
    assert (status.currentReplicas, status.desiredReplicas) == (10, 10)


def test_it_shrinks_when_five_minutes_have_asked_for_less(tmp_path: Path) -> None:
    scaled, status = play(SCENARIO % (ALL, "10m", ""), tmp_path)
    ((second, before, after),) = scaled
    assert (before, after) == (2, 1)
    assert 300 <= second <= 332
    assert status.desiredReplicas == 1


def test_rules_slow_it_down(tmp_path: Path) -> None:
    rules = ", behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 60}]}}"
    scaled, _ = play(SCENARIO % (ALL, "160m", rules), tmp_path)
    assert [(before, after) for _, before, after in scaled[:3]] == [(2, 3), (3, 4), (4, 5)]
    gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(scaled)]
    assert min(gaps) >= 60


def test_within_the_tolerance_nothing_happens(tmp_path: Path) -> None:
    scaled, status = play(SCENARIO % (ALL, "84m", ""), tmp_path)
    assert scaled == []
    assert status.desiredReplicas == 2


def test_a_scenario_that_does_not_name_the_controller_is_told_its_name() -> None:
    for controllers in ("[deployment, replicaset]", "null"):
        with pytest.raises(ScenarioError, match="its controller, horizontal-pod-autoscaler, does not run"):
            loader.loads(SCENARIO % (controllers, "84m", ""))


def test_settings_are_those_of_kube_controller_manager(tmp_path: Path) -> None:
    own = "{horizontal-pod-autoscaler: {tolerance: 0.5, syncPeriod: 1m}, deployment: {}, replicaset: {}}"
    scaled, status = play(SCENARIO % (own, "100m", ""), tmp_path)
    assert scaled == []
    assert status.currentMetrics[0].resource.current.averageUtilization == 100


@pytest.mark.parametrize(("select", "limit"), [("Max", 12), ("Min", 8), ("Disabled", 6)])
def test_select_policies(select: str, limit: int) -> None:
    rules: Any = autoscaling_v2_pb2.HPAScalingRules(selectPolicy=select)
    rules.policies.add(type="Pods", value=2, periodSeconds=60)
    rules.policies.add(type="Percent", value=100, periodSeconds=60)
    behavior = autoscaling_v2_pb2.HorizontalPodAutoscalerBehavior(scaleUp=rules)
    history = rates.History()
    decision = history.decide(behavior, 6, 50, 1, 100, 300 * SECOND_NS, 1000 * SECOND_NS)
    assert decision.replicas == limit
