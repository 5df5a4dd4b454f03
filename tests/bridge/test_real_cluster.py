"""``kemu scheduler`` against a real kube-apiserver and etcd, with KWOK's nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.realkube import binaries, clusters

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60.0

pytestmark = pytest.mark.nightly("needs minutes")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    binaries.require("etcd", "kube-apiserver", "kwok", "kubectl")
    with clusters.Cluster.start(tmp_path_factory.mktemp("cluster")) as real:
        real.start_kwok()
        _create(real, [_node(f"n{number}") for number in range(200)])
        yield real


class Scheduler:
    """One process of ``kemu scheduler``."""

    def __init__(self, cluster: clusters.Cluster, log: Path, *options: str) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "kemu.doors.cli.main",
                    "scheduler",
                    f"--kubeconfig={cluster.kubeconfig}",
                    *options,
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=ROOT / "examples" / "plugins",
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def says(self, text: str) -> bool:
        return text in self.log.read_text()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


@pytest.fixture
def begin(cluster: clusters.Cluster, tmp_path: Path) -> Iterator[Callable[..., Scheduler]]:
    """Starts schedulers; none of them outlives the test."""
    started: list[Scheduler] = []

    def start(name: str, *options: str) -> Scheduler:
        started.append(Scheduler(cluster, tmp_path / name, *options))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(20)


def _node(name: str, **labels: str) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "c", "image": "x", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def _create(cluster: clusters.Cluster, items: list[dict[str, Any]]) -> None:
    cluster.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _nodes_of(cluster: clusters.Cluster) -> dict[str, str]:
    pods = json.loads(cluster.request("GET", "/api/v1/namespaces/default/pods?resourceVersion=0")[1])["items"]
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}


def _until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def _bound(cluster: clusters.Cluster, names: list[str]) -> bool:
    nodes = _nodes_of(cluster)
    return all(nodes.get(name) for name in names)


def test_a_thousand_pods_run_on_two_hundred_nodes(
    cluster: clusters.Cluster, begin: Callable[..., Scheduler], tmp_path: Path
) -> None:
    scheduler = begin("log", "--qps=0", f"--out={tmp_path / 'run'}")
    names = [f"many-{number}" for number in range(1000)]
    _create(cluster, [_pod(name) for name in names])
    _until(lambda: _bound(cluster, names), "pods are left over")
    _create(cluster, [_pod("huge", nodeSelector={"no": "where"})])

    def huge() -> Any:
        return json.loads(cluster.request("GET", "/api/v1/namespaces/default/pods/huge")[1])

    _until(lambda: bool(huge()["status"].get("conditions")), "the pod that fits nowhere has no condition")
    condition = huge()["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert "0/200 nodes are available: 200 node(s) didn't match Pod's node affinity/selector." in condition["message"]
    events = cluster.kubectl("get", "events", "--field-selector=involvedObject.name=huge")
    assert "FailedScheduling" in events
    assert scheduler.end() == 0
    assert scheduler.says("1000 bound"), scheduler.log.read_text()[-500:]
    told = subprocess.run(
        [sys.executable, "-m", "kemu.doors.cli.main", "trace", str(tmp_path / "run"), "huge"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "huge" in told.stdout


def test_a_pod_in_need_preempts_on_a_real_cluster(cluster: clusters.Cluster, begin: Callable[..., Scheduler]) -> None:
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000,
    }  # fmt: skip
    _create(cluster, [_node("full", only="full"), urgent])
    scheduler = begin("log")
    big: dict[str, Any] = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "6"}}}]}
    there: dict[str, Any] = {"nodeSelector": {"only": "full"}}
    _create(cluster, [_pod("victim", **there, **big)])
    _until(lambda: _bound(cluster, ["victim"]), "the victim is not bound")
    _create(cluster, [_pod("urgent", priorityClassName="urgent", **there, **big)])
    _until(lambda: _bound(cluster, ["urgent"]), "the preemptor is not bound")
    assert "victim" not in _nodes_of(cluster)
    assert "Preempted" in cluster.kubectl("get", "events", "--field-selector=involvedObject.name=victim")
    assert scheduler.end(signal.SIGINT) == 0


def test_a_plugin_in_python_decides_on_a_real_cluster(
    cluster: clusters.Cluster, begin: Callable[..., Scheduler]
) -> None:
    _create(cluster, [_node("weak", **{"example.com/watts": "100", "only": "power"}),
                      _node("strong", **{"example.com/watts": "300", "only": "power"})])  # fmt: skip
    scheduler = begin("log", "--scheduler-name=power", "--plugin=power_budget:PowerBudget=50")
    spec: dict[str, Any] = {"schedulerName": "power", "nodeSelector": {"only": "power"}}
    names = [f"watts-{number}" for number in range(3)]
    for name in names:
        _create(cluster, [_pod(name, {"example.com/watts": "150"}, **spec)])
    _until(lambda: scheduler.says("node(s) had no power left"), "the third pod found room")
    nodes = _nodes_of(cluster)
    assert [nodes[name] for name in names] == ["strong", "strong", ""]
    assert scheduler.end() == 0


def test_of_two_replicas_one_works_and_the_other_takes_over(
    cluster: clusters.Cluster, begin: Callable[..., Scheduler]
) -> None:
    first = begin("first", "--leader-elect")
    _until(lambda: first.says("leads: holds"), "nobody leads")
    second = begin("second", "--leader-elect")
    _until(lambda: second.says("waits: "), "the second one does not wait")
    _create(cluster, [_pod("led")])
    _until(lambda: first.says("default/led ->"), "the leader does not work")
    assert first.end() == 0
    _until(lambda: second.says("leads: holds"), "the lease was not given back")
    _create(cluster, [_pod("followed")])
    _until(lambda: second.says("default/followed ->"), "the second one does not work")
    second.process.kill()
    second.process.wait(20)
    third = begin("third", "--leader-elect")
    _until(lambda: third.says("leads: holds"), "the lease of a dead leader does not end")
    assert third.end() == 0


def test_a_restart_of_the_api_server_is_survived(cluster: clusters.Cluster, begin: Callable[..., Scheduler]) -> None:
    scheduler = begin("log")
    _create(cluster, [_pod("before")])
    _until(lambda: _bound(cluster, ["before"]), "not bound before")
    cluster.restart_server()
    _create(cluster, [_pod("after")])
    _until(lambda: _bound(cluster, ["after"]), "not bound after")
    assert scheduler.end() == 0
    assert scheduler.says("the cluster cannot be read"), "nobody was told"
