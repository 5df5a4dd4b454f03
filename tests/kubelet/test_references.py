"""Pods wait for what they name: ConfigMaps, Secrets, images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.frames import FILE_NAME, Reader

HEAD = """\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 3m
  nodes: [{namePrefix: node-, count: 1}]
  eventObjects: all
  %s
  manifests:
    - apiVersion: v1
      kind: Pod
      metadata: {name: p}
      spec:
        containers: [{name: c, image: %s, %s}]
        volumes: [%s]
"""
STRICT = "references: {contents: strict, missingImages: ['*.invalid/*']}"
CREATES = """\
  events:
    - {at: 30s, create: {apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: b}}}
    - {at: 30s, create: {apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: Yg==}}}
"""


def play(text: str, folder: Path) -> tuple[list[tuple[float, core_v1_pb2.PodStatus]], list[str]]:
    """The statuses of the pod with their times, and what events say."""
    runner.run(loader.loads(text), runner.Options(out=folder))
    statuses: list[tuple[float, core_v1_pb2.PodStatus]] = []
    notes: list[str] = []
    with Reader(folder / FILE_NAME) as reader:
        for event in reader:
            if event.kind != "store.txn":
                continue
            for _, key, value, _, _ in event.data["changes"]:
                if key == "/registry/pods/default/p" and value:
                    statuses.append((event.time_ns / 1e9, core_v1_pb2.Pod.FromString(value).status))
                elif key.startswith("/registry/events/") and value:
                    notes.append(core_v1_pb2.Event.FromString(value).message)
    return statuses, notes


def running_since(statuses: list[tuple[float, core_v1_pb2.PodStatus]]) -> float | None:
    return next((time_s for time_s, status in statuses if status.phase == "Running"), None)


@pytest.mark.parametrize(
    ("container", "volume", "lacks"),
    [
        ("env: []", "{name: v, configMap: {name: cm}}", 'configmap "cm" not found'),
        ("env: []", "{name: v, secret: {secretName: s}}", 'secret "s" not found'),
        ("env: []", "{name: v, projected: {sources: [{configMap: {name: cm}}]}}", 'configmap "cm" not found'),
        ("envFrom: [{configMapRef: {name: cm}}]", "", 'configmap "cm" not found'),
        ("env: [{name: X, valueFrom: {secretKeyRef: {name: s, key: a}}}]", "", 'secret "s" not found'),
    ],
)
def test_a_pod_runs_when_all_is_there(container: str, volume: str, lacks: str, tmp_path: Path) -> None:
    statuses, notes = play(HEAD % (STRICT, "nginx", container, volume) + CREATES, tmp_path)
    since_s = running_since(statuses)
    assert since_s is not None
    # The volume is set up at one of its tries, 0.5, 1.5, 3.5 … 63.5 s after the first; the container every 10 s.
    assert 30 < since_s < (64 if volume else 41)
    wanted = f'MountVolume.SetUp failed for volume "v" : {lacks}' if volume else f"Error: {lacks}"
    assert volume == "" or wanted in notes
    if not volume:
        waiting = [one.state.waiting for _, status in statuses for one in status.containerStatuses]
        assert ("CreateContainerConfigError", lacks) in [(one.reason, one.message) for one in waiting]


@pytest.mark.parametrize(
    ("container", "volume", "lacks"),
    [
        ("env: [{name: X, valueFrom: {configMapKeyRef: {name: cm, key: z}}}]", "", "key z in ConfigMap default/cm"),
        ("env: []", "{name: v, configMap: {name: cm, items: [{key: z, path: z}]}}", "non-existent config key: z"),
    ],
)
def test_a_key_that_is_missing_holds_a_pod_up(container: str, volume: str, lacks: str, tmp_path: Path) -> None:
    statuses, notes = play(HEAD % (STRICT, "nginx", container, volume) + CREATES, tmp_path)
    assert running_since(statuses) is None
    told = [*notes, *(one.state.waiting.message for _, status in statuses for one in status.containerStatuses)]
    assert any(lacks in text for text in told)


@pytest.mark.parametrize(
    ("settings", "container", "volume"),
    [
        (STRICT, "env: [{name: X, valueFrom: {configMapKeyRef: {name: nope, key: z, optional: true}}}]", ""),
        (STRICT, "env: []", "{name: v, secret: {secretName: nope, optional: true}}"),
        ("references: {}", "envFrom: [{configMapRef: {name: nope}}]", "{name: v, configMap: {name: nope}}"),
        ("seed: 0", "envFrom: [{configMapRef: {name: nope}}]", "{name: v, configMap: {name: nope}}"),
    ],
)
def test_what_may_be_missing_holds_nothing_up(settings: str, container: str, volume: str, tmp_path: Path) -> None:
    statuses, _ = play(HEAD % (settings, "nginx", container, volume), tmp_path)
    since_s = running_since(statuses)
    assert since_s is not None
    assert since_s < 5


def test_an_image_that_no_registry_has_is_not_pulled(tmp_path: Path) -> None:
    statuses, _ = play(HEAD % (STRICT, "registry.invalid/x", "env: []", ""), tmp_path)
    assert running_since(statuses) is None
    reasons: list[Any] = [one.state.waiting.reason for _, status in statuses for one in status.containerStatuses]
    assert {"ErrImagePull", "ImagePullBackOff"} <= set(reasons)
