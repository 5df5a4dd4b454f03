"""Webhooks and policies about custom objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.admission import cases, webhook_server
from tests.admission.webhook_server import Server
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
RULES = [{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}]
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"size": {"type": "integer", "maximum": 9}, "colour": {"type": "string", "default": "red"}},
        }
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


@pytest.fixture
def server() -> Iterator[Server]:
    with webhook_server.serving() as found:
        yield found


def widget(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


async def put(cluster: Cluster, obj: dict[str, Any]) -> None:
    made = await cluster.http.post(cases.collection(obj, "default"), json=obj)
    assert made.status_code == 201, made.text
    await asyncio.sleep(0.05)


async def defined(cluster: Cluster) -> None:
    made = await cluster.http.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=DEFINITION)
    assert made.status_code == 201, made.text
    for _ in range(100):
        if (await cluster.http.get(WIDGETS)).status_code == 200:
            return
        await asyncio.sleep(0.05)


def test_webhooks_see_and_change_custom_objects(server: Server) -> None:
    def size(value: int) -> Any:
        return lambda asked: webhook_server.patch({"op": "add", "path": "/spec/size", "value": value})

    async def main(cluster: Cluster) -> None:
        await defined(cluster)
        server.more["grow"] = size(7)
        webhook = {**cases.hook("grow"), "clientConfig": server.client("grow"), "rules": RULES}
        await put(cluster, {**cases.hooks("Mutating", webhook), "metadata": {"name": "grow"}})
        made = await cluster.http.post(WIDGETS, json=widget())
        assert made.status_code == 201, made.text
        assert made.json()["spec"] == {"size": 7, "colour": "red"}
        asked = server.asked[-1][1]["request"]
        assert asked["resource"] == {"group": "example.com", "version": "v1", "resource": "widgets"}
        assert asked["kind"]["kind"] == "Widget"
        assert asked["object"]["spec"] == {"colour": "red"}
        server.more["grow"] = size(10)
        refused = await cluster.http.put(f"{WIDGETS}/one", json={**widget(), "metadata": made.json()["metadata"]})
        assert refused.status_code == 422, refused.text
        assert "spec.size" in refused.json()["message"]

    gateway_cluster.run(main)


def test_policies_judge_custom_objects_and_are_parametrised_by_them() -> None:
    async def main(cluster: Cluster) -> None:
        await defined(cluster)
        assert (await cluster.http.post(WIDGETS, json=widget("limit", size=3))).status_code == 201
        expression = "!has(object.spec.size) || object.spec.size <= params.spec.size"
        policy = cases.policy(
            "Validating",
            cases.validations(expression, paramKind={"apiVersion": "example.com/v1", "kind": "Widget"}),
        )
        policy["spec"]["matchConstraints"]["resourceRules"] = RULES
        ref = {"paramRef": {"name": "limit", "namespace": "default", "parameterNotFoundAction": "Deny"}}
        bound = cases.bound("Validating", "", {"validationActions": ["Deny"], **ref})
        for obj in (policy, bound):
            await put(cluster, cases.filled(obj, {"ns": "small"}))
        fits = await cluster.http.post(WIDGETS, json=widget("two", size=3))
        assert fits.status_code == 201, fits.text
        refused = await cluster.http.post(WIDGETS, json=widget("three", size=4))
        assert refused.status_code == 422, refused.text
        assert refused.json()["details"]["group"] == "example.com"
        assert refused.json()["message"].startswith(
            'widgets.example.com "three" is forbidden: ValidatingAdmissionPolicy'
        )
        applied = {"expression": "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}}"}
        mutating = cases.mutating(
            {"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": applied}]}, name="-m"
        )
        mutating[0]["spec"]["matchConstraints"]["resourceRules"] = [{**RULES[0], "operations": ["CREATE"]}]
        for obj in mutating:
            await put(cluster, cases.filled(obj, {"ns": "small"}))
        made = await cluster.http.post(WIDGETS, json=widget("four", size=1))
        assert made.json()["metadata"]["labels"] == {"seen": "yes"}, made.text

    gateway_cluster.run(main)
