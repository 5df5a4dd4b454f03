"""Parts of objects, and what is posted to be answered."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx

from kemu.emulated.gateway.authentication.authenticators import Authenticator, authenticated
from kemu.emulated.gateway.authentication.service_accounts import Tokens
from kemu.emulated.gateway.requests import envelopes
from kemu.emulated.gateway.settings import Settings
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from kemu.messages.k8s import authorization_v1_pb2, core_v1_pb2
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster, pod

PODS = "/api/v1/namespaces/default/pods"
PROTOBUF = "application/vnd.kubernetes.protobuf"
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}


def node(name: str = "n1") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}


def shown(answer: httpx.Response) -> tuple[int, str, str]:
    found = answer.json()
    return answer.status_code, found.get("reason", ""), found.get("message", "")


def test_a_binding_in_protobuf_gives_a_pod_its_node() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        await http.post("/api/v1/nodes", json=node())
        await http.post(PODS, json=pod())
        binding = core_v1_pb2.Binding()
        binding.metadata.name, binding.metadata.namespace, binding.target.kind = "a", "default", "Node"
        binding.target.name = "n1"
        body = envelopes.pack("v1", "Binding", binding.SerializeToString())
        headers = {"content-type": PROTOBUF, "accept": f"{PROTOBUF}, */*"}
        answer = await http.post(f"{PODS}/a/binding", content=body, headers=headers)
        assert answer.status_code == 201
        assert envelopes.unpack(answer.content)[:2] == ("v1", "Status")
        assert (await http.get(f"{PODS}/a")).json()["spec"]["nodeName"] == "n1"
        again = await http.post(
            f"{PODS}/a/binding", json={"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
        )
        assert (again.status_code, again.json()["details"]["kind"]) == (409, "pods/binding")
        other = await http.post(f"{PODS}/b/binding", json={"metadata": {"name": "a"}, "target": {"name": "n1"}})
        assert shown(other) == (400, "BadRequest", "name in URL does not match name in Binding object")
        wrong = await http.post("/api/v1/namespaces/default/bindings", json={"target": {"kind": "Pod", "name": "x"}})
        assert wrong.status_code == 500

    gateway_cluster.run(main)


def test_a_budget_holds_an_eviction_back() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        await http.post(PODS, json=pod(metadata={"labels": {"app": "x"}}))
        await http.post("/api/v1/nodes", json=node())
        await http.post(f"{PODS}/a/binding", json={"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}})
        running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        await http.patch(f"{PODS}/a/status", content=json.dumps(running), headers=STRATEGIC)
        budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
        await http.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", json=budget)
        eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a", "namespace": "default"}}
        answer = await http.post(f"{PODS}/a/eviction", json=eviction)
        assert shown(answer)[:2] == (429, "TooManyRequests")
        assert answer.json()["details"]["causes"][0]["reason"] == "DisruptionBudget"
        await http.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b")
        answer = await http.post(f"{PODS}/a/eviction", json=eviction)
        assert (answer.status_code, answer.json()["status"]) == (201, "Success")
        assert "deletionTimestamp" in (await http.get(f"{PODS}/a")).json()["metadata"]

    gateway_cluster.run(main)


def test_a_scale_is_read_and_written_as_a_part_of_its_object() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        sets = "/apis/apps/v1/namespaces/default/replicasets"
        template = {"metadata": {"labels": {"app": "x"}}, "spec": pod()["spec"]}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template}
        await http.post(sets, json={"metadata": {"name": "r"}, "spec": spec})
        scale = (await http.get(f"{sets}/r/scale")).json()
        assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
        patched = await http.patch(
            f"{sets}/r/scale",
            content=b'{"spec":{"replicas":3}}',
            headers={"content-type": "application/merge-patch+json"},
        )
        assert patched.json()["spec"] == {"replicas": 3}
        scale["spec"]["replicas"] = 4
        stale = await http.put(f"{sets}/r/scale", json=scale)
        assert shown(stale)[:2] == (409, "Conflict")
        assert (await http.get(f"{sets}/r")).json()["spec"]["replicas"] == 3
        assert (await http.delete(f"{sets}/r/scale")).status_code == 405
        assert (await http.get(f"{PODS}/a/scale")).status_code == 404

    gateway_cluster.run(main)


def test_commands_in_containers_are_refused_with_a_reason() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        assert (await http.get(f"{PODS}/a/exec?command=ls")).status_code == 404
        await http.post(PODS, json=pod())
        headers = {"connection": "upgrade", "upgrade": "SPDY/3.1"}
        asked = f"{PODS}/a/exec?command=ls&stdout=true"
        refused = (400, "BadRequest", "pod a does not have a host assigned")
        assert shown(await http.post(asked, headers=headers)) == refused
        # Where it would run comes before everything else.
        assert shown(await http.post(f"{PODS}/a/exec")) == refused
        bound = pod("b", nodeName="n1")
        await http.post(PODS, json=bound)
        assert shown(await http.post(f"{PODS}/b/exec")) == (404, "NotFound", 'pods "n1" not found')
        await http.post("/api/v1/nodes", json={"metadata": {"name": "n1"}})
        assert shown(await http.post(f"{PODS}/b/exec")) == (400, "BadRequest", "Upgrade request required")
        none = (400, "BadRequest", "you must specify at least 1 of stdin, stdout, stderr")
        assert shown(await http.post(f"{PODS}/b/exec?command=ls", headers=headers)) == none
        assert (await http.get(f"{PODS}/a/proxy/x")).status_code == 503

    gateway_cluster.run(main)


def test_users_learn_who_they_are_and_what_they_may() -> None:
    viewer = authenticated("viewer", ["people"])
    admin = identities.ADMINISTRATOR
    settings = Settings(authenticator=Authenticator({"v": viewer, "a": admin}), accounts=Tokens())
    reviews = "/apis/authorization.k8s.io/v1"

    async def main(cluster: Cluster) -> None:
        http = cluster.connection(2, headers={"authorization": "Bearer v"})
        who = await http.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json={})
        assert who.json()["status"]["userInfo"] == {
            "username": "viewer",
            "groups": ["people", "system:authenticated"],
        }
        review = authorization_v1_pb2.SelfSubjectAccessReview()
        review.spec.resourceAttributes.verb, review.spec.resourceAttributes.resource = "create", "pods"
        body = envelopes.pack("authorization.k8s.io/v1", "SelfSubjectAccessReview", review.SerializeToString())
        answer = await http.post(
            f"{reviews}/selfsubjectaccessreviews", content=body, headers={"content-type": PROTOBUF}
        )
        assert (answer.status_code, answer.json()["status"]["allowed"]) == (201, False)
        assert answer.json()["spec"]["resourceAttributes"] == {"verb": "create", "resource": "pods"}
        assert shown(await http.get("/api/v1/nodes")) == (
            403,
            "Forbidden",
            'nodes is forbidden: User "viewer" cannot list resource "nodes" in API group "" at the cluster scope',
        )
        of_others = {"spec": {"user": "x", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}}
        assert (await http.post(f"{reviews}/subjectaccessreviews", json=of_others)).status_code == 403
        rules = await http.post(f"{reviews}/selfsubjectrulesreviews", json={"spec": {"namespace": "default"}})
        assert any("/version" in rule["nonResourceURLs"] for rule in rules.json()["status"]["nonResourceRules"])
        boss = cluster.connection(3, headers={"authorization": "Bearer a"})
        assert (await boss.post(f"{reviews}/subjectaccessreviews", json=of_others)).json()["status"]["allowed"] is False
        as_viewer = await boss.get("/api/v1/nodes", headers={"impersonate-user": "viewer"})
        assert as_viewer.status_code == 403
        assert (await http.get("/api/v1/nodes", headers={"impersonate-user": "x"})).status_code == 403
        stranger = cluster.connection(4, headers={"authorization": "Bearer wrong"})
        assert shown(await stranger.get("/api/v1/nodes")) == (401, "Unauthorized", "Unauthorized")

    gateway_cluster.run(main, settings=settings)


def test_a_token_of_a_service_account() -> None:
    tokens = Tokens()
    admin = identities.ADMINISTRATOR

    async def main(cluster: Cluster) -> None:
        http = cluster.connection(2, headers={"authorization": "Bearer a"})
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await http.post(accounts, json={"metadata": {"name": "robot"}})
        short = await http.post(f"{accounts}/robot/token", json={"spec": {"expirationSeconds": 10}})
        assert (short.status_code, short.json()["details"]["causes"][0]["field"]) == (422, "spec.expirationSeconds")
        answer = await http.post(f"{accounts}/robot/token", json={})
        token = answer.json()["status"]["token"]
        assert (answer.status_code, answer.json()["kind"]) == (201, "TokenRequest")
        assert tokens.read(token, now_s=cluster.gateway._clock.unix_ns() / 1e9) is not None
        assert (await http.post(f"{accounts}/nobody/token", json={})).status_code == 404

    gateway_cluster.run(main, settings=Settings(authenticator=Authenticator({"a": admin}), accounts=tokens))


def test_policies_know_the_node_of_a_token() -> None:
    """As ``[sig-auth] ValidatingAdmissionPolicy can restrict access by-node`` does."""
    tokens, admin = Tokens(), identities.ADMINISTRATOR
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    node_of = "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('none')"
    policy = {
        "metadata": {"name": "by-node"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"{node_of} == object.metadata.name", "messageExpression": node_of}],
        },
    }
    binding = {"metadata": {"name": "by-node"}, "spec": {"policyName": "by-node", "validationActions": ["Deny"]}}

    async def main(cluster: Cluster) -> None:
        http = cluster.connection(2, headers={"authorization": "Bearer a"})
        await http.post("/api/v1/nodes", json=node())
        await http.post("/api/v1/namespaces/default/serviceaccounts", json={"metadata": {"name": "robot"}})
        reference = {"kind": "Node", "apiVersion": "v1", "name": "n1"}
        account = "/api/v1/namespaces/default/serviceaccounts/robot"
        answer = await http.post(f"{account}/token", json={"spec": {"boundObjectRef": reference}})
        token = answer.json()["status"]["token"]
        rules = "/apis/rbac.authorization.k8s.io/v1"
        subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
        await http.post(
            f"{rules}/clusterrolebindings", json={"metadata": {"name": "e"}, "subjects": [subject], "roleRef": role}
        )
        await http.post(f"{rules}/clusterroles", json={"metadata": {"name": "edit"}, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]})  # fmt: skip
        assert (await http.post(f"{group}/validatingadmissionpolicies", json=policy)).status_code == 201
        assert (await http.post(f"{group}/validatingadmissionpolicybindings", json=binding)).status_code == 201
        robot = cluster.connection(3, headers={"authorization": f"Bearer {token}"})
        maps = "/api/v1/namespaces/default/configmaps"
        own = await robot.post(maps, json={"metadata": {"name": "n1"}})
        assert own.status_code == 201, own.text
        other = await robot.post(maps, json={"metadata": {"name": "n2"}})
        assert (other.status_code, other.json()["message"].rpartition(": ")[2]) == (422, "n1")
        acting = {"impersonate-user": "bob", "impersonate-group": "system:masters"}
        acting["impersonate-extra-authentication.kubernetes.io%2fnode-name"] = "n3"
        assert (await http.post(maps, json={"metadata": {"name": "n3"}}, headers=acting)).status_code == 201

    gateway_cluster.run(
        main,
        settings=Settings(authenticator=Authenticator({"a": admin}, accounts=tokens, now_s=time.time), accounts=tokens),
    )


def test_a_kubelet_gets_tokens_for_its_pods_and_for_audiences_that_their_volumes_ask_for() -> None:
    """``TestNodeRestrictionServiceAccountAudience`` of ``test/integration/auth``."""
    tokens, core, storage = Tokens(), "/api/v1/namespaces/default", "/apis/storage.k8s.io/v1"
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    users = {
        "a": identities.ADMINISTRATOR,
        "n1": User("system:node:n1", (identities.NODES, identities.AUTHENTICATED)),
    }
    unknown = 'audience "{}" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this'
    projected = {"projected": {"sources": [{"serviceAccountToken": {"audience": "vault", "path": "t"}}]}}

    async def main(cluster: Cluster) -> None:
        boss = cluster.connection(2, headers={"authorization": "Bearer a"})
        kubelet = cluster.connection(3, headers={"authorization": "Bearer n1"})

        async def make(path: str, body: Any) -> Any:
            answer = await boss.post(path, json=body)
            assert answer.status_code == 201, answer.text
            return answer.json()

        async def with_volume(name: str, volume: Any, node_name: str = "n1", account: str = "robot") -> dict[str, str]:
            volumes = [{"name": "v", **volume}]
            body = pod(name, nodeName=node_name, serviceAccountName=account, volumes=volumes)
            made = await make(f"{core}/pods", body)
            return {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": made["metadata"]["uid"]}

        async def refusal(ref: Any, *audiences: str, account: str = "robot") -> str:
            """Empty: the kubelet gets it."""
            spec = {"audiences": audiences, "boundObjectRef": ref}
            answer = await kubelet.post(f"{core}/serviceaccounts/{account}/token", json={"spec": spec})
            assert answer.status_code in (201, 403), answer.text
            return "" if answer.status_code == 201 else answer.json()["message"]

        for name in ("n1", "n2"):
            await make("/api/v1/nodes", node(name))
        for name in ("robot", "other"):
            await make(f"{core}/serviceaccounts", {"metadata": {"name": name}})
        driver = {"metadata": {"name": "disk.example.com"}, "spec": {"tokenRequests": [{"audience": "disk"}]}}
        await make(f"{storage}/csidrivers", driver)
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "made"}
        await make(f"{core}/persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": claim})
        volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "x"}
        volume["csi"] = {"driver": "disk.example.com", "volumeHandle": "h"}
        await make("/api/v1/persistentvolumes", {"metadata": {"name": "made"}, "spec": volume})
        own = await with_volume("own", projected)
        others = await with_volume("others", projected, "n2")

        assert await refusal(own, "vault") == ""
        assert await refusal(await with_volume("inline", {"csi": {"driver": "disk.example.com"}}), "disk") == ""
        bound = await with_volume("bound", {"persistentVolumeClaim": {"claimName": "data"}})
        assert await refusal(bound, "disk") == ""
        assert unknown.format("vault") in await refusal(bound, "vault")
        await make(f"{storage}/csidrivers", {**driver, "metadata": {"name": "disk.csi.azure.com"}})
        # Of the tree, which a driver has taken over.
        volume["azureDisk"] = {"diskName": "d", "diskURI": "https://a.blob.core.windows.net/b/d"}
        del volume["csi"]
        await make("/api/v1/persistentvolumes", {"metadata": {"name": "old"}, "spec": volume})
        claim["volumeName"] = "old"
        await make(f"{core}/persistentvolumeclaims", {"metadata": {"name": "old"}, "spec": claim})
        migrated = await with_volume("migrated", {"persistentVolumeClaim": {"claimName": "old"}})
        assert await refusal(migrated, "disk") == ""
        lost = await with_volume("lost", {"persistentVolumeClaim": {"claimName": "gone"}})
        why = 'error validating audience "disk": persistentvolumeclaim "gone" not found'
        assert await refusal(lost, "disk") == f'serviceaccounts "robot" is forbidden: {why}'
        stray = await with_volume("stray", {"csi": {"driver": "no.example.com"}})
        why = 'error validating audience "disk": csidriver.storage.k8s.io "no.example.com" not found'
        assert await refusal(stray, "disk") == f'serviceaccounts "robot" is forbidden: {why}'

        assert "node may only request 0 or 1 audiences" in await refusal(own, "vault", "disk")
        assert "not bound to a pod" in await refusal({**own, "kind": "Node", "name": "n1"}, "vault")
        assert "without a uid" in await refusal({**own, "uid": ""}, "vault")
        assert "does not match the UID in record" in await refusal({**own, "uid": "7"}, "vault")
        assert "scheduled on a different node" in await refusal(others, "vault")
        assert "no relationship found" in await refusal(own, "vault", account="other")

        assert unknown.format("registry") in await refusal(own, "registry")
        rule = {"apiGroups": [""], "resources": ["registry"], "resourceNames": ["robot"]}
        rule["verbs"] = ["request-serviceaccounts-token-audience"]
        await make(f"{rbac}/roles", {"metadata": {"name": "pull"}, "rules": [rule]})
        subject = {"kind": "User", "name": "system:node:n1", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pull"}
        await make(f"{rbac}/rolebindings", {"metadata": {"name": "p"}, "subjects": [subject], "roleRef": role})
        assert await refusal(own, "registry") == ""
        assert unknown.format("mirror") in await refusal(own, "mirror")

    gateway_cluster.run(
        main,
        settings=Settings(authenticator=Authenticator(users, accounts=tokens, now_s=time.time), accounts=tokens),
    )


def test_the_run_log_names_the_program_that_binds() -> None:
    async def main(cluster: Cluster) -> None:
        scheduler = cluster.connection(2, headers={"user-agent": "kube-scheduler/v1.36.3 (linux/amd64) scheduler"})
        await cluster.http.post(PODS, json=pod())
        await cluster.http.post("/api/v1/nodes", json=node())
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
        assert (await scheduler.post(f"{PODS}/a/binding", json=binding)).status_code == 201
        assert (await scheduler.post(f"{PODS}/a/binding", json=binding)).status_code == 409
        told = [(kind, data["by"]) for _, kind, data in cluster.log if data.get("verb") == "bind"]
        assert told == [("api.request", "gateway/kube-scheduler"), ("api.refused", "gateway/kube-scheduler")]

    gateway_cluster.run(main)
