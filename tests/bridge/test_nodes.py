"""``kemu nodes``: kemu's kubelets as nodes of a cluster that is not their own, here that of ``kemu up``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.emulated.bridge import connections, nodes, shared_watches
from kemu.emulated.client import clients, informers
from kemu.messages.k8s import core_v1_pb2
from tests.bridge.test_against_kemu import START_S, until, with_process
from tests.realkube import binaries, clusters

KEMU = (sys.executable, "-m", "kemu.doors.cli.main")
SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: without-kubelets}
spec: {duration: 1h, nodes: [{name: own, unschedulable: true}], schedulers: [{name: default-scheduler}]}
"""
SMALL = (
    "{allocatable: {cpu: 4, memory: 8Gi}, kubelet: {evictionHard: {memory.available: 1Gi}, housekeepingInterval: 1s}}"
)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a cluster with one Node of its own, without a kubelet. Its user ``viewer`` may do nothing."""
    folder = tmp_path_factory.mktemp("up")
    (folder / "scenario.yaml").write_text(SCENARIO)
    with _started(
        folder / "log", "up", str(folder / "scenario.yaml"), "--without=kubelets", f"--out={folder / 'run'}",
        f"--kubeconfig={folder / 'kubeconfig'}", "--user=viewer",
    ) as up:  # fmt: skip
        _until(lambda: "Ctrl-C ends it" in (folder / "log").read_text(), up)
        yield folder / "kubeconfig"


class _started:  # noqa: N801  (a function would lose its type)
    """A command of kemu, ended at the end at the latest."""

    def __init__(self, log: Path, *words: str) -> None:
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [*KEMU, *words], stdout=output, stderr=subprocess.STDOUT, env=dict(os.environ)
            )
        self.log = log

    def __enter__(self) -> _started:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)


def _until(true: Callable[[], bool], process: _started | None = None) -> None:
    deadline = time.monotonic() + START_S
    while not true():
        log = "" if process is None else process.log.read_text()
        assert process is None or process.process.poll() is None, log
        assert time.monotonic() < deadline, log
        time.sleep(0.05)


def _kubelets(kubeconfig: Path, log: Path, *words: str) -> _started:
    process = _started(log, "nodes", f"--kubeconfig={kubeconfig}", *words)
    _until(lambda: "are registered" in log.read_text(), process)
    return process


class _Api:
    """Requests as the administrator of the kubeconfig."""

    def __init__(self, kubeconfig: Path, user: str = "") -> None:
        found = yaml.safe_load(kubeconfig.read_text())
        self.url = found["clusters"][0]["cluster"]["server"]
        self.token = next(one["user"]["token"] for one in found["users"] if not user or one["name"].startswith(user))
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE

    def __call__(self, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self.url + path, None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, context=self.tls, timeout=30) as answer:
            return json.load(answer)

    def names(self, path: str) -> list[str]:
        return [one["metadata"]["name"] for one in self(path)["items"]]


PODS = "/api/v1/namespaces/default/pods"


def _pod(name: str, annotations: dict[str, Any] | None = None, node: str = "", **requests: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": {key: json.dumps(value) for key, value in (annotations or {}).items()},
        },
        "spec": {"containers": [container], **({"nodeName": node} if node else {})},
    }


def test_kubelets_do_over_the_rest_api_what_they_do_in_kemu(kubeconfig: Path, tmp_path: Path) -> None:
    api = _Api(kubeconfig)
    with _kubelets(
        kubeconfig, tmp_path / "log", "--count=3", f"--node={SMALL}", f"--out={tmp_path / 'run'}"
    ) as kubelets:
        grown = {"kemu.dev/usage": {"memory": {"ramp": {"from": "0", "to": "8Gi", "over": "2s"}}}}
        for pod in (
            _pod("runs"),
            _pod("too-big", node="kemu-1", cpu="64"),
            _pod("greedy", grown, node="kemu-2"),
        ):
            api(PODS, pod)

        def states() -> dict[str, tuple[str, str]]:
            found = api(PODS)["items"]
            return {
                one["metadata"]["name"]: (one["status"].get("phase", ""), one["status"].get("reason", ""))
                for one in found
            }

        _until(
            lambda: (
                states()["runs"][0] == "Running"
                and states()["too-big"] == ("Failed", "OutOfcpu")
                and states()["greedy"] == ("Failed", "Evicted")
            ),
            kubelets,
        )
        running = api(f"{PODS}/runs")
        node = api(f"/api/v1/nodes/{running['spec']['nodeName']}")
        assert running["status"]["podIP"].rpartition(".")[0] == node["spec"]["podCIDR"].partition(".0/")[0]
        assert [one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"] == ["True"]
        assert set(api.names("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")) >= {"kemu-1", "kemu-2"}

        port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        address = next(one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP")
        logs = f"https://{address}:{port}/containerLogs/default/runs/c"
        with urllib.request.urlopen(f"{logs}?tailLines=5", context=api.tls, timeout=30) as answer:
            assert answer.read().decode().startswith("c starts: image x")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(logs.replace("/runs/", "/nothing/"), context=api.tls, timeout=30)
        assert refused.value.code == 404
        refused.value.close()

        assert kubelets.end() == 0
    assert "kemu-1 rejects default/too-big: OutOfcpu" in kubelets.log.read_text()
    assert "kemu-2 evicts default/greedy" in kubelets.log.read_text()
    assert api.names("/api/v1/nodes") == ["own"]
    assert "kemu-1" not in api.names("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
    traced = subprocess.run(
        [*KEMU, "trace", str(tmp_path / "run"), "greedy"], capture_output=True, text=True, check=True
    )
    assert "low on resource: memory" in " ".join(traced.stdout.split())


@pytest.mark.thorough
def test_nodes_that_a_killed_process_left_are_taken_over_or_removed(kubeconfig: Path, tmp_path: Path) -> None:
    api = _Api(kubeconfig)
    with _kubelets(kubeconfig, tmp_path / "log", "--count=2", "--name-prefix=left-") as kubelets:
        kubelets.end(signal.SIGKILL)
    assert set(api.names("/api/v1/nodes")) == {"own", "left-1", "left-2"}
    with _kubelets(kubeconfig, tmp_path / "again", "--count=2", "--name-prefix=left-", "--keep") as kubelets:
        kubelets.end(signal.SIGINT)
    assert set(api.names("/api/v1/nodes")) == {"own", "left-1", "left-2"}
    done = subprocess.run(
        [*KEMU, "nodes", f"--kubeconfig={kubeconfig}", "--remove"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "2 nodes removed\n"
    assert api.names("/api/v1/nodes") == ["own"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--count=1", "--name-prefix=own", "--set=nodes[0].namePrefix=null"], "namePrefix"),
        (["--count=1", "--context=viewer@kemu"], "may not get nodes, list nodes"),
        (["--count=1", "--node=[]"], "--node: not a mapping"),
        (["--count=1", "--node={allocatable: {cpu: lots}}"], "lots"),
        ([], "--count N or a scenario is needed"),
        (["races/two-schedulers-one-node", "--count=1"], "--count is for equal nodes"),
    ],
)
def test_mistakes_are_told_before_anything_begins(kubeconfig: Path, words: list[str], said: str) -> None:
    done = subprocess.run([*KEMU, "nodes", f"--kubeconfig={kubeconfig}", *words], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert _Api(kubeconfig).names("/api/v1/nodes") == ["own"]


def test_a_node_of_the_clusters_own_is_not_touched(kubeconfig: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "one.yaml"
    scenario.write_text(SCENARIO)
    done = subprocess.run(
        [*KEMU, "nodes", str(scenario), f"--kubeconfig={kubeconfig}"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "nodes of its own with these names: own" in done.stderr
    assert nodes.LABEL not in _Api(kubeconfig)("/api/v1/nodes/own")["metadata"]["labels"]


def test_many_clients_share_one_watch(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sees the pods of its node, and no others, whether they were there before it or come later."""
    opened: list[str] = []
    watch = connections.Connection.watch

    def counted(self: connections.Connection, request: Any) -> Any:
        opened.append(request.path)
        return watch(self, request)

    monkeypatch.setattr(connections.Connection, "watch", counted)

    async def use(client: clients.Client) -> None:
        await client.create(_message(_pod("before", node="n1")))
        views = [informers.Informer(client, "pods", field_selector=f"spec.nodeName=n{n}") for n in range(4)]
        for view in views:
            await view.synced()
        await client.create(_message(_pod("after", node="n1")))
        await client.create(_message(_pod("elsewhere", node="n2")))
        await until(lambda: "default/after" in views[1].store and "default/elsewhere" in views[2].store)
        late = informers.Informer(client, "pods", field_selector="spec.nodeName=n1")
        await late.synced()
        assert sorted(late.store) == ["default/after", "default/before"]
        assert [sorted(view.store) for view in views] == [
            [], ["default/after", "default/before"], ["default/elsewhere"], [],
        ]  # fmt: skip
        for name in ("before", "after", "elsewhere"):
            await client.delete("pods", name, "default", grace_period_seconds=0)
        await until(lambda: not any(view.store for view in (*views, late)))

    asyncio.run(with_process(kubeconfig, [], use, shares=("pods",)))
    assert opened.count("/api/v1/pods") == 1


