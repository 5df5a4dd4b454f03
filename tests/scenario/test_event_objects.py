"""``eventObjects`` says which Event objects controllers write, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner

SCENARIO = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: events}
spec:
  duration: 30s
  eventObjects: LEVEL
  nodes:
    - {name: node-1, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
  manifests:
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: 2
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: main}]}
  expect:
    - {event: {reason: ScalingReplicaSet, about: web, kind: Deployment, equals: SCALED}}
    - {event: {reason: SuccessfulCreate, kind: ReplicaSet, equals: CREATED}}
"""


@pytest.mark.parametrize(("level", "scaled", "created"), [("all", 1, 2), ("notable", 0, 0), ("none", 0, 0)])
def test_controllers_write_the_events_that_the_scenario_asks_for(
    tmp_path: Path, level: str, scaled: int, created: int
) -> None:
    text = SCENARIO.replace("LEVEL", level).replace("SCALED", str(scaled)).replace("CREATED", str(created))
    (tmp_path / "events.yaml").write_text(text)
    scenario = loader.load(tmp_path / "events.yaml")
    verdict, _ = runner.run_all(scenario, runner.Options(out=tmp_path / "run", runtime="sim"))
    assert verdict["verdict"] == "holds", verdict["expectations"]
