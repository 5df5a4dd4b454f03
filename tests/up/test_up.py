"""``kemu up`` as a process: started, asked over HTTPS, ended by a signal."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
from pathlib import Path

import pytest

from tests.up.processes import STARTS_WITHIN_S, up


def test_a_deployment_runs_and_ctrl_c_leaves_a_judged_run(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "2") as cluster:
        assert cluster.up["took_s"] < STARTS_WITHIN_S
        assert oct(os.stat(cluster.up["kubeconfig"]).st_mode & 0o777) == "0o600"
        assert oct(os.stat(cluster.folder).st_mode & 0o777) == "0o700", "the log has what clients put into Secrets"
        nodes = cluster.ask("/api/v1/nodes")["items"]
        assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2"]
        for node in nodes:
            status = node["status"]
            assert status["nodeInfo"]["kubeletVersion"] == cluster.ask("/version")["gitVersion"]
            assert {one["type"] for one in status["addresses"]} == {"InternalIP", "Hostname"}
            assert "node-role.kubernetes.io/worker" in node["metadata"]["labels"]
        namespaces = [one["metadata"]["name"] for one in cluster.ask("/api/v1/namespaces")["items"]]
        assert namespaces == ["default", "kube-node-lease", "kube-public", "kube-system"]
        service = cluster.ask("/api/v1/namespaces/default/services/kubernetes")
        assert service["spec"]["clusterIP"] == "10.96.0.1"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            cluster.ask("/api/v1/nodes", token="")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            cluster.ask("/api/v1/nodes", token="another")

        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
        }
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
        cluster.ask("/apis/apps/v1/namespaces/default/deployments", body)
        found = cluster.eventually(
            "/apis/apps/v1/namespaces/default/deployments/web",
            lambda deployment: deployment.get("status", {}).get("readyReplicas") == 3,
        )
        assert found["status"]["availableReplicas"] == 3

        team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        cluster.ask("/api/v1/namespaces", team)
        account = "/api/v1/namespaces/team/serviceaccounts"
        cluster.eventually(account, lambda found: [one["metadata"]["name"] for one in found["items"]] == ["default"])
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
        token = cluster.ask(f"{account}/default/token", asked)["status"]["token"]
        with pytest.raises(urllib.error.HTTPError, match="403"):
            cluster.ask("/api/v1/nodes", token=token)

        code, said = cluster.end()
        port = int(cluster.cluster["server"].rpartition(":")[2])
    assert code == 0
    assert [one["what"] for one in said[-1:]] == ["verdict"]
    assert any(one.get("event", {}).get("what") == "deployment web is created" for one in said)
    verdict = json.loads((cluster.folder / "verdict.json").read_text())
    assert verdict["runtime"] == "wall"
    assert verdict["ended"] == "stopped"
    assert verdict["counts"]["pods_running"] == 3
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=1):
        pass
    done = subprocess.run(
        [sys.executable, "-m", "kemu.doors.cli.main", "story", str(cluster.folder), "--json"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "running" in {line["kind"] for line in json.loads(done.stdout)["lines"]}


def test_a_scenario_without_tls_ends_after_its_time_and_at_sigterm(tmp_path: Path) -> None:
    words = ("races/more-pods-than-room", "--insecure-http", "--speed", "20")
    with up(tmp_path, *words, "--for", "60s") as cluster:
        assert cluster.cluster["server"].startswith("http://127.0.0.1:")
        cluster.eventually("/api/v1/pods", lambda pods: len(pods["items"]) > 0)
        assert cluster.process.wait(timeout=30) in (0, 1)
    assert json.loads((cluster.folder / "verdict.json").read_text())["ended"] == "deadline"
    with up(tmp_path, *words) as cluster:
        code, said = cluster.end(signal.SIGTERM)
        assert code in (0, 1, 3)
        assert said[-1]["ended"] == "stopped"


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "200") as cluster:
        cluster.process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        cluster.process.send_signal(signal.SIGINT)
        out, errors = cluster.process.communicate(timeout=30)
    # It may have been over by then.
    assert cluster.process.returncode in (0, 130)
    assert not errors
    assert "Traceback" not in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--insecure-http", "--host", "0.0.0.0"], "loopback only"),
        (["races/more-pods-than-room", "--nodes", "3"], "--nodes is for a cluster without a scenario"),
        (["--port", "70000"], "ports end at 65535"),
        (["--for", "soon"], "duration"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], says: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kemu.doors.cli.main", "up", "--out", str(tmp_path / "run"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "kemu.doors.cli.main", "up", "--out", str(tmp_path), "--port"]
        done = subprocess.run([*command, str(taken.getsockname()[1])], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "choose another port" in done.stderr


def test_a_full_run_log_takes_no_more_and_the_verdict_says_so(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "20", "--insecure-http", "--log-limit", "1") as cluster:
        log = cluster.folder / "run.kemu"
        spec = {"containers": [{"name": "a", "image": "a"}]}
        for number in range(60):
            metadata = {"name": f"p{number}", "annotations": {"text": "x" * 50_000}}
            cluster.ask("/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
        time.sleep(3)
        size = log.stat().st_size
        assert size >= 1 << 13, "compressed"
        cluster.ask("/api/v1/namespaces/default/pods", {"metadata": {"name": "last"}, "spec": spec})
        cluster.eventually("/api/v1/namespaces/default/pods/last", lambda pod: pod["status"]["phase"] == "Running")
        time.sleep(2)
        assert log.stat().st_size == size < 4 << 20
        code, said = cluster.end()
    verdict = said[-1]
    assert code in (0, 3), verdict
    assert verdict["ended"] == "full"
    assert "the first" in verdict["headline"]
    assert "--log-limit" in verdict["headline"]
    failed = [check for check in verdict["checks"] if check["holds"] is False]
    assert not failed


@pytest.mark.parametrize("of_scenario", [False, True])
def test_a_pod_with_a_claim_starts_without_any_switch(of_scenario: bool, tmp_path: Path) -> None:
    scenario = tmp_path / "it.yaml"
    scenario.write_text("apiVersion: kemu.dev/v1\nkind: Scenario\nspec: {nodes: [{name: n}]}\n")
    with up(tmp_path, *([str(scenario)] if of_scenario else ["--nodes", "1"])) as cluster:
        modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        spec = {**modes, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
        cluster.ask("/api/v1/persistentvolumes", volume)
        spec = {**modes, "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
        cluster.ask("/api/v1/namespaces/default/persistentvolumeclaims", claim)
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
        spec = {"containers": [{"name": "main", "image": "x"}], "volumes": volumes}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        cluster.ask("/api/v1/namespaces/default/pods", pod)
        cluster.eventually("/api/v1/namespaces/default/pods/p", lambda found: found["status"]["phase"] == "Running")
        cluster.end()
