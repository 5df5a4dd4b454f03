"""What deals with pods is built when the first one comes; to everybody else it is as if it had always been there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.emulated.kubelet import parts
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.sim.simulation import SimRuntime

STORY = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: late-pods}
spec:
  duration: 10m
  timing: {preset: realistic}
  images: {"web:1": 300Mi, "batch:1": 2Gi}
  nodes: [{namePrefix: node-, count: 3, allocatable: {cpu: "4", memory: 4Gi}}]
  workloads:
    - name: web
      start: 100s
      arrivals: {every: 20s, count: 6}
      replaceFinished: true
      usage: {memory: {ramp: {from: 100Mi, to: 3Gi, over: 2m}}, rootfs: 1Gi}
      pods: {spec: {containers: [{name: main, image: "web:1", resources: {requests: {cpu: "1"}}}]}}
  chaos:
    - {id: kubelet-dies, at: 200s, for: 20s, crash: {actor: kubelet/node-1}}
    - {id: machine-dies, at: 60s, for: 30s, crash: {node: node-2}}
"""


def test_a_run_is_the_same_whenever_they_are_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = runner.run(loader.loads(STORY), runner.Options(out=tmp_path / "lazy")).verdict
    monkeypatch.setattr(parts, "are_needed", lambda *given: True)
    eager = runner.run(loader.loads(STORY), runner.Options(out=tmp_path / "eager")).verdict
    assert lazy["counts"]["evictions"] + lazy["counts"]["oom_kills"] > 0, "kubelets had more to do than to start pods"
    assert lazy["digest"] == eager["digest"]


@pytest.mark.parametrize(
    ("config", "memory", "image", "needed"),
    [
        ({}, "1Gi", "", False),
        ({"kubelet": {"maxPods": 5}}, "1Gi", "", True),
        ({"usage": {"memory": "1Gi"}}, "1Gi", "", True),
        ({"staticPods": [b""]}, "1Gi", "", True),
        ({}, "50Mi", "", True),  # less than evictionHard asks for by default
        ({}, "1Gi", "web:1", True),
    ],
)
def test_an_idle_node_needs_none(config: dict[str, object], memory: str, image: str, needed: bool) -> None:
    node = core_v1_pb2.Node()
    node.status.allocatable["memory"].string = memory
    if image:
        node.status.images.add(names=[image], sizeBytes=1)
    assert parts.are_needed(SimRuntime(0, lambda *event: None, {}).env("kubelet/n1"), config, node) is needed
