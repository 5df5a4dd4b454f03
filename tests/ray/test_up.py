"""``kemu up --runtime ray``: the gateway in the driver, the actors in processes of Ray."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.up.processes import up

pytestmark = pytest.mark.ray


def test_pods_run_in_cells(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "2", "--runtime", "ray") as cluster:
        pod = {"containers": [{"name": "main", "image": "nginx"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": pod}
        cluster.ask("/api/v1/namespaces/default/pods", body)
        found = cluster.eventually(
            "/api/v1/namespaces/default/pods/web", lambda pod: pod.get("status", {}).get("phase") == "Running"
        )
        assert found["status"]["podIP"].startswith("10.128.")
        code, said = cluster.end()
    assert code == 0
    assert (said[-1]["runtime"], said[-1]["ended"]) == ("ray", "stopped")
    assert not list((cluster.folder / "cells" / "logs").glob("*.segment"))
