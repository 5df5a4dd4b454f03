"""OpenAPI v3: what kubectl needs of it, and the schemas compared with those of kube-apiserver v1.36.3.

``real.json.gz`` holds Kubernetes' own schemas (``api/openapi-spec/v3``) without their descriptions.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.gateway.discovery import catalogue
from kemu.emulated.gateway.openapi import descriptions, documents
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

REAL: dict[str, Any] = json.loads(gzip.decompress(Path(__file__).with_name("real.json.gz").read_bytes()))
NAMES = [documents.name_of(one) for one in documents.versions()]
WITHOUT_RULES = ("Binding", "Eviction", "TokenRequest", "DeleteOptions", "ShardInfo", "Status", "StatusDetails")
"""Of messages that are only sent it is not known what is required and how they merge."""


def document(name: str) -> dict[str, Any]:
    body = documents.document(name)
    assert body is not None
    found: dict[str, Any] = json.loads(body)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_those_of_a_real_server(name: str) -> None:
    for schema_name, schema in document(name)["components"]["schemas"].items():
        kind = schema_name.rpartition(".")[2]
        if any(group in schema_name for group in (".authorization.", ".authentication.", ".events.")):
            continue
        made, real = _comparable(schema), _comparable(REAL[schema_name])
        assert set(made["properties"]) == set(real["properties"]), schema_name
        if not kind.startswith(WITHOUT_RULES):
            assert made == real, schema_name


def _comparable(schema: dict[str, Any]) -> dict[str, Any]:
    """Without what is only described, and what says the same when it is left out."""
    found: dict[str, Any] = json.loads(json.dumps(schema))
    for unsaid in ("description", "x-kubernetes-unions", "x-kubernetes-group-version-kind"):
        found.pop(unsaid, None)
    found["required"] = sorted(found.get("required", []))
    found.setdefault("properties", {})
    for one in found["properties"].values():
        one.pop("description", None)
        for enumerated in (one, one.get("items", {})):
            # A server lists them, unlike these files.
            enumerated.pop("enum", None)
        if "$ref" in one:
            one["allOf"] = [{"$ref": one.pop("$ref")}]
        if one.get("x-kubernetes-list-type") == "atomic":
            del one["x-kubernetes-list-type"]
        if one.get("x-kubernetes-map-type") == "granular":
            del one["x-kubernetes-map-type"]
    return found


@pytest.mark.parametrize("version", documents.versions())
def test_every_stored_kind_takes_patches_with_field_validation(version: catalogue.Version) -> None:
    """Without that, kubectl neither creates nor applies it."""
    validated = set()
    for path in document(documents.name_of(version))["paths"].values():
        patch = path.get("patch")
        if patch is not None and any(one["name"] == "fieldValidation" for one in patch["parameters"]):
            validated.add(patch["x-kubernetes-group-version-kind"]["kind"])
    assert {entry.kind for entry in version.entries if entry.is_stored} <= validated


@pytest.mark.parametrize("name", NAMES)
def test_references_lead_somewhere(name: str) -> None:
    text = documents.document(name)
    assert text is not None
    schemas = document(name)["components"]["schemas"]
    wanted = {part.split(b'"')[0].decode() for part in text.split(b"#/components/schemas/")[1:]}
    assert wanted <= set(schemas)


def test_what_people_look_up_is_described() -> None:
    for name in ("core.v1.PodSpec", "core.v1.Container", "meta.v1.ObjectMeta", "apps.v1.DeploymentSpec"):
        assert len(descriptions.of_type(name).split()) > 3
    schemas = document("api/v1")["components"]["schemas"]
    for field, schema in schemas["io.k8s.api.core.v1.PodSpec"]["properties"].items():
        assert len(schema["description"].split()) > 3, field


def test_values_are_listed_as_kubectl_explain_shows_them_of_a_real_server() -> None:
    core = document("api/v1")["components"]["schemas"]
    toleration = core["io.k8s.api.core.v1.Toleration"]["properties"]
    assert toleration["effect"]["enum"] == ["NoExecute", "NoSchedule", "PreferNoSchedule"]
    assert toleration["operator"]["enum"] == ["Equal", "Exists", "Gt", "Lt"]
    claim = core["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]
    assert "ReadWriteOncePod" in claim["accessModes"]["items"]["enum"]


def test_no_sentence_describes_what_there_is_not() -> None:
    known = set()
    for name in NAMES:
        for schema_name, schema in document(name)["components"]["schemas"].items():
            owner = descriptions.short(schema_name)
            known.add(owner)
            for field in schema.get("properties", {}):
                known.update((f"{owner}.{field}", f"shared.{field}"))
    assert descriptions.keys() <= known


def test_documents_are_named_by_a_hash_and_kept() -> None:
    async def main(cluster: Cluster) -> None:
        root = (await cluster.http.get("/openapi/v3")).json()
        url = root["paths"]["api/v1"]["serverRelativeURL"]
        found = await cluster.http.get(url)
        assert found.headers["cache-control"] == "public, immutable"
        again = await cluster.http.get(url, headers={"if-none-match": found.headers["etag"]})
        assert again.status_code == 304
        old = await cluster.http.get("/openapi/v3/api/v1?hash=old")
        assert (old.status_code, old.headers["location"]) == (301, url)
        assert (await cluster.http.get("/openapi/v3/apis/example.com/v1")).status_code == 404
        assert set(root["paths"]) >= set(NAMES)

    gateway_cluster.run(main)
