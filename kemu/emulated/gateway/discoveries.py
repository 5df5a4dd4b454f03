"""What clients ask before they ask for objects: groups, kinds, schemas, version, health.

The documents are made when they are asked for first, and kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from kemu.emulated.gateway import custom
from kemu.emulated.gateway.answers import documents, responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.backends import Backend
from kemu.emulated.gateway.discovery import aggregated, catalogue, legacy, protobufs
from kemu.emulated.gateway.discovery.catalogue import Version
from kemu.emulated.gateway.openapi import documents as openapi
from kemu.emulated.gateway.requests import negotiation
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.gateway.requests.paths import Path
from kemu.errors import NotAcceptable

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.3",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/amd64",
}

_AGGREGATED: dict[str, Callable[[Sequence[Version]], dict[str, Any]]] = {
    "/api": aggregated.core,
    "/apis": aggregated.groups,
}


_V2_MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2 = b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.3"
"""OpenAPI v2 without definitions: ``Document{swagger, info{title, version}}`` in the protobuf of gnostic. kubectl
asks for it when version 3 has no such kind, and then says that the kind is not known."""


def version() -> Response:
    return Response(200, negotiation.JSON, (documents.text(VERSION) + b"\n",))


async def document(request: Request, backend: Backend) -> Response:
    path = request.path.rstrip("/")
    if path in _AGGREGATED and _wants_aggregated(request):
        body, tag = _aggregated(path, await custom.versions(backend) if path == "/apis" else ())
        return _tagged(request, aggregated.MEDIA_TYPE, body, tag)
    if path == "/api":
        body = documents.text(legacy.api_versions(request.headers.get("host", "")))
    elif path.startswith(openapi.ROOT):
        return await _schema(request, path, backend, await custom.definitions(backend))
    elif path == "/openapi/v2":
        if "proto-openapi" in request.headers.get("accept", ""):
            return _tagged(request, _V2_MEDIA, _V2, tag_of(_V2))
        swagger = openapi.swagger(await custom.definitions(backend))
        return _tagged(request, negotiation.JSON, swagger, tag_of(swagger))
    else:
        body = _legacy(path, () if path.startswith("/api/") else await custom.versions(backend))
    if not body:
        return responses.text(404, "404 page not found\n")
    if _wants_protobuf(request):
        packed = protobufs.encoded(json.loads(body))
        if packed is not None:
            return Response(200, negotiation.PROTOBUF, (packed,))
    if negotiation.is_human(request.query.text("pretty"), request.agent):
        body = documents.indented(body)
    return Response(200, negotiation.JSON, (body + b"\n",))


def is_unknown_group(path: Path) -> bool:
    return all(one.group != path.group for one in catalogue.versions())


@lru_cache(1024)
def _legacy(path: str, of_custom: tuple[Version, ...]) -> bytes:
    """Empty: there is no such document."""
    served = catalogue.with_custom(of_custom)
    parts = path.strip("/").split("/")
    found: dict[str, Any] | None = None
    if path == "":
        found = {
            "paths": [*legacy.paths(served), "/healthz", "/livez", "/metrics", openapi.ROOT, "/readyz", "/version"]
        }
    elif path == "/apis":
        found = legacy.groups(served)
    elif parts[0] == "api" and len(parts) == 2:
        found = legacy.resources(parts[1], served)
    elif parts[0] == "apis" and len(parts) == 2:
        found = legacy.group(parts[1], served)
    elif parts[0] == "apis" and len(parts) == 3:
        found = legacy.resources("/".join(parts[1:]), served)
    return documents.text(found) if found is not None else b""


@lru_cache(16)
def _aggregated(path: str, of_custom: tuple[Version, ...]) -> tuple[bytes, str]:
    body = documents.text(_AGGREGATED[path](catalogue.with_custom(of_custom))) + b"\n"
    return body, tag_of(body)


def _wants_aggregated(request: Request) -> bool:
    """Whether that is the first form of all that the client takes and the server has."""
    for clause in negotiation.clauses(request.headers.get("accept", "")):
        if clause.type in (negotiation.JSON, "application/*", "*/*"):
            asked = tuple(clause.parameters.get(name, "") for name in ("g", "v", "as"))
            if asked == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
                return True
            if not any(asked):
                return False
    return False


def _wants_protobuf(request: Request) -> bool:
    """Whether that is the first form of all that the client takes. A client that takes none gets JSON all the same."""
    try:
        return negotiation.negotiate(request.headers.get("accept", "")).media == negotiation.PROTOBUF
    except NotAcceptable:
        return False


async def _schema(request: Request, path: str, backend: Backend, definitions: tuple[bytes, ...]) -> Response:
    """``/openapi/v3`` and what it names (``handler3.HandleGroupVersion``)."""
    if path == openapi.ROOT:
        root = openapi.root(definitions)
        return _tagged(request, "text/plain; charset=utf-8", root, tag_of(root))
    name = path.removeprefix(openapi.ROOT).strip("/")
    body, tag = openapi.document(name), openapi.tag()
    if body is None:
        found = openapi.custom_document(name, await custom.versions(backend), definitions) if definitions else None
        if found is None:
            return responses.text(404, "404 page not found\n")
        body, tag = found
    known = request.query.text("hash")
    if known and known != tag:
        return Response(301, "text/html; charset=utf-8", (), ((b"location", f"{path}?hash={tag}".encode()),))
    return _tagged(request, negotiation.JSON, body, tag, b"public, immutable" if known else b"public")


def tag_of(body: bytes) -> str:
    """``calculateETag``."""
    return hashlib.sha512(body).hexdigest().upper()


def _tagged(request: Request, media: str, body: bytes, tag: str, control: bytes = b"public") -> Response:
    """``ServeHTTPWithETag``."""
    headers = [(b"etag", f'"{tag}"'.encode()), (b"vary", b"Accept"), (b"cache-control", control)]
    if request.headers.get("if-none-match") == f'"{tag}"':
        return Response(304, "", (), headers)
    return Response(200, media, (body,), headers)
