"""What a cluster keeps for its clients: accounts, the authority, flow schemas, API services, certificates, tokens."""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kemu.lab.up import embedded
from kemu.lab.up.embedded import Cluster

CORE = "/api/v1/namespaces/default"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
MERGE = {"content-type": "application/merge-patch+json"}


class Client:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        self.authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
        self.context = ssl.create_default_context(cadata=self.authority.decode())
        self.http = httpx.Client(
            base_url=cluster.url, verify=self.context, headers={"authorization": f"Bearer {cluster.token}"}
        )

    def get(self, path: str) -> Any:
        return self.http.get(path).json()

    def post(self, path: str, body: dict[str, Any], status: int = 201) -> Any:
        answer = self.http.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def patch(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.http.patch(path, json=body, headers=MERGE)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def delete(self, path: str) -> None:
        assert self.http.delete(path).status_code == 200

    def code(self, path: str, token: str = "") -> int:
        headers = {"authorization": f"Bearer {token}"} if token else None
        return self.http.get(path, headers=headers).status_code

    def until(self, path: str, holds: Any) -> Any:
        """What is there once it holds. What signs stands outside of virtual time."""
        for _ in range(100):
            found = self.get(path)
            if holds(found):
                return found
            self.cluster.step(0.1)
        raise AssertionError(found)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with embedded.up(nodes=1) as cluster:
        client = Client(cluster)
        yield client
        client.http.close()


def test_accounts_and_the_authority_come_back(client: Client) -> None:
    account, roots = f"{CORE}/serviceaccounts/default", f"{CORE}/configmaps/kube-root-ca.crt"
    uid = client.get(account)["metadata"]["uid"]
    found = client.get(roots)
    assert found["data"]["ca.crt"].encode() == client.authority
    assert found["metadata"]["annotations"]["kubernetes.io/description"].startswith("Contains a CA bundle")
    client.patch(roots, {"data": {"ca.crt": "none", "more": "a"}})
    client.until(roots, lambda found: found["data"] == {"ca.crt": client.authority.decode()})
    client.delete(account)
    client.delete(roots)
    client.until(account, lambda found: found.get("metadata", {}).get("uid") not in (None, uid))
    client.until(roots, lambda found: "data" in found)
    client.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    client.until("/api/v1/namespaces/other/serviceaccounts/default", lambda found: "metadata" in found)
    client.until("/api/v1/namespaces/other/configmaps/kube-root-ca.crt", lambda found: "data" in found)


def test_flow_schemas_come_back_within_a_minute_unless_they_are_the_administrators(client: Client) -> None:
    schemas, levels = f"{FLOWS}/flowschemas", f"{FLOWS}/prioritylevelconfigurations"
    assert len(client.get(schemas)["items"]) == 11
    assert len(client.get(levels)["items"]) == 8
    condition = client.get(f"{schemas}/probes")["status"]["conditions"][0]
    assert condition["message"] == (
        'This FlowSchema references the PriorityLevelConfiguration object named "exempt" and it exists'
    )
    assert "must equal the fixed value" in client.http.patch(
        f"{schemas}/catch-all", json={"spec": {"matchingPrecedence": 9}}, headers=MERGE
    ).text  # fmt: skip
    client.patch(f"{schemas}/service-accounts", {"spec": {"matchingPrecedence": 77}})
    own = {
        "metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}},
        "spec": {"matchingPrecedence": 78},
    }
    client.patch(f"{schemas}/global-default", own)
    client.delete(f"{levels}/workload-low")
    dangling = client.until(
        f"{schemas}/service-accounts", lambda found: found["status"]["conditions"][0]["status"] == "True"
    )
    assert dangling["status"]["conditions"][0]["reason"] == "NotFound"
    client.delete(f"{schemas}/exempt")
    client.cluster.step(61)
    assert client.get(f"{schemas}/exempt")["spec"]["matchingPrecedence"] == 1
    assert client.get(f"{schemas}/service-accounts")["spec"]["matchingPrecedence"] == 9000
    assert client.get(f"{schemas}/global-default")["spec"]["matchingPrecedence"] == 78
    client.until(f"{schemas}/service-accounts", lambda found: found["status"]["conditions"][0]["status"] == "False")


def test_api_services_are_local_or_say_why_they_are_not_available(client: Client) -> None:
    local = client.get(f"{SERVICES}/v1.apps")
    assert local["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
    assert local["spec"] == {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}
    spec = {
        "group": "example.com",
        "version": "v1",
        "groupPriorityMinimum": 9,
        "versionPriority": 9,
        "service": {"namespace": "default", "name": "api"},
    }
    client.post(SERVICES, {"metadata": {"name": "v1.example.com"}, "spec": spec})

    def reason(wanted: str) -> Any:
        return client.until(
            f"{SERVICES}/v1.example.com",
            lambda found: found["status"].get("conditions", [{}])[0].get("reason") == wanted,
        )["status"]["conditions"][0]

    assert reason("ServiceNotFound")["message"] == 'service/api in "default" is not present'
    client.post(f"{CORE}/services", {"metadata": {"name": "api"}, "spec": {"ports": [{"port": 443}]}})
    assert reason("EndpointsNotFound")["status"] == "False"
    answer = client.http.get("/apis/example.com/v1/things")
    assert (answer.status_code, answer.text) == (503, "service unavailable\n")
    client.delete(f"{SERVICES}/v1.example.com")
    assert client.code("/apis/example.com/v1/things") == 404


def make_request(common: str, *organizations: str) -> tuple[ec.EllipticCurvePrivateKey, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, one) for one in organizations]
    name = x509.Name([*parts, x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])
    made = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return key, base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


APPROVED = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}}


