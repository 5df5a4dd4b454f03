"""Answers whose text or order kubectl shows, as a real kube-apiserver v1.36.3 gives them (see ``tests/kubectl``)."""

from __future__ import annotations

from typing import Any

from kemu.emulated.gateway.requests import envelopes
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster, pod

JOBS = "/apis/batch/v1/namespaces/default/jobs"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
PODS = "/api/v1/namespaces/default/pods"


def _job(name: str, **metadata: Any) -> dict[str, Any]:
    template: dict[str, Any] = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    return {"metadata": {"name": name, **metadata}, "spec": {"template": template}}


def test_a_job_without_labels_has_those_of_its_pods_the_generated_ones_too() -> None:
    async def main(cluster: Cluster) -> None:
        made = (await cluster.http.post(JOBS, json=_job("plain"))).json()
        assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
        assert made["metadata"]["labels"]["job-name"] == "plain"
        labelled = _job("labelled", labels={"a": "b"})
        labelled["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
        made = (await cluster.http.post(JOBS, json=labelled)).json()
        assert made["metadata"]["labels"] == {"a": "b"}

    gateway_cluster.run(main)


def test_causes_come_in_the_order_of_kubernetes() -> None:
    async def main(cluster: Cluster) -> None:
        wrong = pod("a")
        wrong["spec"]["containers"].append({"name": "main", "image": "x", "imagePullPolicy": "Now"})
        causes = (await cluster.http.post(PODS, json=wrong)).json()["details"]["causes"]
        assert [cause["field"] for cause in causes] == [
            "spec.containers[1].imagePullPolicy",
            "spec.containers[1].name",
        ]
        template = {"metadata": {"labels": {"app": "b"}}, "spec": {**pod()["spec"], "restartPolicy": "Never"}}
        spec = {"replicas": -1, "minReadySeconds": -1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
        answer = await cluster.http.post(
            "/apis/apps/v1/namespaces/default/deployments", json={"metadata": {"name": "d"}, "spec": spec}
        )
        assert [cause["field"] for cause in answer.json()["details"]["causes"]][:4] == [
            "spec.replicas",
            "spec.template.metadata.labels",
            "spec.template.spec.restartPolicy",
            "spec.minReadySeconds",
        ]

    gateway_cluster.run(main)


def test_an_update_creates_leases_and_has_the_name_of_its_url() -> None:
    async def main(cluster: Cluster) -> None:
        lease = {"metadata": {"name": "a"}, "spec": {}}
        assert [(await cluster.http.put(f"{LEASES}/a", json=lease)).status_code for _ in range(2)] == [201, 422]
        refused = await cluster.http.put(f"{LEASES}/b", json=lease)
        assert refused.status_code == 400
        assert refused.json()["message"] == "the name of the object (a) does not match the name on the URL (b)"

    gateway_cluster.run(main)


def test_openapi_v2_in_both_forms() -> None:
    async def main(cluster: Cluster) -> None:
        media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        asked = {"accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
        answer = await cluster.http.get("/openapi/v2", headers=asked)
        assert answer.headers["content-type"] == media
        swagger = (await cluster.http.get("/openapi/v2")).json()
        assert swagger["swagger"] == "2.0"
        # ``Document{definitions: Definitions{additional_properties: [NamedSchema{name, value}]}}`` of gnostic.
        fields = envelopes.fields(answer.content, 0)
        assert fields[0] == (1, b"2.0")
        named = [dict(envelopes.fields(one, 0)) for _, one in envelopes.fields(dict(fields)[9], 0)]
        assert [one[1].decode() for one in named] == list(swagger["definitions"])
        pod = next(one[2] for one in named if one[1] == b"io.k8s.api.core.v1.Pod")
        assert b'[{"group": "", "kind": "Pod", "version": "v1"}]' in pod

    gateway_cluster.run(main)
