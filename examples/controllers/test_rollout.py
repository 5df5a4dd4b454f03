"""A rollout whose pods are ready after 60 s, and a node that fails: minutes of the cluster, seconds of the test."""

from __future__ import annotations

import time
from typing import Any

import kubernetes


def deployment(image: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/ready", "port": 80}, "initialDelaySeconds": 60}
    return {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": image, "readinessProbe": probe}]},
            },
        },
    }


def test_a_rollout_and_the_loss_of_a_node(kemu_up: Any) -> None:
    begun = time.monotonic()
    with kubernetes.config.new_client_from_config(str(kemu_up.kubeconfig)) as client:
        apps, core = kubernetes.client.AppsV1Api(client), kubernetes.client.CoreV1Api(client)
        apps.create_namespaced_deployment("default", deployment("web:1"))
        kemu_up.step(until="deployment/web rolledOut")
        assert kemu_up.now_s >= 60

        apps.patch_namespaced_deployment("web", "default", deployment("web:2"))
        kemu_up.step(until="deployment/web rolledOut")
        assert kemu_up.now_s >= 4 * 60  # one pod after the other

        lost = core.list_namespaced_pod("default", label_selector="app=web").items[0].spec.node_name
        kemu_up.chaos({"crash": {"node": lost, "restart": False}})
        failed_s = kemu_up.now_s
        kemu_up.step(until=f"node/{lost} NotReady")  # after 40 s of silence
        kemu_up.step(until="deployment/web .status.readyReplicas!=3")
        kemu_up.step(until="deployment/web .status.readyReplicas=3")  # its pods are evicted after 300 s
        assert kemu_up.now_s - failed_s > 340
    print(f"{kemu_up.now_s:.0f} s of the cluster in {time.monotonic() - begun:.1f} s")
