"""Kinds that are there for kube-controller-manager and others that watch them."""

from __future__ import annotations

import base64
import json
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"


def of(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **fields}


def request(*organizations: str, common: str = "a") -> str:
    """In base64, as it stands in a CertificateSigningRequest."""
    parts = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, one) for one in organizations]
    name = x509.Name([*parts, x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def signing(name: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    found = of("certificates.k8s.io/v1", "CertificateSigningRequest", **more)
    kept = {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"], "request": request()}
    return {**found, "metadata": {"name": name}, "spec": {**kept, **spec}}


MERGE = {"content-type": "application/merge-patch+json"}


def test_requests_for_certificates_wait_until_somebody_approves_them() -> None:
    async def main(cluster: Cluster) -> None:
        body = signing("a", {"username": "somebody", "groups": ["else"]}, status={"certificate": "YQ=="})
        made = await cluster.http.post(REQUESTS, json=body)
        assert (made.status_code, made.json().get("status")) == (201, {})
        assert made.json()["spec"]["username"] == "kubernetes-admin"
        assert made.json()["spec"]["groups"] == ["system:masters", "system:authenticated"]
        condition = {"type": "Approved", "status": "True", "reason": "Test"}
        patch = json.dumps({"status": {"conditions": [condition]}, "spec": {"usages": ["any"]}})
        refused = await cluster.http.patch(f"{REQUESTS}/a/status", content=patch, headers=MERGE)
        assert 'updates may not add a condition of type "Approved"' in refused.json()["message"]
        approved = (await cluster.http.patch(f"{REQUESTS}/a/approval", content=patch, headers=MERGE)).json()
        found = approved["status"]["conditions"][0]
        assert found["type"] == "Approved"
        assert found["lastUpdateTime"] == found["lastTransitionTime"]
        assert approved["spec"]["usages"] == ["client auth"]
        patch = json.dumps({"status": {"conditions": []}})
        refused = await cluster.http.patch(f"{REQUESTS}/a/approval", content=patch, headers=MERGE)
        assert 'updates may not remove a condition of type "Approved"' in refused.json()["message"]

    gateway_cluster.run(main)


def test_requests_for_certificates_have_to_be_right() -> None:
    async def main(cluster: Cluster) -> None:
        async def problems(**spec: Any) -> dict[str, str]:
            answer = await cluster.http.post(REQUESTS, json=signing("b", spec))
            assert answer.status_code == 422, answer.text
            return {one["field"]: one["message"] for one in answer.json()["details"]["causes"]}

        assert "PEM block type must be CERTIFICATE REQUEST" in (await problems(request="YQ=="))["spec.request"]
        assert "supported values" in (await problems(usages=["client auth", "juggling"]))["spec.usages[1]"]
        assert "Duplicate" in (await problems(usages=["any", "any"]))["spec.usages[1]"]
        assert (await problems(usages=[]))["spec.usages"] == "Required value"
        assert "legacy" in (await problems(signerName="kubernetes.io/legacy-unknown"))["spec.signerName"]
        assert "fully qualified" in (await problems(signerName="a"))["spec.signerName"]
        assert "two segments" in (await problems(signerName="a/b"))["spec.signerName"]
        assert "600 seconds" in (await problems(expirationSeconds=5))["spec.expirationSeconds"]
        master = await cluster.http.post(REQUESTS, json=signing("b", {"request": request("system:masters")}))
        assert master.status_code == 403
        assert master.json()["message"] == (
            'certificatesigningrequests.certificates.k8s.io "b" is forbidden: use of '
            "kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
        )

    gateway_cluster.run(main)


def test_ranges_of_service_addresses_must_be_ranges() -> None:
    async def main(cluster: Cluster) -> None:
        for cidrs, status in ((["10.96.0.0/16"], 201), (["10.96.0.0/99"], 422), ([], 422)):
            body = of("networking.k8s.io/v1", "ServiceCIDR", spec={"cidrs": cidrs})
            assert (await cluster.http.post(RANGES, json=body)).status_code == status

    gateway_cluster.run(main)


FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"


def test_flow_schemas_and_priority_levels_get_defaults_and_have_to_be_right() -> None:
    async def main(cluster: Cluster) -> None:
        async def post(plural: str, kind: str, spec: dict[str, Any], name: str = "a") -> Any:
            body = {**of("flowcontrol.apiserver.k8s.io/v1", kind, spec=spec), "metadata": {"name": name}}
            return (await cluster.http.post(f"{FLOWS}/{plural}", json=body)).json()

        limited = {"limitResponse": {"type": "Queue", "queuing": {}}}
        level = await post(
            "prioritylevelconfigurations", "PriorityLevelConfiguration", {"type": "Limited", "limited": limited}
        )
        assert level["spec"]["limited"] == {
            "nominalConcurrencyShares": 30,
            "lendablePercent": 0,
            "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}},
        }
        limited["limitResponse"]["queuing"] = {"queues": 2, "handSize": 3}
        spec = {"type": "Limited", "limited": limited, "exempt": {}}
        wrong = await post("prioritylevelconfigurations", "PriorityLevelConfiguration", spec, "b")
        assert [cause["field"] for cause in wrong["details"]["causes"]] == [
            "spec.exempt",
            "spec.limited.limitResponse.queuing.handSize",
        ]
        wrong = await post("prioritylevelconfigurations", "PriorityLevelConfiguration", {"type": "Exempt"}, "b")
        assert "must be 'Exempt' if and only if `name` is 'exempt'" in wrong["message"]
        rule = {
            "subjects": [{"kind": "User", "user": {"name": "a"}, "group": {"name": "b"}}],
            "resourceRules": [{"verbs": ["*", "get"], "apiGroups": [""], "resources": ["pods"]}],
            "nonResourceRules": [{"verbs": ["juggle"], "nonResourceURLs": ["/a*"]}],
        }
        spec = {"priorityLevelConfiguration": {}, "rules": [rule]}
        wrong = await post("flowschemas", "FlowSchema", spec)
        assert [cause["field"] for cause in wrong["details"]["causes"]] == [
            "spec.priorityLevelConfiguration.name",
            "spec.rules[0].subjects[0].group",
            "spec.rules[0].resourceRules[0].verbs",
            "spec.rules[0].resourceRules[0].namespaces",
            "spec.rules[0].nonResourceRules[0].verbs",
            "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]",
        ]
        made = await post("flowschemas", "FlowSchema", {"priorityLevelConfiguration": {"name": "a"}})
        assert (made["spec"]["matchingPrecedence"], made["metadata"]["generation"]) == (1000, 1)

    gateway_cluster.run(main)


def test_api_services_that_are_local_are_available() -> None:
    async def main(cluster: Cluster) -> None:
        url = "/apis/apiregistration.k8s.io/v1/apiservices"
        spec = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
        body = of("apiregistration.k8s.io/v1", "APIService", spec=spec)
        wrong = (await cluster.http.post(url, json={**body, "spec": {**spec, "versionPriority": 2000}})).json()
        assert {cause["field"] for cause in wrong["details"]["causes"]} == {"metadata.name", "spec.versionPriority"}
        made = (await cluster.http.post(url, json={**body, "metadata": {"name": "v1.example.com"}})).json()
        (condition,) = made["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")

    gateway_cluster.run(main)


def test_component_statuses_say_what_is_healthy() -> None:
    async def main(cluster: Cluster) -> None:
        listed = await cluster.http.get("/api/v1/componentstatuses?fieldSelector=metadata.name=etcd-0")
        (store,) = listed.json()["items"]
        assert store["conditions"] == [{"type": "Healthy", "status": "True", "message": "ok"}]
        assert listed.headers["warning"] == '299 - "v1 ComponentStatus is deprecated in v1.19+"'
        missing = (await cluster.http.get("/api/v1/componentstatuses/a")).json()
        assert (missing["code"], missing["message"]) == (404, 'componentstatus "a" not found')
        assert (await cluster.http.delete("/api/v1/componentstatuses/etcd-0")).status_code == 405

    gateway_cluster.run(main)
