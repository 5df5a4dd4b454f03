"""Betas that Kubernetes no longer serves: conversion as kube-apiserver up to 1.24 had it."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.gateway.requests import envelopes
from kemu.emulated.gateway.settings import Settings
from kemu.emulated.objects.kinds import removed_betas
from kemu.messages.k8s import policy_v1_pb2
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

OLD = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets"
NEW = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LABEL = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
PROTOBUF = "application/vnd.kubernetes.protobuf"
SERVED = Settings(apiservers=("apiserver/0",), removed_betas=True)


def _budget(name: str, selector: dict[str, Any], version: str = "v1beta1") -> dict[str, Any]:
    spec = {"minAvailable": 1, "selector": selector}
    metadata = {"name": name}
    return {"apiVersion": f"policy/{version}", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def test_they_are_not_there_unless_somebody_wants_them() -> None:
    async def main(cluster: Cluster) -> None:
        client = cluster.connection(0)
        assert (await client.get(OLD)).status_code == 404
        assert [one["version"] for one in (await client.get("/apis/policy")).json()["versions"]] == ["v1"]

    gateway_cluster.run(main)


def test_a_budget_of_the_old_form_is_one_of_the_new_form() -> None:
    async def main(cluster: Cluster) -> None:
        client = cluster.connection(0)
        made = await client.post(OLD, json=_budget("a", {"matchLabels": {"app": "x"}}))
        assert (made.status_code, made.json()["apiVersion"]) == (201, "policy/v1beta1")
        found = (await client.get(f"{NEW}/a")).json()
        assert (found["apiVersion"], found["spec"]["selector"]) == ("policy/v1", {"matchLabels": {"app": "x"}})
        listed = (await client.get(OLD)).json()
        assert (listed["apiVersion"], len(listed["items"])) == ("policy/v1beta1", 1)
        patch = {"headers": {"content-type": "application/merge-patch+json"}, "json": {"spec": {"minAvailable": 2}}}
        changed = await client.patch(f"{OLD}/a", **patch)  # type: ignore[arg-type]
        assert changed.json()["spec"]["minAvailable"] == 2
        assert (await client.delete(f"{OLD}/a")).status_code == 200
        assert (await client.get(f"{NEW}/a")).status_code == 404

    gateway_cluster.run(main, settings=SERVED)


def test_an_empty_selector_selects_nothing_in_the_old_form_and_everything_in_the_new() -> None:
    async def main(cluster: Cluster) -> None:
        client = cluster.connection(0)
        await client.post(OLD, json=_budget("none", {}))
        await client.post(NEW, json=_budget("all", {}, "v1"))

        async def selector(path: str) -> Any:
            return (await client.get(path)).json()["spec"]["selector"]

        assert await selector(f"{OLD}/none") == {}
        assert await selector(f"{NEW}/none") == {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]}
        assert await selector(f"{OLD}/all") == {"matchExpressions": [{"key": LABEL, "operator": "DoesNotExist"}]}
        assert await selector(f"{NEW}/all") == {}

    gateway_cluster.run(main, settings=SERVED)


def test_clients_may_speak_protobuf() -> None:
    async def main(cluster: Cluster) -> None:
        client = cluster.connection(0)
        budget = policy_v1_pb2.PodDisruptionBudget()
        budget.metadata.name = "a"
        budget.spec.selector.SetInParent()
        body = envelopes.pack("policy/v1beta1", "PodDisruptionBudget", budget.SerializeToString())
        made = await client.post(OLD, content=body, headers={"content-type": PROTOBUF, "accept": PROTOBUF})
        assert made.status_code == 201
        version, kind, wire = envelopes.unpack(made.content)
        assert (version, kind) == ("policy/v1beta1", "PodDisruptionBudget")
        found = policy_v1_pb2.PodDisruptionBudget.FromString(wire)
        assert found.spec.HasField("selector")
        assert not found.spec.selector.matchExpressions
        stored = (await client.get(f"{NEW}/a")).json()
        assert stored["spec"]["selector"]["matchExpressions"][0]["operator"] == "Exists"

    gateway_cluster.run(main, settings=SERVED)


def test_discovery_tells_of_them_after_the_versions_that_are_served() -> None:
    async def main(cluster: Cluster) -> None:
        client = cluster.connection(0)
        for group, plural in (("policy", "poddisruptionbudgets"), ("batch", "cronjobs")):
            found = (await client.get(f"/apis/{group}")).json()
            assert [one["version"] for one in found["versions"]] == ["v1", "v1beta1"]
            assert found["preferredVersion"]["version"] == "v1"
            names = [one["name"] for one in (await client.get(f"/apis/{group}/v1beta1")).json()["resources"]]
            assert names == [plural, f"{plural}/status"]

    gateway_cluster.run(main, settings=SERVED)


SCHEMA = {
    "properties": {
        "metadata": {"type": "object"},
        "spec": {
            "properties": {"port": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "size": {"type": "integer"}}
        },
    }
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1beta1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "version": "v1alpha1",
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "JSONPath": ".spec.size"}],
        "validation": {"openAPIV3Schema": SCHEMA},
    },
}


def test_a_definition_says_for_each_version_what_it_said_for_all() -> None:
    spec = removed_betas.upgraded(DEFINITION)["spec"]
    (version,) = spec["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}
    assert version["additionalPrinterColumns"] == [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    schema = version["schema"]["openAPIV3Schema"]
    keeps = "x-kubernetes-preserve-unknown-fields"
    assert (schema["type"], schema[keeps]) == ("object", True)
    assert schema["properties"]["metadata"] == {"type": "object"}
    fields = schema["properties"]["spec"]
    assert (fields["type"], fields[keeps]) == ("object", True)
    assert fields["properties"]["port"]["x-kubernetes-int-or-string"]
    assert fields["properties"]["size"] == {"type": "integer"}


@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_it_is_a_definition_that_the_api_server_takes(schema: dict[str, Any] | None) -> None:
    stated = {**DEFINITION["spec"]}
    stated.pop("validation")
    if schema is not None:
        stated["validation"] = {"openAPIV3Schema": schema}
    made = removed_betas.upgraded({**DEFINITION, "spec": stated})

    async def main(cluster: Cluster) -> None:
        client = cluster.connection(0)
        answer = await client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=made)
        assert answer.status_code == 201, answer.text

    gateway_cluster.run(main, settings=SERVED)
