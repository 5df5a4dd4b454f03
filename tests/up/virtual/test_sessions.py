"""A cluster in virtual time behind its gateway, with real clients over TLS; what they did is repeated byte for byte."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from kemu.errors import KemuError
from kemu.lab.scenario.playing.replaying import replays
from kemu.lab.up import embedded
from kemu.lab.up.virtual.replays import setting

DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "minReadySeconds": 60,
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]},
        },
    },
}


def _clients(cluster: embedded.Cluster) -> tuple[Any, Any]:
    found = kubernetes.config.new_client_from_config(str(cluster.kubeconfig))
    return kubernetes.client.CoreV1Api(found), kubernetes.client.AppsV1Api(found)


def test_a_rollout_and_the_loss_of_a_node_take_minutes_of_virtual_time_only(tmp_path: Path) -> None:
    begun = time.monotonic()
    with embedded.up(nodes=3, folder=tmp_path / "run") as cluster:
        core, apps = _clients(cluster)
        apps.create_namespaced_deployment("default", DEPLOYMENT)
        assert cluster.step(until="deployment/web rolledOut")
        assert 60 <= cluster.now_s < 70
        apps.patch_namespaced_deployment(
            "web", "default", {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}}
        )
        assert cluster.step(until="deployment/web rolledOut")
        assert 180 <= cluster.now_s < 320
        lost = core.list_namespaced_pod("default").items[0].spec.node_name
        cluster.chaos({"crash": {"node": lost, "restart": False}})
        before_s = cluster.now_s
        assert cluster.step(until=f"node/{lost} NotReady")
        assert 30 < cluster.now_s - before_s < 60
        assert cluster.step(until="deployment/web .status.readyReplicas!=3")
        assert cluster.step(until="deployment/web .status.readyReplicas=3")
        assert 300 < cluster.now_s - before_s < 420
        assert all(
            pod.spec.node_name != lost
            for pod in core.list_namespaced_pod("default").items
            if pod.metadata.deletion_timestamp is None
        )
    # Far more than it takes on a quiet machine.
    assert time.monotonic() - begun < 60
    (found,) = replays.replay(tmp_path / "run", setting=setting)
    assert found.difference is None
    assert not found.interrupted


def test_only_administrators_step_and_strike(tmp_path: Path) -> None:
    with embedded.up(nodes=1, folder=tmp_path / "run") as cluster:
        import ssl

        context = ssl._create_unverified_context()
        for token, code in (("", 403), ("wrong", 401)):
            for method, what in (("POST", "step"), ("GET", "clock"), ("POST", "chaos"), ("DELETE", "chaos/x")):
                request = urllib.request.Request(f"{cluster.url}/kemu/v1/{what}", b"{}", method=method)
                if token:
                    request.add_header("Authorization", f"Bearer {token}")
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(request, context=context)
                assert caught.value.code == code
                assert "error" in json.loads(caught.value.read())
        with pytest.raises(KemuError, match="no fault nothing is in force"):
            cluster.heal("nothing")
        with pytest.raises(KemuError, match="kubelet/node-7"):
            cluster.chaos({"pause": {"actor": "kubelet/node-7"}})