def test_a_certificate_that_was_approved_is_signed_and_proves_who_one_is(client: Client, tmp_path: Any) -> None:
    key, request = make_request("bob", "ops")
    spec = {
        "request": request,
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
        "expirationSeconds": 3600,
    }
    client.post(REQUESTS, {"metadata": {"name": "bob"}, "spec": spec})
    client.patch(f"{REQUESTS}/bob/approval", APPROVED)
    found = client.until(f"{REQUESTS}/bob", lambda found: found["status"].get("certificate"))
    pem = base64.b64decode(found["status"]["certificate"])
    certificate = x509.load_pem_x509_certificate(pem)
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds() == 3900
    (tmp_path / "pair.pem").write_bytes(
        pem
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(cadata=client.authority.decode())
    context.load_cert_chain(tmp_path / "pair.pem")
    with httpx.Client(base_url=client.cluster.url, verify=context) as bob:
        refused = bob.get(f"{CORE}/pods").json()
        assert 'User "bob" cannot list resource "pods"' in refused["message"]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        who = bob.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json=body).json()
        assert who["status"]["userInfo"]["groups"] == ["ops", "system:authenticated"]
    client.cluster.step(2 * 3600)
    assert client.code(f"{REQUESTS}/bob") == 404  # an hour after it was approved


def test_signers_refuse_what_they_do_not_sign_and_kubelets_are_approved(client: Client) -> None:
    _, request = make_request("bob")
    spec = {"request": request, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["server auth"]}
    client.post(REQUESTS, {"metadata": {"name": "wrong"}, "spec": spec})
    client.patch(f"{REQUESTS}/wrong/approval", APPROVED)
    failed = client.until(f"{REQUESTS}/wrong", lambda found: len(found["status"]["conditions"]) > 1)
    assert failed["status"]["conditions"][1]["message"] == "invalid usage for client certificate: server auth"
    _, request = make_request("system:node:node-9", "system:nodes")
    usages = ["digital signature", "client auth"]
    spec = {"request": request, "signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": usages}
    client.post(REQUESTS, {"metadata": {"name": "kubelet"}, "spec": spec})
    found = client.until(f"{REQUESTS}/kubelet", lambda found: found["status"].get("certificate"))
    (condition,) = found["status"]["conditions"]
    assert condition["message"] == "Auto approving kubelet client certificate after SubjectAccessReview."


