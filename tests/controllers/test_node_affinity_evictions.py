"""Node affinity that counts during execution: who has to go, and who may stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.errors import ScenarioError
from kemu.messages.k8s import core_v1_pb2
from tests.controllers.test_node_failures import Played, play

AFFINITY = (
    "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
    "{nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]}}}"
)
NODES = "[{name: n1, labels: {disk: ssd, colour: red}}, {name: n2, labels: {disk: ssd}}]"


def pod(name: str, annotation: str = "true", spec: str = f"affinity: {AFFINITY}, ", life: str = "") -> str:
    annotations = f'{{kemu.dev/required-during-execution: "{annotation}"{life}}}'
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, annotations: {annotations}}}, "
        f"spec: {{nodeName: n1, {spec}containers: [{{name: main}}]}}}}"
    )


def labels(at: str, disk: str, node: str = "n1") -> str:
    return f"{{at: {at}, patch: {{kind: Node, name: {node}, merge: {{metadata: {{labels: {{disk: {disk}}}}}}}}}}}"


def evicted(found: Played) -> list[tuple[str, float]]:
    told = found.of("affinity.eviction", ok=True)
    return sorted((data["pod"].removeprefix("default/"), round(at, 1)) for at, data in told)


def test_only_pods_that_ask_for_it_and_whose_rules_are_broken_go(tmp_path: Path) -> None:
    node_selector = "nodeSelector: {disk: ssd}, "
    found = play(tmp_path, f"""
        duration: 60s
        nodes: {NODES}
        manifests: [{pod("goes")}, {pod("ignores", "false")}, {pod("selects", spec=node_selector)}]
        events: [{labels("10s", "hdd", "n2")}, {labels("20s", "hdd")}]
    """)  # fmt: skip
    assert evicted(found) == [("goes", 20.0)]
    assert sorted(found.pods) == ["default/ignores", "default/selects"]


def test_the_condition_says_why(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 60s
        nodes: {NODES}
        manifests: [{pod("p", life=', kemu.dev/shutdown-seconds: "100"')}]
        events: [{labels("20s", "null")}]
    """)  # fmt: skip
    written = [core_v1_pb2.Pod.FromString(value) for _, key, value in found.written if key.endswith("/default/p")]
    conditions = [one for one in written[-1].status.conditions if one.type == "DisruptionTarget"]
    assert [(one.status, one.reason, one.message) for one in conditions] == [
        ("True", "DeletionByNodeAffinity", "Node affinity: n1 no longer matches its required node affinity")
    ]


def test_other_labels_and_a_label_that_comes_back_within_the_lag_move_nobody(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 60s
        nodes: {NODES}
        controllers: {{node-affinity-eviction: {{lag: 5s}}}}
        manifests: [{pod("p")}]
        events:
        - {{at: 10s, patch: {{kind: Node, name: n1, merge: {{metadata: {{labels: {{colour: null}}}}}}}}}}
        - {labels("20s", "null")}
        - {labels("22s", "ssd")}
        - {labels("40s", "null")}
    """)  # fmt: skip
    assert evicted(found) == [("p", 45.0)]


@pytest.mark.parametrize("what", ["apiserver/0", "controller/node-affinity-eviction"])
def test_a_crash_only_delays_it(what: str, tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 3m
        nodes: {NODES}
        manifests: [{pod("p")}, {pod("q")}]
        events: [{labels("20s", "hdd")}]
        chaos: [{{at: 19999ms, for: 6s, crash: {{actor: {what}}}}}]
    """)  # fmt: skip
    assert [name for name, _ in evicted(found)] == ["p", "q"]
    assert found.pods == {}


def test_it_runs_only_where_somebody_asks_for_it(tmp_path: Path) -> None:
    plain = pod("p").replace('{kemu.dev/required-during-execution: "true"}', "{}")
    found = play(tmp_path, f"duration: 30s\nnodes: {NODES}\nmanifests: [{plain}]\n")
    assert not [actor for _, actor, _, _ in found.events if actor.startswith("controller/node-affinity")]


def test_the_field_that_was_planned_is_refused_with_what_to_write_instead(tmp_path: Path) -> None:
    planned = pod("p").replace("requiredDuringSchedulingIgnored", "requiredDuringSchedulingRequired")
    with pytest.raises(ScenarioError, match="the annotation kemu"):
        play(tmp_path, f"nodes: {NODES}\nmanifests: [{planned}]\n")
    with pytest.raises(ScenarioError, match='must be "true" or "false"'):
        play(tmp_path, f"nodes: {NODES}\nmanifests: [{pod('p', 'yes')}]\n")