def test_a_client_that_is_too_late_lists_again(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_watches, "KEPT", 2)

    async def use(client: clients.Client) -> None:
        first = informers.Informer(client, "pods", field_selector="spec.nodeName=n1")
        await first.synced()
        stale = informers.Informer(client, "pods", field_selector="spec.nodeName=n1")
        for number in range(5):
            await client.create(_message(_pod(f"late-{number}", node="n1")))
        await until(lambda: len(first.store) == 5)
        # As one whose list was answered long before it watches.
        stale.start_from([], first.revision - 4)
        await until(lambda: len(stale.store) == 5)
        for number in range(5):
            await client.delete("pods", f"late-{number}", "default", grace_period_seconds=0)

    logged = asyncio.run(with_process(kubeconfig, [], use, shares=("pods",)))
    assert "watch.expired" in logged or logged.count("watch.listed") >= 2


def _message(pod: dict[str, Any]) -> core_v1_pb2.Pod:
    from kemu.emulated.objects.conversion import convert

    pod = {key: value for key, value in pod.items() if key not in ("kind", "apiVersion")}
    pod["metadata"]["namespace"] = "default"
    return convert.from_json(core_v1_pb2.Pod, pod)


@pytest.mark.skipif(
    bool(binaries.missing("etcd", "kube-apiserver", "kubectl")), reason="not beside the project: the real parts"
)
def test_kubectl_reads_logs_of_a_real_cluster(tmp_path: Path) -> None:
    with clusters.Cluster.start(tmp_path / "cluster") as real:
        with _kubelets(real.kubeconfig, tmp_path / "log", "--count=2") as kubelets:
            real.kubectl("create", "-f", "-", stdin=json.dumps(_pod("runs", node="kemu-1")))
            real.kubectl("wait", "--for=condition=Ready", "pod/runs", "--timeout=30s")
            assert real.kubectl("logs", "runs").startswith("c starts: image x")
            assert "run no program" in real.run_kubectl("exec", "runs", "--", "ls").stderr
            kubelets.end()
        assert "No resources found" in real.run_kubectl("get", "nodes").stderr
