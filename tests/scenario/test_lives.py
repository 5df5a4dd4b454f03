"""``lives``: how pods live that do not say, also those that controllers make."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu import errors
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner

HEAD = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: lives}
spec:
  duration: 10m
  nodes: [{name: node-1, allocatable: {cpu: "8", memory: 8Gi, pods: "110"}}]
"""
JOB = """
  manifests:
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: backup}
    spec:
      completions: 3
      parallelism: 3
      template:
        metadata: {labels: {app: backup}}
        spec: {restartPolicy: Never, containers: [{name: main, image: backup}]}
  - apiVersion: v1
    kind: Pod
    metadata: {name: own, labels: {app: backup}, annotations: {kemu.dev/run-seconds: "7"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: backup}]}
"""
LIVES = """
  lives:
  - {selector: {app: backup}, runSeconds: {uniform: {min: 20, max: 30}}}
  - {startSeconds: 2, runSeconds: 500, usage: {memory: 10Mi}}
"""


def _scenario(text: str) -> scenarios.Scenario:
    return loader.loads(HEAD + text)


def test_pods_of_a_job_end_when_lives_says(tmp_path: Path) -> None:
    text = (
        JOB
        + LIVES
        + """
  expect:
  - {object: {kind: Job, name: backup}, field: status.succeeded, equals: 3}
  - {pods: {selector: {app: backup}}, all: {phase: Succeeded}}
"""
    )
    result = runner.run(_scenario(text), runner.Options(out=tmp_path / "run"))
    assert result.verdict["verdict"] == "holds", result.verdict["expectations"]


def test_without_lives_they_run_for_ever(tmp_path: Path) -> None:
    text = JOB + "  expect:\n  - {pods: {selector: {app: backup}}, count: {is: {phase: Succeeded}, equals: 1}}\n"
    result = runner.run(_scenario(text), runner.Options(out=tmp_path / "run"))
    assert result.verdict["verdict"] == "holds", result.verdict["expectations"]


@pytest.mark.parametrize(
    ("lives", "complaint"),
    [
        ("[{selector: {app: web}}]", "says nothing about the life of its pods"),
        ("[{runSeconds: 5s}]", "must be a number of seconds"),
        ("[{selector: {matchExpressions: [{key: a, operator: Inn}]}, runSeconds: 5}]", "Inn"),
        ("[{runSecond: 5}]", "did you mean runSeconds"),
        ("[{usage: {memory: lots}}]", "lots"),
    ],
)
def test_mistakes_are_named(lives: str, complaint: str) -> None:
    with pytest.raises(errors.ScenarioError, match=complaint):
        _scenario(f"  lives: {lives}\n")
