"""The real parts start, work together, and leave nothing running."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.realkube import binaries, clusters, processes

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\n"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
"""


def test_a_deployment_rolls_out_on_real_parts(tmp_path: Path) -> None:
    binaries.require("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kwok", "kubectl")
    with clusters.Cluster.start(tmp_path) as cluster:
        cluster.start_controller_manager()
        cluster.start_scheduler()
        cluster.start_kwok()
        cluster.kubectl("create", "-f", "-", stdin=NODE + "---" + DEPLOYMENT)
        cluster.kubectl("rollout", "status", "deployment/web", "--timeout=60s", timeout_s=90)
        assert cluster.kubectl("get", "deployment", "web", "-o=jsonpath={.status.readyReplicas}") == "2"
        started = [process.pid for process in cluster.processes]
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_that_ends_early_is_told_with_its_log(tmp_path: Path) -> None:
    process = processes.Process("broken", ["/bin/sh", "-c", "echo no such etcd; exit 3"], tmp_path)
    process.stop()
    with pytest.raises(RuntimeError, match=r"broken ended with (3|-15)"):
        process.check()


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert binaries.missing("kubectl").startswith("not beside the project: kubectl v0.36.3 is not in ")
