"""``metrics.k8s.io``: what pods and nodes use."""

from __future__ import annotations

import json
from typing import Any

from kemu.emulated.gateway.settings import Settings
from tests.gateway.gateway_cluster import Cluster, run

BASE = "/apis/metrics.k8s.io/v1beta1"


def _pod(name: str, node: str, usage: dict[str, Any] | None) -> dict[str, Any]:
    annotations = {} if usage is None else {"kemu.dev/usage": json.dumps(usage)}
    containers = [{"name": one, "image": "x"} for one in ("main", "side")]
    metadata = {"name": name, "labels": {"app": name}, "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": containers},
    }


async def _set_up(cluster: Cluster) -> None:
    for name in ("n1", "n2"):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        assert (await cluster.http.post("/api/v1/nodes", json=node)).status_code == 201
    pods = "/api/v1/namespaces/default/pods"
    # The working set counts: of the files that are cached, the active ones.
    side = {"memory": "5Mi", "active_file": "5Mi", "inactive_file": "9Mi"}
    usage = {"cpu": "301m", "memory": "100Mi", "containers": {"side": side}}
    for body in (_pod("busy", "n1", usage), _pod("idle", "n1", None), _pod("new", "n2", usage)):
        made = (await cluster.http.post(pods, json=body)).json()
        if body["metadata"]["name"] == "new":
            continue
        running = {"state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}, "image": "x"}
        made["status"] = {"phase": "Running", "containerStatuses": [{"name": n, **running} for n in ("main", "side")]}
        answer = await cluster.http.put(f"{pods}/{body['metadata']['name']}/status", json=made)
        assert answer.status_code == 200, answer.text


def test_pods_use_what_their_annotations_say() -> None:
    async def main(cluster: Cluster) -> None:
        await _set_up(cluster)
        found = (await cluster.http.get(f"{BASE}/namespaces/default/pods")).json()
        assert (found["kind"], found["apiVersion"]) == ("PodMetricsList", "metrics.k8s.io/v1beta1")
        used = {one["metadata"]["name"]: {c["name"]: c["usage"] for c in one["containers"]} for one in found["items"]}
        assert used == {
            "busy": {"main": {"cpu": "151m", "memory": "51200Ki"}, "side": {"cpu": "150m", "memory": "61440Ki"}},
            "idle": {"main": {"cpu": "0m", "memory": "0Ki"}, "side": {"cpu": "0m", "memory": "0Ki"}},
        }, "what does not run is not measured"
        one = (await cluster.http.get(f"{BASE}/namespaces/default/pods/busy")).json()
        assert one["kind"] == "PodMetrics"
        assert one["window"] == "10s"
        selected = (await cluster.http.get(f"{BASE}/pods?labelSelector=app%3Didle")).json()
        assert [item["metadata"]["name"] for item in selected["items"]] == ["idle"]
        missing = await cluster.http.get(f"{BASE}/namespaces/default/pods/new")
        assert (missing.status_code, missing.json()["reason"]) == (404, "NotFound")

    run(main)


def test_nodes_use_what_their_pods_do_and_what_their_machines_do() -> None:
    async def main(cluster: Cluster) -> None:
        await _set_up(cluster)
        found = (await cluster.http.get(f"{BASE}/nodes")).json()
        assert {one["metadata"]["name"]: one["usage"] for one in found["items"]} == {
            "n1": {"cpu": "351m", "memory": "112640Ki"},
            "n2": {"cpu": "50m", "memory": "0Ki"},
        }
        one = (await cluster.http.get(f"{BASE}/nodes/n1")).json()
        assert (one["kind"], one["usage"]["cpu"]) == ("NodeMetrics", "351m")
        assert (await cluster.http.get(f"{BASE}/nodes/n3")).status_code == 404
        assert (await cluster.http.post(f"{BASE}/nodes", json={})).status_code == 405

    run(main, settings=Settings(node_usage=lambda node, second: {"cpu": 50}))


def test_only_who_may_reads_them_and_discovery_knows_the_group() -> None:
    async def main(cluster: Cluster) -> None:
        answer = await cluster.http.get(f"{BASE}/nodes", headers={"Impersonate-User": "somebody"})
        assert answer.status_code == 403
        text = 'cannot list resource "nodes" in API group "metrics.k8s.io" at the cluster scope'
        assert answer.json()["message"].endswith(text)
        groups = (await cluster.http.get("/apis")).json()["groups"]
        assert "metrics.k8s.io" in [one["name"] for one in groups]
        listed = (await cluster.http.get(BASE)).json()["resources"]
        assert [(one["name"], one["kind"], one["verbs"]) for one in listed] == [
            ("nodes", "NodeMetrics", ["get", "list"]),
            ("pods", "PodMetrics", ["get", "list"]),
        ]

    run(main)
