"""What ailed the pods of a dump ails them in the run, and the rollout that brought it is named and undone."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.doors.cli.main import main
from kemu.errors import ScenarioError
from kemu.lab.scenario.loading import loader
from kemu.lab.tell.causes import checking, tellings
from kemu.lab.tell.causes.roots import Causes
from tests.incidents import printed
from tests.incidents.printed import GIB, MIB, App, Cluster, steady

Object = dict[str, Any]
HASH = "7c9d8f6b5"
APPS = (
    App("shop", "web", 4, {"cpu": "250m", "memory": "512Mi"}, steady(300 * MIB)),
    App("data", "db", 2, {"cpu": "500m", "memory": "2Gi"}, steady(1 * GIB), kind="StatefulSet"),
)


def ailing(change: Callable[[Object], None], status: Object) -> list[Object]:
    """A cluster in which a rollout of web has two pods with that status; ``change`` changes the container."""
    found: list[Object] = json.loads(json.dumps(printed.objects(Cluster(3, "16Gi", "4", APPS, seconds=600))))
    web, old = (next(one for one in found if one["kind"] == kind) for kind in ("Deployment", "ReplicaSet"))
    new = copy.deepcopy(old)
    new["metadata"] |= {"name": f"web-{HASH}", "uid": "11111111-2222-4333-8444-555555555555"}
    for labels in (new["metadata"]["labels"], new["spec"]["selector"]["matchLabels"], _labels(new["spec"]["template"])):
        labels["pod-template-hash"] = HASH
    for one in (web, new):
        one["metadata"].setdefault("annotations", {})["deployment.kubernetes.io/revision"] = "7"
        change(one["spec"]["template"]["spec"]["containers"][0])
    new["spec"]["replicas"], old["spec"]["replicas"] = 2, 3
    pods = [one for one in found if one["kind"] == "Pod" and _owner(one) == old["metadata"]["name"]]
    found.remove(pods[3])
    for number, pod in enumerate(copy.deepcopy(pods[:2])):
        pod["metadata"] |= {"name": f"web-{HASH}-abcd{number}", "uid": f"99999999-2222-4333-8444-00000000000{number}"}
        pod["metadata"]["ownerReferences"][0] |= {name: new["metadata"][name] for name in ("name", "uid")}
        pod["metadata"]["labels"]["pod-template-hash"] = HASH
        change(pod["spec"]["containers"][0])
        pod["status"]["containerStatuses"][0] |= {"ready": False, "started": False, **status}
        found.append(pod)
    return [*found, new]


def _owner(pod: Object) -> str:
    return str(pod["metadata"]["ownerReferences"][0]["name"])


def _labels(template: Object) -> Object:
    labels: Object = template["metadata"]["labels"]
    return labels


def looping(code: int, reason: str, seconds: int = 20) -> Object:
    times = {"startedAt": "2026-11-27T09:35:00Z", "finishedAt": f"2026-11-27T09:35:{seconds}Z"}
    return {
        "restartCount": 6,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": code, "reason": reason, **times}},
    }


def waiting(reason: str, message: str = "") -> Object:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


PROBE = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 5, "failureThreshold": 2}
SMALL = {"limits": {"memory": "128Mi"}, "requests": {"cpu": "250m", "memory": "128Mi"}}
CASES: dict[str, tuple[Callable[[Object], None], Object, str]] = {
    "image": (lambda c: c.update(image="example.com/web:2"), waiting("ImagePullBackOff"), "pulling"),
    "crash": (lambda c: c.update(image="example.com/web:2"), looping(3, "Error"), "restarts"),
    "limit": (lambda c: c.update(resources=SMALL), looping(137, "OOMKilled"), "killed"),
    "liveness": (lambda c: c.update(livenessProbe=PROBE), looping(137, "Error", 40), "restarts"),
    "readiness": (
        lambda c: c.update(readinessProbe=PROBE),
        {"state": {"running": {"startedAt": "2026-11-27T09:20:00Z"}}},
        "unready pod",
    ),
    "reference": (
        lambda c: c.update(envFrom=[{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}]),
        waiting("CreateContainerConfigError", 'configmap "settings" not found'),
        "absent",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_ails_them_in_the_run_and_the_previous_template_heals(case: str, tmp_path: Path) -> None:
    change, status, kind = CASES[case]
    (tmp_path / "dump.yaml").write_text(printed.printed(ailing(change, status)))
    assert main(["import", str(tmp_path / "dump.yaml"), "--out", str(tmp_path / "in")]) == 0
    scenario = loader.load(tmp_path / "in" / "scenario.yaml", overrides={"duration": "4m"})
    found, _ = checking.run(scenario)
    root = found.roots[0]
    assert root.name == "Deployment shop/web"
    assert root.share > 0.9
    assert kind in {link.kind for link in root.chain}
    assert "its last rollout: containers[web]" in root.detail
    checked: Causes = checking.check(scenario, found, limit_s=60, most=1)
    check = checked.roots[0].check
    assert check is not None
    assert check.holds
    assert check.instead.startswith("the previous template of Deployment shop/web (containers[web]")
    assert "With the previous template of Deployment shop/web" in tellings.told(checked, 200)
    # The old pods go on: it is not the Deployment that is taken away.
    assert all(one.after < one.before for one in check.effects)


def test_pods_that_were_well_stay_well(tmp_path: Path) -> None:
    dump = printed.objects(Cluster(3, "16Gi", "4", APPS, seconds=600))
    (tmp_path / "dump.yaml").write_text(printed.printed(dump))
    assert main(["import", str(tmp_path / "dump.yaml"), "--out", str(tmp_path / "in")]) == 0
    text = (tmp_path / "in" / "scenario.yaml").read_text()
    assert "references" not in text
    assert "exitCode" not in text
    assert "probes" not in text


@pytest.mark.parametrize("with_configuration", [True, False])
def test_a_webhook_that_fails_refuses_pods_in_the_run(with_configuration: bool, tmp_path: Path) -> None:
    found: list[Object] = json.loads(json.dumps(printed.objects(Cluster(3, "16Gi", "4", APPS, seconds=600))))
    old = next(one for one in found if one["kind"] == "ReplicaSet")
    found.remove(next(one for one in found if one["kind"] == "Pod" and _owner(one) == old["metadata"]["name"]))
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "shop"},
        "involvedObject": {"kind": "ReplicaSet", "namespace": "shop", "name": old["metadata"]["name"]},
        "reason": "FailedCreate",
        "type": "Warning",
        "lastTimestamp": "2026-11-27T09:39:00Z",
        "message": 'Error creating: Internal error occurred: failed calling webhook "pods.policy.example.com": failed '
        'to call webhook: Post "https://policy.policy.svc:443/pods?timeout=10s": context deadline exceeded',
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "policy"},
        "webhooks": [
            {
                "name": f"{name}.policy.example.com",
                "clientConfig": {"service": {"namespace": "policy", "name": "policy", "path": f"/{name}", "port": 443}},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [name]}],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
            }
            for name in ("pods", "services")
        ],
    }
    found += [event, *([configuration] if with_configuration else [])]
    (tmp_path / "dump.yaml").write_text(printed.printed(found))
    folder = tmp_path / f"policy-{with_configuration}"  # it names a module
    assert main(["import", str(tmp_path / "dump.yaml"), "--out", str(folder)]) == 0
    scenario = loader.load(folder / "scenario.yaml", overrides={"duration": "3m"})
    causes, _ = checking.run(scenario)
    root = causes.roots[0]
    expected = (
        "ValidatingWebhookConfiguration policy" if with_configuration else "admission hook pods.policy.example.com"
    )
    assert root.name == expected, [one.what for one in causes.roots]
    assert {"refused", "missing"} <= {link.kind for link in root.chain}
    check = checking.check(scenario, causes, limit_s=60, most=1).roots[0].check
    assert check is not None
    assert check.holds, check


@pytest.mark.thorough
def test_pods_that_were_evicted_for_their_disk_fill_it_again(tmp_path: Path) -> None:
    found: list[Object] = json.loads(json.dumps(printed.objects(Cluster(3, "16Gi", "4", APPS, seconds=600))))
    old = next(one for one in found if one["kind"] == "ReplicaSet")
    evicted = copy.deepcopy(
        next(one for one in found if one["kind"] == "Pod" and _owner(one) == old["metadata"]["name"])
    )
    evicted["metadata"] |= {"name": f"{old['metadata']['name']}-gone1", "uid": "99999999-2222-4333-8444-000000000009"}
    evicted["status"] = {
        "phase": "Failed",
        "reason": "Evicted",
        "message": "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. "
        "Container web was using 93Gi, request is 0, has larger consumption of ephemeral-storage. ",
    }
    (tmp_path / "dump.yaml").write_text(printed.printed([*found, evicted]))
    assert main(["import", str(tmp_path / "dump.yaml"), "--out", str(tmp_path / "in")]) == 0
    causes, _ = checking.run(loader.load(tmp_path / "in" / "scenario.yaml", overrides={"duration": "330s"}))
    assert causes.roots[0].name == "Deployment shop/web", [one.what for one in causes.roots]
    assert {"disk", "pressure", "evicted"} <= {link.kind for link in causes.roots[0].chain}


def _under(condition: str, *more: Object) -> list[Object]:
    """A dump in which node-1 is under that pressure."""
    found: list[Object] = json.loads(json.dumps(printed.objects(Cluster(3, "16Gi", "4", APPS, seconds=600))))
    node = next(one for one in found if one["kind"] == "Node")
    conditions = [one for one in node["status"]["conditions"] if one["type"] != condition]
    node["status"]["conditions"] = [
        *conditions,
        {"type": condition, "status": "True", "reason": f"KubeletHas{condition}"},
    ]
    return [*found, *more]


@pytest.mark.thorough
@pytest.mark.parametrize(("condition", "key"), [("MemoryPressure", "memory"), ("DiskPressure", "disk")])
def test_a_node_under_pressure_is_under_pressure_in_the_run(
    condition: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = _under(condition)
    name = next(one["metadata"]["name"] for one in dump if one["kind"] == "Node")
    (tmp_path / "dump.yaml").write_text(printed.printed(dump))
    assert main(["import", str(tmp_path / "dump.yaml"), "--out", str(tmp_path / "in")]) == 0
    said = f"the nodes themselves use the {key} of {name}, as the dump says only that it runs short"
    assert said in capsys.readouterr().out
    text = " ".join((tmp_path / "in" / "scenario.yaml").read_text().replace("\n# ", " ").split())
    assert text.count(f"Assumed: {said}") == 1
    scenario = loader.load(tmp_path / "in" / "scenario.yaml", overrides={"duration": "2m"})
    assert [node.name for node in scenario.nodes if node.usage] == [name]
    causes, _ = checking.run(scenario)
    pressed = [link for link in causes.symptoms if link.kind == "pressure"]
    assert [link.names for link in pressed] == [(name,)]


def test_what_a_node_uses_is_not_assumed_where_the_dump_tells(tmp_path: Path) -> None:
    """By usage of pods for memory, and by a pod that was evicted for its disk."""
    dump = _under("MemoryPressure")
    (tmp_path / "dump.yaml").write_text(printed.printed(dump))
    top = "NAMESPACE NAME CPU(cores) MEMORY(bytes)\n"
    top += "".join(
        f"{one['metadata']['namespace']} {one['metadata']['name']} 10m 300Mi\n" for one in dump if one["kind"] == "Pod"
    )
    (tmp_path / "top.txt").write_text(top)
    given = ["--usage", str(tmp_path / "top.txt")]
    assert main(["import", str(tmp_path / "dump.yaml"), *given, "--out", str(tmp_path / "memory")]) == 0
    assert not any(node.usage for node in loader.load(tmp_path / "memory" / "scenario.yaml").nodes)
    full = _under("DiskPressure")
    name = next(one["metadata"]["name"] for one in full if one["kind"] == "Node")
    evicted = copy.deepcopy(next(one for one in full if one["kind"] == "Pod"))
    evicted["metadata"] |= {"name": "gone", "uid": "99999999-2222-4333-8444-000000000009"}
    evicted["spec"]["nodeName"] = name
    evicted["status"] = {
        "phase": "Failed",
        "reason": "Evicted",
        "message": "The node was low on resource: ephemeral-storage. Container web was using 93Gi, request is 0. ",
    }
    (tmp_path / "full.yaml").write_text(printed.printed([*full, evicted]))
    assert main(["import", str(tmp_path / "full.yaml"), "--out", str(tmp_path / "disk")]) == 0
    assert not any(node.usage for node in loader.load(tmp_path / "disk" / "scenario.yaml").nodes)


@pytest.mark.parametrize(
    ("text", "said"), [("memory: [", "is not YAML"), ("memory: 1Gi\nlogs: 1Gi", "logs"), ("- memory", "")]
)
def test_a_wrong_usage_of_a_node_has_its_place(text: str, said: str) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "annotations": {"kemu.dev/usage": text}}}
    document = {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "wrong"},
        "spec": {"duration": "10s", "manifests": [node]},
    }
    with pytest.raises(ScenarioError) as caught:
        loader.loads(yaml.safe_dump(document), "wrong.yaml")
    assert [(problem.line > 1, said in problem.message) for problem in caught.value.problems] == [(True, True)]
