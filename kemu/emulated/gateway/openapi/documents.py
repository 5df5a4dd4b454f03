"""The documents: ``/openapi/v3``, which names the others, and ``/openapi/v3/apis/apps/v1``.

The root tells of each document by a hash, so that clients may keep it: of everything that the documents are made of, so
that the root can be had without making them.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from importlib import resources as files
from typing import Any

import kemu
from kemu.emulated.gateway.discovery import catalogue
from kemu.emulated.gateway.discovery.catalogue import Version
from kemu.emulated.gateway.openapi import custom, gnostics, operations, swaggers
from kemu.emulated.gateway.openapi.schemas import Collection
from kemu.emulated.objects.facts import KUBERNETES

ROOT = "/openapi/v3"

_TITLE, _VERSION = "Kubernetes", "unversioned"

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


WITHOUT = ("metrics.k8s.io",)
"""Groups without a document: what they hold is neither created nor applied."""


def versions() -> list[Version]:
    """Those that have a document."""
    return [one for one in catalogue.versions() if one.group not in WITHOUT]


def name_of(version: Version) -> str:
    """``api/v1``, ``apis/apps/v1``."""
    return f"apis/{version.api_version}" if version.group else f"api/{version.version}"


@lru_cache(16)
def root(definitions: tuple[bytes, ...] = (), others: tuple[tuple[str, str], ...] = ()) -> bytes:
    """``definitions``: of custom kinds, as an API server sends them. ``others``: paths at other servers, by name."""
    tags = {name_of(one): tag() for one in versions()}
    tags |= {name: custom.tag(rows) for name, rows in custom.rows(definitions).items()}
    paths = {name: {"serverRelativeURL": f"{ROOT}/{name}?hash={found}"} for name, found in tags.items()}
    paths |= {name: {"serverRelativeURL": path} for name, path in others}
    return _encoder.encode({"paths": dict(sorted(paths.items()))}).encode()


@lru_cache(64)
def document(name: str) -> bytes | None:
    """Document of a group version: ``apis/apps/v1``; None for one that is not served."""
    for version in versions():
        if name_of(version) == name:
            return _encoder.encode(_document(version)).encode()
    return None


@lru_cache(64)
def custom_document(name: str, served: tuple[Version, ...], definitions: tuple[bytes, ...]) -> tuple[bytes, str] | None:
    """As :func:`document`, of custom kinds, and its hash. ``served``: what discovery has of them."""
    for version in served:
        rows = custom.rows(definitions).get(name)
        if name_of(version) == name and rows:
            return custom.document(version, rows), custom.tag(rows)
    return None


@lru_cache(4)
def swagger(definitions: tuple[bytes, ...], others: tuple[bytes, ...] = ()) -> bytes:
    """OpenAPI v2: the schemas of all kinds, without operations but those of other API servers (:func:`of_other`)."""
    return _encoder.encode(_swagger(definitions, others)).encode()


@lru_cache(4)
def packed_swagger(definitions: tuple[bytes, ...], others: tuple[bytes, ...] = ()) -> bytes:
    """As :func:`swagger`, in protobuf, without any operations."""
    return gnostics.document(_swagger(definitions, others))


def of_other(text: bytes, path: str) -> bytes:
    """What the OpenAPI v2 of another API server says of the paths below ``path``. Raises what a hostile text brings
    about."""
    found = swaggers.restricted(json.loads(text), f"{path}/")
    document = {"swagger": "2.0", "info": {"title": "", "version": ""}, "paths": {}, "definitions": {}}
    for _ in range(2):
        swaggers.merge(document, found)
    gnostics.document(document)
    return _encoder.encode(found).encode()


def _swagger(definitions: tuple[bytes, ...], others: tuple[bytes, ...]) -> dict[str, Any]:
    collection = Collection()
    for version in versions():
        operations.paths(version, collection)
    found = swaggers.definitions(collection.found) | custom.definitions_v2(custom.rows(definitions))
    info = {"title": "Kubernetes", "version": KUBERNETES}
    document = {"swagger": "2.0", "info": info, "paths": {}, "definitions": found}
    for other in others:
        swaggers.merge(document, json.loads(other))
    return document


def _document(version: Version) -> dict[str, Any]:
    collection = Collection()
    paths = operations.paths(version, collection)
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": _VERSION},
        "paths": paths,
        "components": {"schemas": dict(sorted(collection.found.items()))},
    }


@lru_cache(1)
def tag() -> str:
    """Changes whenever a document may."""
    digest = hashlib.sha512(kemu.__version__.encode())
    digest.update(repr(catalogue.versions()).encode())
    for package, suffixes in (
        ("kemu.emulated.gateway.openapi", (".py",)),
        ("kemu.emulated.gateway.openapi.texts", (".txt",)),
    ):
        for file in sorted(files.files(package).iterdir(), key=lambda one: one.name):
            if file.name.endswith(suffixes):
                digest.update(file.read_bytes())
    digest.update(files.files("kemu.emulated.objects.facts").joinpath("facts.txt").read_bytes())
    for file in sorted(files.files("kemu.messages.k8s").iterdir(), key=lambda one: one.name):
        if file.name.endswith("_pb2.py"):
            digest.update(file.read_bytes())
    return digest.hexdigest().upper()
