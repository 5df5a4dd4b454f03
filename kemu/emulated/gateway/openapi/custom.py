"""The documents of custom kinds, as their definitions are: of group versions (OpenAPI v3), and what OpenAPI v2 has of
them (``controller/openapi``, ``controller/openapiv3``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from kemu.emulated.gateway.discovery.catalogue import Entry, Kind, Version
from kemu.emulated.gateway.openapi import operations, schemas
from kemu.emulated.gateway.openapi.schemas import Collection
from kemu.emulated.objects import custom_kinds
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.schemas import openapi
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition

_TEXTS = {
    "apiVersion": "APIVersion defines the group and version of the kind.",
    "kind": "The kind of the object.",
    "metadata": "Standard object's metadata: name, labels and everything else that all objects have.",
    "listMetadata": "What belongs to the list as a whole.",
    "items": "The objects.",
}

Rows = dict[str, tuple[CustomResource, ...]]


@lru_cache(16)
def rows(wires: tuple[bytes, ...]) -> Rows:
    """What definitions serve, by ``apis/<group>/<version>``."""
    found: dict[str, list[CustomResource]] = {}
    for wire in wires:
        for row in custom_kinds.rows(CustomResourceDefinition.FromString(wire)).values():
            found.setdefault(f"apis/{row.api_version}", []).append(row)
    return {name: tuple(found[name]) for name in sorted(found)}


def tag(found: Sequence[CustomResource]) -> str:
    """Changes whenever a document does."""
    digest = hashlib.sha512()
    for row in found:
        digest.update(row.definition.spec.SerializeToString(deterministic=True))
        digest.update(row.definition.status.acceptedNames.SerializeToString(deterministic=True))
    return digest.hexdigest().upper()


def document(version: Version, found: Sequence[CustomResource]) -> bytes:
    collection = Collection()
    by_plural = {row.collection: row for row in found}
    paths: dict[str, Any] = {}
    for entry in version.entries:
        row = by_plural[entry.plural]
        add(collection, row)
        operations.add_entry(paths, _Of(version, entry, collection, row))
    whole = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(collection.found.items()))},
    }
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def add(collection: Collection, row: CustomResource) -> str:
    """Adds what is published of a custom kind, and what that refers to. Returns the reference to it."""
    collection.found |= openapi.definitions(_schema(row), _kind(row))
    shared: tuple[Any, ...] = (meta_v1_pb2.ObjectMeta.DESCRIPTOR, meta_v1_pb2.ListMeta.DESCRIPTOR)
    for descriptor in shared:
        collection.refer(descriptor)
    return f"{schemas.REFERENCE}{_kind(row).name(row.kind)}"


def definitions_v2(found: Rows) -> dict[str, Any]:
    """Of all custom kinds, by name."""
    made: dict[str, Any] = {}
    for each in found.values():
        for row in each:
            made |= openapi.definitions(_schema(row), _kind(row), v2=True)
    return dict(sorted(made.items()))


def _schema(row: CustomResource) -> dict[str, Any] | None:
    schema = row.version.schema
    return convert.to_json(schema.openAPIV3Schema) if schema.HasField("openAPIV3Schema") else None


def _kind(row: CustomResource) -> openapi.Kind:
    group, _, version = row.api_version.rpartition("/")
    selectable = tuple(one.jsonPath for one in row.version.selectableFields)
    return openapi.Kind(group, version, row.kind, row.list_kind, row.collection, selectable, _TEXTS)


class _Of(operations.Of):
    """A custom kind, and where it belongs."""

    patches = tuple(one for one in operations.PATCHES if "strategic" not in one)
    media = operations.MEDIA[:2]

    def __init__(self, version: Version, entry: Entry, collection: Collection, row: CustomResource) -> None:
        super().__init__(version, entry, f"/apis/{version.api_version}", collection)
        self._row = row

    def body(self, kind: Kind) -> tuple[dict[str, str], dict[str, str]]:
        if kind.group:
            return super().body(kind)
        name = _kind(self._row).name(self._row.kind)
        named = schemas.group_version_kind(self._row.api_version, self._row.kind)
        return {"$ref": f"{schemas.REFERENCE}{name}"}, named

    def listed(self) -> dict[str, str]:
        return {"$ref": f"{schemas.REFERENCE}{_kind(self._row).name(self._row.list_kind)}"}
