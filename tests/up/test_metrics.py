"""``kemu up --metrics``: what real Prometheus would fetch from a cluster."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.up.processes import Process, up

_OTHERS = ("kube-scheduler", "kube-controller-manager", "kubelet", "kube-state-metrics")


def _samples(cluster: Process, path: str) -> dict[str, list[Any]]:
    with urllib.request.urlopen(f"{cluster.cluster['server']}{path}", timeout=30) as answer:
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = answer.read().decode()
    found: dict[str, list[Any]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def _code(cluster: Process, path: str) -> int:
    try:
        _samples(cluster, path)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def _sum(samples: dict[str, list[Any]], name: str, /, **labels: str) -> float:
    return sum(one.value for one in samples.get(name, ()) if labels.items() <= one.labels.items())


def test_each_component_tells_its_metrics(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "2", "--metrics", "--insecure-http") as cluster:
        containers = {"containers": [{"name": "main", "image": "nginx"}]}
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": containers}}  # fmt: skip
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
        path = "/apis/apps/v1/namespaces/default/deployments"
        cluster.ask(path, body)
        cluster.eventually(f"{path}/web", lambda one: one.get("status", {}).get("readyReplicas") == 3)
        servers = _samples(cluster, "/metrics")
        # One by the client, through the gateway; three by kemu's own controller.
        created = {"verb": "POST", "code": "201", "subresource": "", "scope": "resource"}
        assert _sum(servers, "apiserver_request_total", resource="deployments", **created) == 1
        assert _sum(servers, "apiserver_request_total", resource="pods", **created) == 3
        assert _sum(servers, "apiserver_storage_objects", resource="deployments.apps") == 1
        assert _sum(servers, "apiserver_longrunning_requests", resource="pods") > 2
        scheduler, controllers, kubelets, state = (_samples(cluster, f"/kemu/v1/metrics/{one}") for one in _OTHERS)
        assert _sum(scheduler, "scheduler_schedule_attempts_total", result="scheduled") == 3
        assert _sum(scheduler, "scheduler_pending_pods") == 0
        assert _sum(controllers, "workqueue_adds_total", name="deployment") > 0
        assert _sum(kubelets, "kubelet_running_pods") == 3
        assert {one.labels["instance"] for one in kubelets["kubelet_running_pods"]} <= {"node-1", "node-2"}
        assert _sum(state, "kube_deployment_status_replicas_available", deployment="web") == 3
        with pytest.raises(urllib.error.HTTPError, match="404"):
            _samples(cluster, "/kemu/v1/metrics/etcd")
        assert _sum(_samples(cluster, "/kemu/v1/metrics/kubelet/node-1"), "kubelet_node_name") == 1
        for which in ("kubelet/node-9", "kube-scheduler/other/0"):
            with pytest.raises(urllib.error.HTTPError, match="503"):
                _samples(cluster, f"/kemu/v1/metrics/{which}")
        cluster.ask("/kemu/v1/chaos", {"for": "30s", "crash": {"actor": "scheduler/default-scheduler/0"}})
        end = time.monotonic() + 10
        while _code(cluster, "/kemu/v1/metrics/kube-scheduler") != 503:
            assert time.monotonic() < end
            time.sleep(0.05)
        # A new look tells what has happened since.
        cluster.ask(f"{path}/web", method="DELETE")
        end = time.monotonic() + 20
        while _sum(_samples(cluster, "/kemu/v1/metrics/kube-state-metrics"), "kube_deployment_spec_replicas"):
            assert time.monotonic() < end
            time.sleep(0.05)


def test_without_the_option_there_are_only_requests_of_clients(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "1", "--insecure-http") as cluster:
        assert "apiserver_storage_objects" not in _samples(cluster, "/metrics")
        with pytest.raises(urllib.error.HTTPError, match="400"):
            _samples(cluster, "/kemu/v1/metrics/kubelet")
