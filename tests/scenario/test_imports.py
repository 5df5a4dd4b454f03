"""Objects as ``kubectl get -o yaml`` shows them: without what servers wrote; Nodes become nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.doors.cli.main import main
from kemu.emulated.objects import resources
from kemu.errors import ScenarioError
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.up import clusters

HEAD = "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: it}\nspec:\n  duration: 2m\n"
SERVER = {
    "uid": "0b9b0f0e-8d6f-4c0c-9a6a-0d5a4b7c7f10",
    "resourceVersion": "81234",
    "creationTimestamp": "2024-05-01T10:00:00Z",
    "generation": 2,
    "managedFields": [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}],
    "selfLink": "/api/v1/x",
}
WHEN = "2024-05-01T10:01:00Z"


def node(name: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            **SERVER,
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "disk": "ssd"},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24"], "providerID": f"kind://{name}", **more},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "172.18.0.3"}, {"type": "Hostname", "address": name}],
            "allocatable": {"cpu": "3800m", "memory": "7Gi", "pods": "50", "hugepages-2Mi": "0"},
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "50", "hugepages-2Mi": "0"},
            "conditions": [
                {
                    "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "posting ready status",
                    "lastHeartbeatTime": WHEN, "lastTransitionTime": WHEN,
                }
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [{"names": ["nginx:1.27"], "sizeBytes": 1000}],
            "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "v1.30.1"},
        },
    }  # fmt: skip


def pod(name: str, where: str, phase: str = "Running") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**SERVER, "name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": where, "containers": [{"name": "main", "image": "x"}]},
        "status": {
            "phase": phase, "startTime": WHEN, "podIP": "10.244.1.9", "qosClass": "BestEffort",
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": WHEN}],
        },
    }  # fmt: skip


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {**SERVER, "name": "web"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    "status": {
        "observedGeneration": 2, "disruptionsAllowed": 5, "currentHealthy": 6, "desiredHealthy": 1, "expectedPods": 6,
        "conditions": [],
    },
}  # fmt: skip


def write(folder: Path, objects: list[Any], more: str = "") -> Path:
    dump = {"apiVersion": "v1", "kind": "List", "items": objects, "metadata": {"resourceVersion": ""}}
    (folder / "dump.yaml").write_text(yaml.safe_dump(dump))
    (folder / "it.yaml").write_text(f"{HEAD}  manifests: [{{file: dump.yaml}}]\n{more}")
    return folder / "it.yaml"


def running(result: runner.RunResult) -> list[str]:
    """The pods that were running in the end."""
    return sorted(one.key for one in result.history.pods.values() if one.phase == "Running")


def test_a_dumped_budget_holds_a_drain_up_and_one_line_says_what_was_dropped(tmp_path: Path) -> None:
    objects = [node("n1"), node("n2"), BUDGET, pod("a", "n1"), pod("b", "n1")]
    drain = "  events: [{at: 10s, drain: {node: n1, force: true, timeout: 30s}}]\n"
    scenario = loader.load(write(tmp_path, objects, drain))
    (warning,) = scenario.warnings
    assert "what servers wrote is dropped" in warning.message
    assert "status (2 Pod, 1 PodDisruptionBudget)" in warning.message
    assert "managedFields, selfLink (2 Node, 2 Pod, 1 PodDisruptionBudget)" in warning.message
    result = runner.run(scenario, runner.Options(out=tmp_path / "run"))
    assert result.verdict["refused"]["evict pods: TooManyRequests"] > 0
    # Of two pods that run one may go.
    assert len([one for one in result.history.pods.values() if one.gone_ns is None]) == 1


def test_a_resolved_document_of_a_dump_is_the_same_scenario(tmp_path: Path) -> None:
    scenario = loader.load(write(tmp_path, [node("n1"), BUDGET, pod("a", "n1")]))
    again = loader.loads(scenario.to_yaml())
    assert (again.setup[0].message, again.nodes) == (scenario.setup[0].message, scenario.nodes)
    assert not again.warnings


def test_what_a_person_states_stays(tmp_path: Path) -> None:
    running = pod("a", "n1")
    running["metadata"] = {"name": "a", "creationTimestamp": None}
    budget = {**BUDGET, "metadata": {"name": "web"}, "status": {"disruptionsAllowed": 3}}
    empty = {**BUDGET, "metadata": {"name": "other", "creationTimestamp": None}, "status": {}}
    scenario = loader.load(write(tmp_path, [running, budget, empty], "  nodes: [{name: n1}]\n"))
    found = {one.message.metadata.name: one.message for one in scenario.setup}
    assert found["a"].status.podIP == "10.244.1.9"
    assert found["web"].status.disruptionsAllowed == 3
    assert not found["other"].HasField("status")
    assert not scenario.warnings


def test_what_has_ended_does_not_start_anew(tmp_path: Path) -> None:
    scenario = loader.load(write(tmp_path, [node("n1"), pod("done", "n1", "Succeeded"), pod("a", "n1")]))
    assert [one.message.status.phase for one in scenario.setup] == ["Succeeded", ""]
    result = runner.run(scenario, runner.Options(out=tmp_path / "run"))
    assert running(result) == ["default/a"]


def test_nodes_among_manifests_run_pods(tmp_path: Path) -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    lost = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": WHEN}
    objects = [node("n1"), node("n2", unschedulable=True, taints=[taint, lost])]
    free = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "free"}}
    objects += [pod("a", "n1"), pod("b", "n2"), {**free, "spec": {"containers": [{"name": "m"}]}}]
    scenario = loader.load(write(tmp_path, objects))
    one, two = scenario.nodes
    assert one.message.status.allocatable["cpu"].string == "3800m"
    assert one.message.status.capacity["memory"].string == "8Gi"
    assert one.message.metadata.labels["disk"] == "ssd"
    assert one.message.spec.podCIDR == "10.244.1.0/24"
    assert two.message.spec.unschedulable
    assert [each.key for each in two.message.spec.taints] == ["gpu"]
    assert [resources.of(each.message).kind for each in scenario.setup] == ["Pod"] * 3
    result = runner.run(scenario, runner.Options(out=tmp_path / "run"))
    assert result.verdict["counts"]["pods_bound"] == 1
    assert running(result) == ["default/a", "default/b", "default/free"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"metadata": {"name": "n1", "finalizers": ["example.com/x"]}}, "metadata.finalizers"),
        ({"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready"}]}}, "status.conditions"),
        ({"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "many"}}}, "status.capacity.cpu"),
    ],
)
def test_what_a_node_cannot_have_is_refused(change: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        loader.load(write(tmp_path, [{"apiVersion": "v1", "kind": "Node", **change}]))
    (problem,) = caught.value.problems
    assert problem.path.endswith(complaint)
    assert problem.line > 1


def test_a_node_is_stated_once(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="a second Node is called n1"):
        loader.load(write(tmp_path, [node("n1")], "  nodes: [{name: n1}]\n"))
    with pytest.raises(ScenarioError, match="addNode"):
        loader.loads(
            f"{HEAD}  nodes: [{{name: n}}]\n  events:\n  - {{at: 1s, create: {{apiVersion: v1, kind: Node, "
            "metadata: {name: m}}}\n"
        )


def test_kemu_up_says_what_it_drops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [node("n1"), pod("a", "n1")])
    out = tmp_path / "run"
    words = ["up", "--manifests", str(tmp_path / "dump.yaml"), "--for", "2s", "--speed", "5", "--out", str(out)]
    assert main([*words, "--insecure-http"]) == 0
    assert "what servers wrote is dropped" in capsys.readouterr().err


def test_kemu_up_takes_its_nodes_from_manifests(tmp_path: Path) -> None:
    write(tmp_path, [node("n1"), node("n2"), pod("a", "n1")])
    assert [one.name for one in clusters.of_nodes(None, {}, [tmp_path / "dump.yaml"]).nodes] == ["n1", "n2"]
    assert len(clusters.of_nodes(3, {}, [tmp_path / "dump.yaml"]).nodes) == 5
    assert len(clusters.of_nodes(None, {}).nodes) == clusters.DEFAULT_NODES


def _owned(by: str, kind: str, uid: str, version: str = "apps/v1") -> list[dict[str, Any]]:
    return [{"apiVersion": version, "kind": kind, "name": by, "uid": uid, "controller": True}]


def _whole_cluster() -> list[dict[str, Any]]:
    """As ``kubectl get … -A -o yaml`` prints it, owners behind what they own."""
    labels = {"app": "web", "pod-template-hash": "abc"}
    template = {
        "metadata": {"creationTimestamp": None, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }
    pods = [pod(f"web-abc-{number}", f"n{number}") for number in (1, 2)]
    for each in pods:
        each["metadata"] |= {"labels": labels, "ownerReferences": _owned("web-abc", "ReplicaSet", "old-set")}
    replicas = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            **SERVER, "name": "web-abc", "uid": "old-set", "labels": labels,
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "ownerReferences": _owned("web", "Deployment", "old-deployment"),
        },
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        "status": {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2},
    }  # fmt: skip
    above = {**template, "metadata": {"creationTimestamp": None, "labels": {"app": "web"}}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**SERVER, "name": "web", "uid": "old-deployment"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": above},
        "status": {"observedGeneration": 1, "replicas": 2, "availableReplicas": 2},
    }
    spaces = [
        {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {**SERVER, "name": name},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        }
        for name in ("default", "kube-system", "shop")
    ]  # fmt: skip
    lone = pod("lone", "n2")
    lone["metadata"] |= {"namespace": "shop", "ownerReferences": _owned("far", "ReplicaSet", "not-here")}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            **SERVER, "name": "n1", "namespace": "kube-node-lease", "ownerReferences": _owned("n1", "Node", "x", "v1"),
        },
        "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 40},
    }  # fmt: skip
    return [*pods, lone, lease, replicas, deployment, BUDGET, *spaces, node("n1"), node("n2")]


def test_a_whole_cluster_goes_on_where_it_was(tmp_path: Path) -> None:
    drain = "  events: [{at: 60s, drain: {node: n1}}]\n"
    result = runner.run(loader.load(write(tmp_path, _whole_cluster(), drain)), runner.Options(out=tmp_path / "run"))
    names = [one.key for one in result.history.pods.values()]
    assert sorted(names[:3]) == ["default/web-abc-1", "default/web-abc-2", "shop/lone"]
    # Nothing was taken for garbage, and nothing made twice: the one that was drained is replaced.
    assert len(names) == 4
    kept = running(result)
    assert len(kept) == 3
    assert {"default/web-abc-2", "shop/lone"} <= set(kept)
    assert result.verdict["verdict"] == "holds"


def test_a_dumped_cluster_under_an_autoscaler_and_with_its_controllers_restarted(tmp_path: Path) -> None:
    more = """\
  autoscaler:
    nodeGroups: [{name: pool, min: 1, initial: 2, max: 4, template: {allocatable: {cpu: "2", memory: 4Gi, pods: "20"}}}]
  chaos:
  - {at: 20s, crash: {actor: controller/*, all: true}}
  events:
  - at: 30s
    create:
      apiVersion: v1
      kind: Pod
      metadata: {name: big}
      spec: {containers: [{name: m, resources: {requests: {cpu: "64"}}}]}
  - {at: 40s, drain: {node: n1}}
"""
    result = runner.run(loader.load(write(tmp_path, _whole_cluster(), more)), runner.Options(out=tmp_path / "run"))
    kept = running(result)
    assert len(kept) == 3
    assert {"default/web-abc-2", "shop/lone"} <= set(kept)
    assert result.verdict["verdict"] == "holds"