def test_tokens_end_with_what_they_are_bound_to(client: Client) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    made = client.post(f"{CORE}/pods", pod)
    (volume,) = made["spec"]["volumes"]
    assert volume["projected"]["sources"][0] == {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    (mount,) = made["spec"]["containers"][0]["volumeMounts"]
    assert mount == {
        "name": volume["name"],
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    client.cluster.step(until="pod/a running")
    tokens = f"{CORE}/serviceaccounts/default/token"
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "a"}
    token = client.post(tokens, {"spec": {"boundObjectRef": bound}})["status"]["token"]
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    told = client.post(reviews, body)["status"]
    assert told["user"]["username"] == "system:serviceaccount:default:default"
    assert told["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["a"]
    assert told["user"]["extra"]["authentication.kubernetes.io/node-name"] == ["node-1"]
    assert client.code("/api", token) == 200
    wrong = client.post(tokens, {"spec": {"boundObjectRef": {**bound, "uid": "x"}}}, 409)
    assert "does not match the UID in record" in wrong["message"]
    wrong = client.post(tokens, {"spec": {"boundObjectRef": {**bound, "kind": "ConfigMap"}}}, 400)
    assert wrong["message"] == "cannot bind token to object of type /v1, Kind=ConfigMap"
    assert client.http.delete(f"{CORE}/pods/a?gracePeriodSeconds=0").status_code == 200
    client.until(f"{CORE}/pods/a", lambda found: found.get("code") == 404)
    assert client.code("/api", token) == 401
    told = client.post(reviews, body)["status"]
    assert told == {
        "user": {},
        "error": "[invalid bearer token, service account token has been invalidated]",
    }


def test_pods_need_an_account_that_exists(client: Client) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "a", "image": "b"}]}
    body = {"metadata": {"name": "b"}, "spec": {**spec, "serviceAccountName": "own"}}
    refused = client.post(f"{CORE}/pods", body, 403)
    assert refused["message"] == (
        'pods "b" is forbidden: error looking up service account default/own: serviceaccount "own" not found'
    )
    account = {
        "metadata": {"name": "own"},
        "automountServiceAccountToken": False,
        "imagePullSecrets": [{"name": "pull"}],
    }
    client.post(f"{CORE}/serviceaccounts", account)
    made = client.post(f"{CORE}/pods", body)
    assert "volumes" not in made["spec"]
    assert made["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    # The pod has the first word.
    made = client.post(
        f"{CORE}/pods",
        {"metadata": {"name": "c"}, "spec": {**body["spec"], "automountServiceAccountToken": True}},  # type: ignore[dict-item]
    )
    assert made["spec"]["volumes"][0]["name"].startswith("kube-api-access-")


def test_secrets_of_accounts_get_tokens_and_go_with_their_accounts(client: Client) -> None:
    client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "robot"}})
    annotations = {"kubernetes.io/service-account.name": "robot"}
    secret = {"type": "kubernetes.io/service-account-token", "metadata": {"name": "t", "annotations": annotations}}
    client.post(f"{CORE}/secrets", secret)
    found = client.until(f"{CORE}/secrets/t", lambda found: "token" in found.get("data", {}))
    assert base64.b64decode(found["data"]["ca.crt"]) == client.authority
    token = base64.b64decode(found["data"]["token"]).decode()
    assert client.code("/api", token) == 200
    client.delete(f"{CORE}/serviceaccounts/robot")
    client.until(f"{CORE}/secrets/t", lambda found: found.get("code") == 404)
    assert client.code("/api", token) == 401
    client.post(f"{CORE}/secrets", {**secret, "metadata": {"name": "u", "annotations": annotations}})
    client.until(f"{CORE}/secrets/u", lambda found: found.get("code") == 404)


def test_others_find_the_key_of_tokens(client: Client) -> None:
    configuration = client.get("/.well-known/openid-configuration")
    assert configuration["jwks_uri"].startswith(client.cluster.url)
    (key,) = client.http.get(configuration["jwks_uri"]).json()["keys"]
    assert (key["alg"], key["use"]) == ("ES256", "sig")
    with httpx.Client(base_url=client.cluster.url, verify=client.context) as nobody:
        assert nobody.get("/openid/v1/jwks").status_code == 403


