"""Kinds that are there for kube-controller-manager and others that watch them."""

from __future__ import annotations

import json
from typing import Any

from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"


def of(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **fields}


def test_requests_for_certificates_wait_until_somebody_approves_them() -> None:
    async def main(cluster: Cluster) -> None:
        spec = {"signerName": "kubernetes.io/kubelet-serving", "usages": ["server auth"], "request": "YQ=="}
        body = of("certificates.k8s.io/v1", "CertificateSigningRequest", spec=spec, status={"certificate": "YQ=="})
        made = await cluster.http.post(REQUESTS, json=body)
        assert (made.status_code, made.json().get("status")) == (201, {})
        condition = {"type": "Approved", "status": "True", "reason": "Test"}
        patch = json.dumps({"status": {"conditions": [condition]}})
        headers = {"content-type": "application/merge-patch+json"}
        approved = await cluster.http.patch(f"{REQUESTS}/a/approval", content=patch, headers=headers)
        assert approved.json()["status"]["conditions"][0]["type"] == "Approved"
        wrong = await cluster.http.post(REQUESTS, json={**body, "metadata": {"name": "b"}, "spec": {}})
        assert {cause["field"] for cause in wrong.json()["details"]["causes"]} >= {"spec.usages", "spec.signerName"}

    gateway_cluster.run(main)


def test_ranges_of_service_addresses_must_be_ranges() -> None:
    async def main(cluster: Cluster) -> None:
        for cidrs, status in ((["10.96.0.0/16"], 201), (["10.96.0.0/99"], 422), ([], 422)):
            body = of("networking.k8s.io/v1", "ServiceCIDR", spec={"cidrs": cidrs})
            assert (await cluster.http.post(RANGES, json=body)).status_code == status

    gateway_cluster.run(main)
