"""The documents of discovery, compared with those of a real kube-apiserver v1.36.3 for all that the gateway serves."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from kemu.emulated.gateway.discovery import aggregated, catalogue, legacy
from kemu.emulated.objects import resources
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

REAL: dict[str, dict[str, Any]] = json.loads(gzip.decompress(Path(__file__).with_name("real.json.gz").read_bytes()))
NOT_SERVED: tuple[str, ...] = ()
"""Of groups and versions that are served otherwise: what these names begin with."""
AGGREGATED = {"accept": f"{aggregated.MEDIA_TYPE},application/json"}


@pytest.mark.parametrize("version", [one for one in catalogue.versions() if one.group != "metrics.k8s.io"])
def test_resources_are_listed_as_by_a_real_server(version: catalogue.Version) -> None:
    path = f"/apis/{version.api_version}" if version.group else f"/api/{version.version}"
    real = REAL["legacy"][path]
    wanted = [one for one in real["resources"] if not one["name"].startswith(NOT_SERVED)]
    assert legacy.resources(version.api_version, catalogue.versions()) == {**real, "resources": wanted}


def test_groups_come_in_the_order_of_a_real_server() -> None:
    served = {
        one["name"]: one for one in legacy.groups(catalogue.versions())["groups"] if one["name"] != "metrics.k8s.io"
    }
    real = {one["name"]: one for one in REAL["legacy"]["/apis"]["groups"]}
    assert list(served) == [name for name in real if name in served]
    for name, group in served.items():
        versions = [one for one in real[name]["versions"] if one in group["versions"]]
        assert group == {**real[name], "versions": versions}


def test_aggregated_documents_say_the_same_as_those_of_a_real_server() -> None:
    for path, made in (
        ("/api", aggregated.core(catalogue.versions())),
        ("/apis", aggregated.groups(catalogue.versions())),
    ):
        real = {
            (item["metadata"].get("name", ""), version["version"]): _served(version)
            for item in REAL["aggregated"][path]["items"]
            for version in item["versions"]
        }
        for item in made["items"]:
            for version in item["versions"]:
                name = item["metadata"].get("name", "")
                assert name == "metrics.k8s.io" or version == real[name, version["version"]]
        assert {**made, "items": []} == {**REAL["aggregated"][path], "items": []}


def _served(version: dict[str, Any]) -> dict[str, Any]:
    kept = []
    for one in version["resources"]:
        if one["resource"].startswith(NOT_SERVED):
            continue
        parts = one.get("subresources", [])
        served = [part for part in parts if not f"{one['resource']}/{part['subresource']}".startswith(NOT_SERVED)]
        kept.append({**one, **({"subresources": served} if served else {})})
    return {**version, "resources": kept}


def test_clients_revalidate_what_they_know() -> None:
    async def main(cluster: Cluster) -> None:
        first = await cluster.http.get("/apis", headers=AGGREGATED)
        assert first.headers["content-type"] == aggregated.MEDIA_TYPE
        assert first.json()["kind"] == "APIGroupDiscoveryList"
        again = await cluster.http.get("/apis", headers={**AGGREGATED, "if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert (again.headers["cache-control"], again.headers["vary"]) == ("public", "Accept")

    gateway_cluster.run(main)


def test_clients_that_do_not_know_the_aggregated_form_get_the_old_one() -> None:
    async def main(cluster: Cluster) -> None:
        beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
        for accept in ("*/*", "application/json", beta):
            assert (await cluster.http.get("/apis/", headers={"accept": accept})).json()["kind"] == "APIGroupList"
        core = (await cluster.http.get("/api")).json()
        assert core["serverAddressByClientCIDRs"] == [{"clientCIDR": "0.0.0.0/0", "serverAddress": "kemu"}]
        assert (await cluster.http.get("/apis/apps")).json()["preferredVersion"]["groupVersion"] == "apps/v1"
        unknown = await cluster.http.get("/apis/example.com")
        assert (unknown.status_code, unknown.text) == (404, "404 page not found\n")
        for path in (await cluster.http.get("/")).json()["paths"]:
            assert (await cluster.http.get(path)).status_code == 200, path

    gateway_cluster.run(main)


def test_everything_that_is_listed_is_served() -> None:
    async def main(cluster: Cluster) -> None:
        for version in catalogue.versions():
            base = f"/apis/{version.api_version}" if version.group else f"/api/{version.version}"
            for entry in version.entries:
                collection = (
                    f"{base}/namespaces/default/{entry.plural}" if entry.namespaced else f"{base}/{entry.plural}"
                )
                listed = await cluster.http.get(collection)
                assert listed.status_code == (200 if "list" in entry.verbs else 405), collection
                for part in entry.subresources:
                    if part.name == "token":
                        continue  # Only a gateway that knows the accounts' key gives tokens.
                    url = f"{collection}/none/{part.name}"
                    for verb in part.verbs:
                        assert _is_served(await cluster.http.request(METHODS[verb], url, json={})), (verb, url)

    gateway_cluster.run(main)


METHODS = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


def _is_served(answer: httpx.Response) -> bool:
    return answer.status_code != 405 and "could not find the requested resource" not in answer.text


def test_every_stored_kind_is_listed() -> None:
    listed = {(one.api_version, entry.plural) for one in catalogue.versions() for entry in one.entries}
    rows = {(row.api_version, row.plural) for row in resources.RESOURCES}
    assert rows - listed == {("scheduling.k8s.io/v1alpha2", "workloads"), ("scheduling.k8s.io/v1alpha2", "podgroups")}
