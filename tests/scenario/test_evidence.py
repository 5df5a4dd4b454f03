"""Expectations about figures, refused requests, Events, objects, faults, scores and repeated attempts."""
# ruff: noqa: E501 - one object a line reads best

from __future__ import annotations

from typing import Any

import pytest

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from tests.scenario.texts import problems

SCENARIO = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: evidence}
spec:
  seed: 1
  duration: 60s
  eventObjects: all
  nodes:
    - {name: node-1, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
    - {name: node-2, allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}
    - {name: node-3, allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}
  priorityClasses: {high: 1000, low: 10}
  manifests:
    - {apiVersion: v1, kind: Pod, metadata: {name: old, labels: {a.b/c: d}},
       spec: {nodeName: node-1, priorityClassName: low, nodeSelector: {}, containers: [{name: main, resources: {requests: {cpu: "4"}}}]}}
  events:
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: small}, spec: {priorityClassName: low, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
    - {at: 10s, create: {apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {priorityClassName: high, nodeSelector: {kubernetes.io/hostname: node-1}, containers: [{name: main, resources: {requests: {cpu: "4"}}}]}}}
    - {at: 15s, create: {apiVersion: v1, kind: Pod, metadata: {name: small}, spec: {containers: [{name: main}]}}}
    - {at: 20s, create: {apiVersion: v1, kind: Pod, metadata: {name: huge}, spec: {priorityClassName: low, containers: [{name: main, resources: {requests: {cpu: "9"}}}]}}}
    - {at: 25s, create: {apiVersion: v1, kind: Pod, metadata: {name: roomy}, spec: {priorityClassName: low, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
  chaos:
    - {id: away, at: 30s, for: 2s, crash: {actor: scheduler/default-scheduler/0}}
  expect:
"""

HOLDS = [
    "{metric: utilisation.cpu, atLeast: 0.2, atMost: 0.35}",
    "{metric: work.killed_pod_s, atLeast: 10, atMost: 11}",
    "{metric: preemptions.wasted, equals: 0}",
    "{metric: running.max_s, priority: 1000, atLeast: 0.001}",
    "{metric: refused.AlreadyExists, equals: 1}",
    "{metric: preemptions, equals: 1}",
    "{refused: {kind: Pod, name: small, reason: AlreadyExists, verb: create}}",
    "{refused: {kind: Pod, reason: Forbidden, equals: 0}}",
    "{event: {reason: Preempted, about: old}}",
    "{event: {reason: FailedScheduling, about: default/huge, kind: Pod}}",
    "{event: {reason: Nonsense, equals: 0}}",
    "{object: {kind: Pod, name: new}, field: spec.priority, equals: 1000}",
    '{object: {kind: Pod, name: new}, field: "spec.containers[0].name", equals: main}',
    "{object: {kind: Pod, name: new}, field: spec.priority, atLeast: 999}",
    "{object: {kind: Pod, name: new}, field: metadata.deletionTimestamp, exists: false}",
    "{object: {kind: Pod, name: old}, exists: false}",
    "{object: {kind: Node, name: node-1}}",
    "{fault: away, hit: true}",
    "{pod: roomy, scored: {node: node-2, atLeast: 1}}",
    "{order: [{pod: huge, attempted: {before: 24s}}, {pod: roomy, attempted: {}}, {pod: huge, attempted: {after: 24s}}]}",
    "{order: [{pod: new, attempted: {}}, {pod: new, nominated: {}}, {pod: new, attempted: {}}, {pod: new, bound: {}}]}",
]
FAILS = [
    "{metric: utilisation.cpu, atLeast: 0.9}",
    "{metric: work.killed_pod_s, equals: 0}",
    "{metric: refused.AlreadyExists, equals: 2}",
    "{refused: {kind: Pod, name: roomy}}",
    "{refused: {kind: Node}}",
    "{refused: {verb: bind}}",
    "{event: {reason: Preempted, about: small}}",
    "{event: {reason: Preempted, kind: Node}}",
    "{object: {kind: Pod, name: new}, field: spec.priority, equals: 10}",
    "{object: {kind: Pod, name: new}, field: spec.nodeName, atLeast: 3}",
    "{object: {kind: Pod, name: old}}",
    "{object: {kind: Pod, name: new}, field: spec.nothing, equals: 1}",
    "{object: {kind: Node, name: node-1}, exists: false}",
    "{fault: away, hit: false}",
    "{pod: roomy, scored: {node: node-1}}",
    "{order: [{pod: new, bound: {}}, {pod: new, attempted: {}}]}",
    "{order: [{pod: new, attempted: {}}, {pod: new, attempted: {}}, {pod: new, attempted: {}}]}",
]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of each expectation, by its text."""
    folder = tmp_path_factory.mktemp("evidence")
    file = folder / "evidence.yaml"
    file.write_text(SCENARIO + "".join(f"    - {text}\n" for text in (*HOLDS, *FAILS)))
    verdict, _ = runner.run_all(loader.load(file), runner.Options(out=folder / "run", runtime="sim"))
    return dict(zip((*HOLDS, *FAILS), verdict["expectations"], strict=True))


@pytest.mark.parametrize("text", HOLDS)
def test_holds(text: str, judged: dict[str, Any]) -> None:
    assert judged[text]["holds"] is True, judged[text]["detail"]


@pytest.mark.parametrize("text", FAILS)
def test_fails(text: str, judged: dict[str, Any]) -> None:
    assert judged[text]["holds"] is False, judged[text]["detail"]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("{metric: utilisation.cpus, atLeast: 1}", "spec.expect[0].metric", "did you mean utilisation.cpu?"),
        ("{metric: utilisation.cpu}", "spec.expect[0]", "needs equals, atLeast or atMost"),
        ("{metric: utilisation.cpu, priority: 5, atLeast: 1}", "spec.expect[0].priority", "not told by priority"),
        ("{refused: {kind: Pood}}", "spec.expect[0].refused.kind", "unknown kind Pood"),
        ("{event: {about: a}}", "spec.expect[0].event", "reason is missing"),
        ("{object: {kind: Pod, name: a}, equals: 5}", "spec.expect[0]", "needs field"),
        ("{object: {kind: Pod, name: a}, field: spec.x}", "spec.expect[0]", "needs equals, atLeast, atMost or exists"),
        ("{fault: nothing}", "spec.expect[0].fault", "there is no fault nothing"),
    ],
)
def test_mistakes(text: str, path: str, message: str) -> None:
    found = problems(f"expect:\n- {text}\n")
    assert any(each.path == path and message in f"{each.message} {each.suggestion}" for each in found), found
