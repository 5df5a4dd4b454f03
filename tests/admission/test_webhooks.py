"""Admission webhooks, against a gateway and its API server, with a webhook over HTTPS on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.admission import webhook_server
from tests.admission.webhook_server import Server
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with webhook_server.serving() as found:
        yield found


@pytest.fixture(autouse=True)
def _forget(server: Server) -> None:
    server.asked.clear()


def webhook(server: Server, path: str, **more: Any) -> Json:
    return {
        "name": f"{path}.example.com",
        "clientConfig": server.client(path),
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
        **more,
    }


async def put(cluster: Cluster, kind: str, *webhooks: Json, name: str = "hooks") -> None:
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": webhooks,
    }
    made = await cluster.http.post(f"{GROUP}/{kind.lower()}webhookconfigurations", json=body)
    assert made.status_code == 201, made.text
    await asyncio.sleep(0.05)


def config_map(name: str = "one", **fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **fields}, "data": {"key": "value"}}


async def create(cluster: Cluster, **fields: Any) -> httpx.Response:
    return await cluster.http.post(MAPS, json=config_map(**fields))


def play(main: Callable[[Cluster], Awaitable[None]], **options: Any) -> None:
    gateway_cluster.run(main, **options)


DENIALS = {
    "deny": (400, None, 'admission webhook "deny.example.com" denied the request without explanation'),
    "deny-message": (400, None, 'admission webhook "deny-message.example.com" denied the request: no such luck'),
    "deny-reason": (400, "Forbidden", 'admission webhook "deny-reason.example.com" denied the request: Forbidden'),
    "deny-code": (418, "Teapot", 'admission webhook "deny-code.example.com" denied the request: too hot'),
    "deny-odd": (400, None, 'admission webhook "deny-odd.example.com" denied the request: odd'),
    "deny-success": (400, None, 'admission webhook "deny-success.example.com" denied the request: odd'),
}


@pytest.mark.parametrize("path", DENIALS)
@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_a_refusal_is_told_with_its_status(server: Server, kind: str, path: str) -> None:
    async def main(cluster: Cluster) -> None:
        await put(cluster, kind, webhook(server, path))
        refused = await create(cluster)
        status = refused.json()
        assert (refused.status_code, status.get("reason"), status["message"]) == DENIALS[path]
        assert (await cluster.http.get(f"{MAPS}/one")).status_code == 404

    play(main)


def test_slashes_that_say_nothing_are_not_asked_for(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        client = {**server.client("deny"), "url": server.url("/deny/")}
        await put(cluster, "Validating", webhook(server, "deny", clientConfig=client))
        assert (await create(cluster)).json()["message"] == DENIALS["deny"][2]

    play(main)


def test_a_refusal_keeps_its_details_and_its_warnings(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        await put(cluster, "Validating", webhook(server, "deny-details"), webhook(server, "warn"))
        refused = await create(cluster)
        assert refused.json()["details"]["causes"] == [
            {"field": "spec", "message": "bad", "reason": "FieldValueInvalid"}
        ]
        assert refused.headers.get_list("warning") == ['299 - "beware of the dog"', '299 - "and of the cat"']

    play(main)


def test_mutations_are_applied_in_the_order_of_the_names_of_configurations(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        await put(cluster, "Mutating", webhook(server, "label-b"), name="z")
        await put(cluster, "Mutating", webhook(server, "label-a"), webhook(server, "data"), name="a")
        made = await create(cluster)
        assert made.status_code == 201
        assert made.json()["metadata"]["labels"] == {"a": "1", "b": "2"}
        assert made.json()["data"] == {"key": "value", "mutated": "yes"}
        assert [path for path, _ in server.asked] == ["label-a", "data", "label-b"]
        changed = await cluster.http.put(f"{MAPS}/one", json=config_map())
        assert changed.json()["metadata"]["labels"] == {"a": "1", "b": "2"}
        review = server.asked[-1][1]["request"]
        assert (review["operation"], review["oldObject"]["data"]["mutated"]) == ("UPDATE", "yes")

    play(main)


def test_a_webhook_that_wishes_so_is_asked_again_when_others_have_changed_the_object(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        again = {"reinvocationPolicy": "IfNeeded"}
        await put(cluster, "Mutating", webhook(server, "count", **again), webhook(server, "label-a"))
        made = await create(cluster)
        assert made.json()["metadata"]["labels"] == {"count": "2", "a": "1"}
        assert [path for path, _ in server.asked] == ["count", "label-a", "count"]

    play(main)


FAILURES = {
    "hang": "context deadline exceeded",
    "slow": "context deadline exceeded",
    "endless": "larger than 16 MiB",
    "cut": "unexpected EOF",
    "drop": "EOF",
    "garbage": "json parse error",
    "empty": "json parse error",
    "list": "the answer is no object",
    "deep": "json parse error",
    "no-response": "received invalid webhook response: webhook response was absent",
    "not-a-review": 'expected response.uid="',
    "wrong-uid": 'received invalid webhook response: expected response.uid="',
    "404": "failed to call webhook: the server could not find the requested resource",
    "500-text": 'failed to call webhook: an error on the server ("it broke") has prevented the request from succeeding',
    "503": "failed to call webhook: the server is currently unable to handle the request",
    "204": "json parse error",
    "redirect": "the server responded with the status code 307",
    "allowed-text": "cannot unmarshal string into Go struct field AdmissionResponse.allowed",
    "patch-without-type": "webhook returned response.patch but not response.patchType",
    "type-without-patch": "webhook returned response.patchType but not response.patch",
    "patch-garbage": "received undecodable patch in webhook response",
    "patch-type": 'unsupported patch type "Merge"',
}


@pytest.mark.parametrize("path", FAILURES)
def test_a_webhook_that_fails_is_named_and_others_go_on(server: Server, path: str) -> None:
    async def main(cluster: Cluster) -> None:
        await put(cluster, "Mutating", webhook(server, path))
        began = time.monotonic()
        refusing = asyncio.create_task(create(cluster))
        await asyncio.sleep(0.05)
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        other = await cluster.connection(2).post("/api/v1/namespaces/default/secrets", json=secret)
        assert other.status_code == 201
        assert time.monotonic() - began < 0.9
        refused = await refusing
        assert refused.status_code == 500
        message = refused.json()["message"]
        assert message.startswith(f'Internal error occurred: failed calling webhook "{path}.example.com": ')
        assert FAILURES[path] in message
        assert time.monotonic() - began < 4

    play(main)


@pytest.mark.parametrize("path", ["hang", "garbage", "patch-garbage"])
def test_a_failure_may_be_ignored(server: Server, path: str) -> None:
    async def main(cluster: Cluster) -> None:
        await put(cluster, "Mutating", webhook(server, path, failurePolicy="Ignore"), webhook(server, "label-a"))
        assert (await create(cluster)).json()["metadata"]["labels"] == {"a": "1"}

    play(main)


HOSTILE_PATCHES = {
    "bad-pointer": 500,
    "bad-operation": 500,
    "bad-type": 500,
    "many-operations": 500,
    "huge-value": 422,
    "kind": 500,
    "invalid-object": 422,
    "move": 400,
}


@pytest.mark.parametrize("path", HOSTILE_PATCHES)
def test_a_patch_that_does_not_fit_changes_nothing(server: Server, path: str) -> None:
    async def main(cluster: Cluster) -> None:
        await put(cluster, "Mutating", webhook(server, path))
        refused = await create(cluster)
        assert refused.status_code == HOSTILE_PATCHES[path], refused.text
        assert (await cluster.http.get(MAPS)).json()["items"] == []

    play(main)


def test_who_a_webhook_is_is_checked(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        others = base64.b64encode(server.other_authority).decode()
        await put(
            cluster,
            "Validating",
            webhook(server, "allow", clientConfig={"url": server.url("allow"), "caBundle": others}),
        )
        message = (await create(cluster)).json()["message"]
        assert "tls: failed to verify certificate: x509: certificate signed by unknown authority" in message
        await cluster.http.delete(f"{GROUP}/validatingwebhookconfigurations/hooks")
        nobody = base64.b64encode(b"no certificate").decode()
        await put(
            cluster,
            "Validating",
            webhook(server, "allow", clientConfig={"url": server.url("allow"), "caBundle": nobody}),
        )
        message = (await create(cluster)).json()["message"]
        assert "could not get REST client: unable to load root certificates" in message
        assert server.asked == []

    play(main)


def test_plain_http_and_closed_ports_are_told_apart(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        with webhook_server.serving(tls=False) as plain:
            client = {**server.client("allow"), "url": plain.url("allow")}
            await put(cluster, "Validating", webhook(server, "allow", clientConfig=client))
            assert "server gave HTTP response to HTTPS client" in (await create(cluster)).json()["message"]
        message = (await create(cluster)).json()["message"]
        assert f"dial tcp 127.0.0.1:{plain.port}: connect: connection refused" in message

    play(main)


def test_a_service_is_the_process_that_stands_for_it(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        authority = base64.b64encode(server.authority).decode()
        service = {"namespace": "default", "name": "hook", "path": "/label-a"}
        await put(cluster, "Mutating", webhook(server, "x", clientConfig={"service": service, "caBundle": authority}))
        message = (await create(cluster)).json()["message"]
        assert 'Post "https://hook.default.svc:443/label-a?timeout=1s": service "hook" not found' in message
        body = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "hook"},
            "spec": {"ports": [{"port": 443, "targetPort": 8443}]},
        }
        assert (await cluster.http.post("/api/v1/namespaces/default/services", json=body)).status_code == 201
        await asyncio.sleep(0.05)
        assert (await create(cluster)).json()["metadata"]["labels"] == {"a": "1"}

    play(main, servers=({"services": {"default/hook": server.port}},))


def test_a_service_may_be_the_name_of_a_host(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        authority = base64.b64encode(server.authority).decode()
        service = {"namespace": "default", "name": "hook", "path": "/label-a", "port": server.port}
        await put(cluster, "Mutating", webhook(server, "x", clientConfig={"service": service, "caBundle": authority}))
        services = "/api/v1/namespaces/default/services"
        spec = {"type": "ExternalName", "externalName": "localhost"}
        await cluster.http.post(services, json={"metadata": {"name": "hook"}, "spec": spec})
        await asyncio.sleep(0.05)
        assert (await create(cluster)).json()["metadata"]["labels"] == {"a": "1"}
        await cluster.http.delete(f"{services}/hook")
        spec = {"clusterIP": "None", "ports": [{"port": server.port}]}
        await cluster.http.post(services, json={"metadata": {"name": "hook"}, "spec": spec})
        await asyncio.sleep(0.05)
        assert 'cannot route to service with ClusterIP "None"' in (await create(cluster)).json()["message"]

    play(main)


def test_selectors_and_rules_choose(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        chosen = {"objectSelector": {"matchLabels": {"checked": "yes"}}}
        await put(cluster, "Validating", webhook(server, "deny", **chosen))
        assert (await create(cluster)).status_code == 201
        assert (await create(cluster, name="two", labels={"checked": "yes"})).status_code == 400
        # The labels before count, too: nobody escapes by taking the label away.
        patch = {"metadata": {"labels": {"checked": "yes"}}}
        headers = {"content-type": "application/merge-patch+json"}
        assert (await cluster.http.patch(f"{MAPS}/one", json=patch, headers=headers)).status_code == 400
        namespace = {"metadata": {"name": "free", "labels": {"free": "yes"}}, "apiVersion": "v1", "kind": "Namespace"}
        assert (await cluster.http.post("/api/v1/namespaces", json=namespace)).status_code == 201
        await cluster.http.delete(f"{GROUP}/validatingwebhookconfigurations/hooks")
        bound = {"namespaceSelector": {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]}}
        await put(cluster, "Validating", webhook(server, "deny", **bound))
        assert (await cluster.http.post("/api/v1/namespaces/free/configmaps", json=config_map())).status_code == 201
        assert (await create(cluster, name="three")).status_code == 400

    play(main)


def test_a_delete_is_asked_about_with_what_goes(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        await create(cluster)
        await put(cluster, "Validating", webhook(server, "deny"))
        assert (await cluster.http.delete(f"{MAPS}/one")).status_code == 400
        asked = server.asked[-1][1]["request"]
        assert (asked["operation"], asked["object"], asked["oldObject"]["data"]) == ("DELETE", None, {"key": "value"})
        assert len(server.asked) == 1
        assert (await cluster.http.delete(MAPS)).status_code == 400
        assert "name" not in server.asked[-1][1]["request"]

    play(main)


def test_what_webhooks_with_side_effects_cannot_do_is_a_dry_run(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        await put(cluster, "Validating", webhook(server, "allow", sideEffects="NoneOnDryRun"))
        made = await cluster.http.post(MAPS, params={"dryRun": "All"}, json=config_map())
        assert made.status_code == 201
        asked = server.asked[-1][1]["request"]
        assert asked["dryRun"] is True
        assert asked["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}
        wrong = webhook(server, "allow", sideEffects="Some")
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
        body |= {"metadata": {"name": "wrong"}, "webhooks": [wrong]}
        refused = await cluster.http.post(f"{GROUP}/validatingwebhookconfigurations", json=body)
        assert 'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"' in refused.json()["message"]

    play(main)


def test_configurations_are_not_about_themselves(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        everything = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
        await put(cluster, "Validating", webhook(server, "deny", rules=everything))
        assert (await create(cluster)).status_code == 400
        assert (await cluster.http.delete(f"{GROUP}/validatingwebhookconfigurations/hooks")).status_code == 200
        await asyncio.sleep(0.05)
        assert (await create(cluster)).status_code == 201

    play(main)


def test_bindings_evictions_scale_and_status_are_asked_about(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        pods = "/api/v1/namespaces/default/pods"
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        assert (await http.post(pods, json=pod)).status_code == 201
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
        rs = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}}
        rs["spec"] = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        sets = "/apis/apps/v1/namespaces/default/replicasets"
        assert (await http.post(sets, json=rs)).status_code == 201
        everything = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
        await put(cluster, "Validating", webhook(server, "echo", rules=everything))
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p"},
            "target": {"kind": "Node", "name": "n"},
        }
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "default"}}
        merge = {"content-type": "application/merge-patch+json"}
        asked = [
            await http.post(f"{pods}/p/binding", json=binding),
            await http.post(f"{pods}/p/eviction", json=eviction),
            await http.patch(f"{sets}/r/scale", json={"spec": {"replicas": 2}}, headers=merge),
            await http.patch(f"{pods}/p/status", json={"status": {"message": "m"}}, headers=merge),
        ]
        told = [json.loads(one.json()["message"].partition("denied the request: ")[2]) for one in asked]
        assert [
            (one["operation"], one["resource"]["resource"], one["subResource"], one["kind"]["kind"]) for one in told
        ] == [
            ("CREATE", "pods", "binding", "Binding"),
            ("CREATE", "pods", "eviction", "Eviction"),
            ("UPDATE", "replicasets", "scale", "Scale"),
            ("UPDATE", "pods", "status", "Pod"),
        ]

    play(main)


def test_a_generated_name_is_not_known_to_those_who_may_change_it(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        await put(cluster, "Mutating", webhook(server, "allow"))
        await put(cluster, "Validating", webhook(server, "allow"))
        made = await cluster.http.post(MAPS, json=config_map(name="", generateName="gen-"))
        name = made.json()["metadata"]["name"]
        first, second = (review["request"] for _, review in server.asked)
        assert "name" not in first
        assert "name" not in first["object"]["metadata"]
        assert second["name"] == second["object"]["metadata"]["name"] == name

    play(main)


def test_wrong_configurations_are_refused_as_kubernetes_does(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "wrong"},
            "webhooks": [
                {
                    "name": "short",
                    "clientConfig": {"url": "http://user@host/?q#f", "service": {"name": "a", "namespace": "b"}},
                    "rules": [
                        {
                            "operations": ["*", "CREATE"],
                            "apiGroups": [],
                            "apiVersions": [""],
                            "resources": ["*", "pods"],
                        }
                    ],
                    "timeoutSeconds": 31,
                    "admissionReviewVersions": ["v2"],
                }
            ],
        }
        refused = await cluster.http.post(f"{GROUP}/mutatingwebhookconfigurations", json=body)
        assert [(cause["field"], cause["reason"]) for cause in refused.json()["details"]["causes"]] == [
            ("webhooks[0].name", "FieldValueInvalid"),
            ("webhooks[0].rules[0].operations", "FieldValueInvalid"),
            ("webhooks[0].rules[0].apiGroups", "FieldValueRequired"),
            ("webhooks[0].rules[0].apiVersions[0]", "FieldValueRequired"),
            ("webhooks[0].rules[0].resources", "FieldValueInvalid"),
            ("webhooks[0].sideEffects", "FieldValueRequired"),
            ("webhooks[0].timeoutSeconds", "FieldValueInvalid"),
            ("webhooks[0].clientConfig", "FieldValueRequired"),
            ("webhooks[0].admissionReviewVersions", "FieldValueInvalid"),
        ]

    play(main)
