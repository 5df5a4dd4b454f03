"""``lives``: how pods live that do not say, also those that controllers make."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from kemu import errors
from kemu.emulated.apiserver.lives import Lives
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner, workloads
from kemu.lab.up import lives_files
from kemu.messages.k8s import core_v1_pb2

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


EVERY_KEY = """
  seed: 3
  programs: true
  lives:
  - image: worker
    command: run *
    args: "--fast*"
    owner: Job/quick*
    namespace: default
    runSeconds: {uniform: {min: 5, max: 9}}
    exitCode: 2
    shutdownSeconds: 1
    logs: ["start {pod}", {every: 2s, line: "tick {n}"}]
  - {image: "web*", probes: {"*": {readiness: {succeedsAfter: 20s}}}, usage: {memory: 100Mi}}
  - {image: worker, runSeconds: 1000, exitCode: 7}
  - {selector: {app: web}, usage: {cpu: 100m}, logs: hello, probes: {side: {readiness: {failsFrom: 5s}}}}
  manifests:
  - apiVersion: v1
    kind: Pod
    metadata: {name: web, labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "reg/web:1", readinessProbe: {httpGet: {port: 80}}}
      - {name: side, image: side, readinessProbe: {httpGet: {port: 81}}}
  - apiVersion: v1
    kind: Pod
    metadata: {name: said, annotations: {kemu.dev/run-seconds.main: "3"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "reg/worker:1"}, {name: other, image: busybox, command: [sleep, "4"]}]
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: quick}
    spec:
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: "reg/worker:1", command: [run, it], args: [--fast]}]
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: retry}
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          volumes: [{name: d, emptyDir: {}}]
          containers:
          - name: main
            image: busybox
            volumeMounts: [{name: d, mountPath: /data}]
            command: [sh, -c, "[ -f /data/x ] && exit 0; touch /data/x; exit 1"]
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: task}
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "team/task"}]}}}
  expect:
  - {object: {kind: Job, name: quick}, field: status.failed, equals: 1}
  - {object: {kind: Job, name: retry}, field: status.succeeded, equals: 1}
  - {object: {kind: Job, name: task}, field: status.succeeded, equals: 1}
  - {pod: said, phase: Failed}
"""


def test_every_key_of_lives_and_programs(tmp_path: Path) -> None:
    result = runner.run(_scenario(EVERY_KEY), runner.Options(out=tmp_path / "one"))
    assert result.verdict["verdict"] == "holds", result.verdict["expectations"]
    again = runner.run(_scenario(EVERY_KEY), runner.Options(out=tmp_path / "two"))
    assert again.verdict["digest"] == result.verdict["digest"]


def test_entries_of_containers_become_annotations_of_theirs() -> None:
    entries = [workloads.plain_lives(each) for each in _scenario(EVERY_KEY).lives]
    lives = Lives(_Env(), entries)  # type: ignore[arg-type]
    pod = core_v1_pb2.Pod()
    pod.metadata.uid, pod.metadata.namespace, pod.metadata.labels["app"] = "u", "default", "web"
    pod.spec.containers.add(name="main", image="reg/web:1")
    pod.spec.containers.add(name="side", image="x/worker")
    pod.spec.initContainers.add(name="first", image="worker")
    pod.metadata.annotations["kemu.dev/exit-code"] = "9"
    lives.give(pod)
    found = dict(pod.metadata.annotations)
    assert json.loads(found.pop("kemu.dev/usage")) == {"cpu": "100m", "containers": {"main": {"memory": "100Mi"}}}
    assert json.loads(found.pop("kemu.dev/probes")) == {
        "main": {"readiness": {"succeedsAfter": "20s"}},
        "side": {"readiness": {"failsFrom": "5s"}},
    }
    assert found == {
        "kemu.dev/exit-code": "9",
        "kemu.dev/exit-code.first": "7",
        "kemu.dev/run-seconds.side": "1000",
        "kemu.dev/run-seconds.first": "1000",
        "kemu.dev/logs": '"hello"',
    }


class _Env:
    def stream(self, *name: str) -> random.Random:
        return random.Random("/".join(name))


@pytest.mark.parametrize(
    ("lives", "complaint"),
    [
        ("[{image: web}]", "says nothing about the life"),
        ("[{owner: Job, runSeconds: 1}]", "not a kind and a name, as Job/"),
        ("[{imgae: web, runSeconds: 1}]", "did you mean image"),
        ("[{logs: [{att: 1s, line: x}]}]", "att: unknown"),
        ("[{exec: handlers}]", "a function, as module:function"),
        ("[{image: web, usage: {volumes: {a: 1Gi}}}]", "has no volumes"),
    ],
)
def test_mistakes_in_what_chooses_containers_are_named(lives: str, complaint: str) -> None:
    with pytest.raises(errors.ScenarioError, match=complaint):
        _scenario(f"  lives: {lives}\n")


def test_a_file_of_lives_goes_before_those_of_the_scenario(tmp_path: Path) -> None:
    file = tmp_path / "lives.yaml"
    file.write_text("lives:\n- {image: worker, runSeconds: 1}\n")
    found = lives_files.with_lives(_scenario(JOB + LIVES), file)
    assert [each.image for each in found.lives] == ["worker", None, None]
    assert len(found.resolved["spec"]["lives"]) == 3
    file.write_text("- {image: worker, runSecond: 1}\n- {runSeconds: 5s}\n")
    with pytest.raises(errors.ScenarioError) as raised:
        lives_files.with_lives(_scenario(JOB), file)
    lines = [str(problem) for problem in raised.value.problems]
    assert [line.partition(": ")[0] for line in lines] == [f"{file}:1:19", f"{file}:2:16"]
    assert "did you mean runSeconds" in lines[0]
