"""A cluster that stands is read, and nothing is written there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kemu.doors.cli.main import main
from tests.up.processes import up


def test_a_cluster_that_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with up(tmp_path, "--nodes", "2") as cluster:
        pod = {"metadata": {"name": "web-1"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
        cluster.ask("/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", **pod})
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"key": "hidden"}}
        cluster.ask("/api/v1/namespaces/default/secrets", secret)
        cluster.eventually("/api/v1/namespaces/default/pods/web-1", lambda found: found["status"]["phase"] == "Running")
        kubeconfig = str(cluster.up["kubeconfig"])
        assert main(["import", "--kubeconfig", kubeconfig, "--out", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["nodes"], told["pods"]) == (2, 1)
    (pod_file,) = (tmp_path / "out").glob("manifests/default/pods.yaml")
    (kept,) = yaml.safe_load_all(pod_file.read_text())
    assert kept["spec"]["nodeName"] in ("node-1", "node-2")
    assert not any("hidden" in file.read_text() for file in (tmp_path / "out").rglob("*.yaml"))


def test_one_that_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {}}],
        "current-context": "a",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    assert main(["import", "--kubeconfig", str(tmp_path / "config"), "--out", str(tmp_path / "out")]) == 2
    assert "http://127.0.0.1:9: cannot be reached" in capsys.readouterr().err