def test_containers_are_added_to_a_pod_that_runs(client: Client) -> None:
    pod = {"metadata": {"name": "d"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    client.post(f"{CORE}/pods", pod)
    client.cluster.step(until="pod/d running")
    headers = {"content-type": "application/strategic-merge-patch+json"}
    parts = f"{CORE}/pods/d/ephemeralcontainers"

    def patch(**container: Any) -> Any:
        body = {"spec": {"ephemeralContainers": [container]}, "metadata": {"labels": {"ignored": "yes"}}}
        return client.http.patch(parts, json=body, headers=headers).json()

    # The words of kube-apiserver v1.36.3.
    wrong = patch(name="x", image="b", targetContainerName="none", ports=[{"containerPort": 1}], lifecycle={})
    assert wrong["message"] == (
        'Pod "d" is invalid: [spec.ephemeralContainers[0].targetContainerName: Not found: "none", '
        "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container, "
        "spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container]"
    )
    assert 'spec.ephemeralContainers[0].name: Duplicate value: "a"' in patch(name="a", image="b")["message"]
    found = patch(name="debug", image="busybox", targetContainerName="a", stdin=True)
    assert "ignored" not in found["metadata"].get("labels", {})
    assert found["metadata"]["generation"] == 2
    running = client.until(
        f"{CORE}/pods/d",
        lambda found: "running" in found["status"].get("ephemeralContainerStatuses", [{}])[0].get("state", {}),
    )
    assert running["status"]["phase"] == "Running"
    text = 'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed'
    assert text in patch(name="debug", image="other")["message"]
    events = client.get(f"{CORE}/events")["items"]
    paths = {one["involvedObject"].get("fieldPath") for one in events if one["reason"] == "Started"}
    assert "spec.ephemeralContainers{debug}" in paths
    client.patch(f"{CORE}/pods/d", {"metadata": {"finalizers": ["example.com/a"]}})
    client.delete(f"{CORE}/pods/d")
    ended = client.until(
        f"{CORE}/pods/d",
        lambda found: "terminated" in found["status"]["ephemeralContainerStatuses"][0]["state"],
    )
    assert ended["status"]["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    client.patch(f"{CORE}/pods/d", {"metadata": {"finalizers": None}})


def undefined(kind: str, column: int, field: str, text: str) -> str:
    return f"{kind}: ERROR: <input>:1:{column}: undefined field '{field}'\n | {text}\n | {'.' * (column - 1)}^\n"


def mismatch(kind: str, column: int, types: str, text: str, operator: str = "==") -> str:
    wrong = f"found no matching overload for '_{operator}_' applied to '({types})'"
    return f"{kind}: ERROR: <input>:1:{column}: {wrong}\n | {text}\n | {'.' * (column - 1)}^\n"


TEXTS = {
    "object.spec.replicas > '1'": [
        undefined("/v1, Kind=Event", 7, "spec", "object.spec.replicas > '1'"),
        undefined("/v1, Kind=Pod", 12, "replicas", "object.spec.replicas > '1'"),
        mismatch("apps/v1, Kind=Deployment", 22, "int, string", "object.spec.replicas > '1'", ">"),
        undefined("events.k8s.io/v1, Kind=Event", 7, "spec", "object.spec.replicas > '1'"),
    ],
    "variables.number == 'x'": [mismatch("apps/v1, Kind=Deployment", 18, "int, string", "variables.number == 'x'")],
    "has(object.kind) && params.data['x'] == 'y'": [],
    "object.metadata.creationTimestamp == timestamp('2026-01-01T00:00:00Z')": [],
    "object == oldObject": [],
    "object.spec == 5": [
        undefined("/v1, Kind=Event", 7, "spec", "object.spec == 5"),
        mismatch("/v1, Kind=Pod", 13, "Pod.spec, int", "object.spec == 5"),
        mismatch("apps/v1, Kind=Deployment", 13, "Deployment.spec, int", "object.spec == 5"),
        undefined("events.k8s.io/v1, Kind=Event", 7, "spec", "object.spec == 5"),
    ],
}
"""Expressions, and what the controller of kube-controller-manager v1.36.3 says about them; names of types have a
number there, which is left out."""


def test_policies_tell_which_expressions_do_not_suit_their_kinds(client: Client) -> None:
    rule = {
        "apiGroups": ["apps", ""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["deployments", "pods", "*/scale", "events"],
    }
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [{"name": "number", "expression": "object.spec.replicas"}],
        "validations": [{"expression": text} for text in TEXTS],
    }
    body = {"metadata": {"name": "types.example.com"}, "spec": spec}
    client.post(POLICIES, body)
    found = client.until(f"{POLICIES}/types.example.com", lambda found: "typeChecking" in found["status"])["status"]
    assert found["observedGeneration"] == 1
    warnings = {
        one["fieldRef"]: re.sub(r"(Pod|Deployment)\d+", r"\1", one["warning"])
        for one in found["typeChecking"]["expressionWarnings"]
    }
    wanted = {
        f"spec.validations[{index}].expression": "\n".join(lines) for index, lines in enumerate(TEXTS.values()) if lines
    }
    assert warnings == wanted
    client.patch(f"{POLICIES}/types.example.com", {"spec": {"validations": [{"expression": "object == oldObject"}]}})
    found = client.until(f"{POLICIES}/types.example.com", lambda found: found["status"]["observedGeneration"] == 2)
    assert found["status"]["typeChecking"] == {}


def test_claims_get_volumes_of_their_class_of_attributes(client: Client) -> None:
    def volume(name: str, attributes: str) -> None:
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
            "volumeAttributesClassName": attributes,
        }
        client.post("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})

    volume("silver", "silver")
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeAttributesClassName": "gold",
    }
    claims = f"{CORE}/persistentvolumeclaims"
    client.post(claims, {"metadata": {"name": "data"}, "spec": spec})
    client.cluster.step(1)
    assert client.get(f"{claims}/data")["status"] == {"phase": "Pending"}
    answer = client.http.patch(f"{claims}/data", json={"spec": {"volumeAttributesClassName": "silver"}}, headers=MERGE)
    assert answer.status_code == 422
    volume("gold", "gold")
    client.cluster.step(15)  # the resync of the volume controller
    found = client.until(f"{claims}/data", lambda found: found["status"]["phase"] == "Bound")
    assert (found["spec"]["volumeName"], found["status"]["currentVolumeAttributesClassName"]) == ("gold", "gold")
    client.patch(f"{claims}/data", {"spec": {"volumeAttributesClassName": "silver"}})
    answer = client.http.patch(f"{claims}/data", json={"spec": {"volumeAttributesClassName": None}}, headers=MERGE)
    assert "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil" in answer.text
