"""The real kube-controller-manager and kube-scheduler run the workloads of a cluster whose nodes are kemu's."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.clients import emulated
from tests.clients.emulated import Emulated, eventually
from tests.clients.test_acceptance import documents, one, pod
from tests.realkube import binaries

pytestmark = pytest.mark.nightly("half a minute")

#: All but one whose kinds kemu does not serve, and those that sign with keys that it does not hand out.
CONTROLLERS = (
    "*",
    "-certificatesigningrequest-signing-controller",
    "-validatingadmissionpolicy-status-controller",
    "-serviceaccount-token-controller",
    "-root-ca-certificate-publisher-controller",
)


def template(app: str, **metadata: object) -> dict[str, object]:
    made = pod("x", terminationGracePeriodSeconds=1)
    return {"metadata": {"labels": {"app": app}, **metadata}, "spec": made["spec"]}


def workload(kind: str, name: str, version: str = "apps/v1", **spec: object) -> dict[str, object]:
    body = {"selector": {"matchLabels": {"app": name}}, "template": template(name), **spec}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": body}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulated]:
    binaries.require("kube-controller-manager", "kube-scheduler", "kubectl")
    with emulated.start(tmp_path_factory.mktemp("up"), "--nodes=3", "--without=schedulers,controllers") as found:
        found.start_controller_manager(CONTROLLERS)
        found.start_scheduler()
        yield found


def test_a_deployment_rolls_out_scales_and_rolls_back(cluster: Emulated) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    cluster.kubectl("apply", "-f", "-", stdin=documents(workload("Deployment", "web", replicas=3), budget))
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    cluster.kubectl("set", "image", "deployment/web", "c=nginx:2")
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    cluster.kubectl("rollout", "undo", "deployment/web")
    cluster.kubectl("scale", "deployment/web", "--replicas=4")
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    eventually("the budget counts", lambda: one(cluster, "pdb", "web")["status"].get("currentHealthy") == 4)
    images = {p["spec"]["containers"][0]["image"] for p in one(cluster, "pods", "-l", "app=web")["items"]}
    assert "nginx" in images
    cluster.kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=30s")
    assert one(cluster, "replicasets,pods", "-l", "app=web")["items"] == []


def test_sets_jobs_and_services(cluster: Emulated) -> None:
    job = workload("Job", "sum", "batch/v1", completions=4, parallelism=2)
    spec = job["spec"]
    assert isinstance(spec, dict)
    del spec["selector"]
    spec["template"] = template("sum", annotations={"kemu.dev/run-seconds": "0.3"})
    spec["template"]["spec"]["restartPolicy"] = "Never"
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}, "spec": {"selector": {"app": "db"}}}
    service["spec"] |= {"ports": [{"port": 80}]}  # type: ignore[operator]
    cluster.kubectl(
        "apply",
        "-f",
        "-",
        stdin=documents(
            workload("StatefulSet", "db", replicas=2, serviceName="db"), workload("DaemonSet", "agent"), job, service
        ),
    )
    cluster.kubectl("rollout", "status", "statefulset/db", "--timeout=30s")
    cluster.kubectl("rollout", "status", "daemonset/agent", "--timeout=30s")
    cluster.kubectl("wait", "--for=condition=Complete", "job/sum", "--timeout=30s")
    assert one(cluster, "daemonset", "agent")["status"]["numberReady"] == 3

    def addresses() -> bool:
        slices = one(cluster, "endpointslices", "-l", "kubernetes.io/service-name=db")["items"]
        return sum(len(each.get("endpoints") or ()) for each in slices) == 2

    eventually("an endpoint of each pod", addresses)
    cluster.kubectl("delete", "job", "sum")
    eventually("the job's pods are collected", lambda: not one(cluster, "pods", "-l", "app=sum")["items"])


def test_a_namespace_goes_with_all_that_is_in_it(cluster: Emulated) -> None:
    cluster.kubectl("create", "namespace", "tmp")
    cluster.kubectl("create", "deployment", "x", "--image=nginx", "--replicas=2", "-n", "tmp")
    cluster.kubectl("rollout", "status", "deployment/x", "-n", "tmp", "--timeout=30s")
    cluster.kubectl("delete", "namespace", "tmp", "--timeout=60s", timeout_s=70)
    assert json.loads(cluster.kubectl("get", "pods", "-n", "tmp", "-o", "json"))["items"] == []


def test_a_taint_that_a_pod_does_not_tolerate_evicts_it(cluster: Emulated) -> None:
    cluster.kubectl("create", "-f", "-", stdin=documents(pod("alone", nodeName="node-1")))
    cluster.kubectl("wait", "--for=condition=Ready", "pod/alone", "--timeout=15s")
    cluster.kubectl("taint", "node", "node-1", "away=yes:NoExecute")
    eventually("it is gone", lambda: cluster.kubectl("get", "pod", "alone", "--ignore-not-found") == "")
    cluster.kubectl("taint", "node", "node-1", "away-")


def test_what_happened_is_judged(cluster: Emulated) -> None:
    verdict = cluster.end()
    assert verdict["verdict"] == "holds", verdict
