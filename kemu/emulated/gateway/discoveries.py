"""What clients ask before they ask for objects: groups, kinds, schemas, version, health.

The documents are made when they are asked for first, and kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from kemu.emulated.gateway import custom
from kemu.emulated.gateway.aggregation import Aggregator
from kemu.emulated.gateway.answers import documents, responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.authentication.service_accounts import Tokens
from kemu.emulated.gateway.backends import Backend
from kemu.emulated.gateway.discovery import aggregated, catalogue, legacy, protobufs
from kemu.emulated.gateway.discovery.catalogue import Version
from kemu.emulated.gateway.openapi import documents as openapi
from kemu.emulated.gateway.requests import negotiation, routes
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.gateway.requests.paths import Path
from kemu.emulated.objects.facts import KUBERNETES
from kemu.errors import NotFound

GO = "go1.26"
MAJOR, MINOR_NUMBER, _ = KUBERNETES.removeprefix("v").split(".", 2)
MINOR = f"{MAJOR}.{MINOR_NUMBER}"
VERSION = {
    "major": MAJOR,
    "minor": MINOR_NUMBER,
    "emulationMajor": MAJOR,
    "emulationMinor": MINOR_NUMBER,
    "minCompatibilityMajor": MAJOR,
    "minCompatibilityMinor": str(int(MINOR_NUMBER) - 1),
    "gitVersion": KUBERNETES,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": GO,
    "compiler": "gc",
    "platform": "linux/amd64",
}

_AGGREGATED: dict[str, Callable[[Sequence[Version]], dict[str, Any]]] = {
    "/api": aggregated.core,
    "/apis": aggregated.groups,
}


_SWAGGER_VARIES = b"Accept", b"Accept-Encoding"
_V3_MEDIA = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
_V2_MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def version() -> Response:
    return Response(200, negotiation.JSON, (documents.text(VERSION) + b"\n",))


def issuer(request: Request, tokens: Tokens) -> Response | None:
    """What others need to read the tokens of service accounts; None: another document is meant."""
    control = ((b"cache-control", b"public, max-age=3600"),)
    if request.path == "/.well-known/openid-configuration":
        routes.check_document(request)
        url = f"{request.scheme}://{request.headers.get('host', '')}"
        return Response(200, negotiation.JSON, (tokens.configuration(url),), control)
    if request.path == "/openid/v1/jwks":
        routes.check_document(request, ("application/jwk-set+json",))
        return Response(200, "application/jwk-set+json", (tokens.keys(),), control)
    return None


async def document(
    request: Request, backend: Backend, removed_betas: bool = False, others: Aggregator | None = None
) -> Response:
    """``others``: API servers that serve more.

    Raises :class:`kemu.errors.NotAcceptable` for a document of discovery in a form that the server does not have."""
    path = request.path.rstrip("/")
    if path == "/index.html":
        path = ""
    if path in _AGGREGATED:
        media = _aggregated_form(request)
        if media:
            more = await _more(backend, others) if path == "/apis" else ()
            body, tag = _aggregated(path, more, media, removed_betas)
            return _tagged(request, f"{media};{aggregated.PARAMETERS}", body, tag)
    if path == "/api":
        routes.check_document(request, negotiation.SERVED)
        body = documents.text(legacy.api_versions(request.headers.get("host", "")))
    elif path.startswith(openapi.ROOT):
        schemas = await others.schemas(backend) if others is not None else {}
        return await _schema(request, path, backend, await custom.definitions(backend), schemas)
    elif path == "/openapi/v2":
        asked = await custom.definitions(backend), await others.swaggers(backend) if others is not None else ()
        if "proto-openapi" in request.headers.get("accept", ""):
            packed_swagger = openapi.packed_swagger(*asked)
            return _tagged(request, _V2_MEDIA, packed_swagger, tag_of(packed_swagger), None, _SWAGGER_VARIES)
        if not _takes(request, negotiation.JSON, _V2_MEDIA):
            return Response(406, "", (), ((b"vary", b"Accept"), (b"vary", b"Accept-Encoding")))
        swagger = openapi.swagger(*asked)
        return _tagged(request, negotiation.JSON, swagger, tag_of(swagger), None, _SWAGGER_VARIES)
    else:
        body = _legacy(path, () if path.startswith("/api/") else await _more(backend, others), removed_betas)
    if _is_of_version(path):
        if not body:
            raise NotFound("the server could not find the requested resource")
        routes.check_document(request, negotiation.SERVED)
    if not body:
        return responses.text(404, "404 page not found\n")
    if not path:
        return Response(200, negotiation.JSON, (documents.indented(body),))
    form = negotiation.of_status(request.headers.get("accept", ""), "", "")
    if form.media == negotiation.PROTOBUF and (packed := protobufs.encoded(json.loads(body))) is not None:
        return Response(200, negotiation.PROTOBUF, (packed,))
    if form.media == negotiation.YAML:
        return Response(200, form.media, (documents.as_yaml(body),))
    if form.pretty or negotiation.is_human(request.query.text("pretty"), request.agent):
        body = documents.indented(body)
    return Response(200, negotiation.JSON, (body + b"\n",))


async def _more(backend: Backend, others: Aggregator | None) -> tuple[Version, ...]:
    """What neither kemu's own kinds nor its groups are."""
    found = await custom.versions(backend)
    if others is None:
        return found
    known = {one.api_version for one in (*catalogue.versions(), *found)}
    return (*found, *(one for one in await others.versions(backend) if one.api_version not in known))


def is_unknown_group(path: Path) -> bool:
    return path.group not in _groups()


def _is_of_version(path: str) -> bool:
    """Whether it names a version of a group of Kubernetes, be it there or not."""
    parts = path.strip("/").split("/")
    return (parts[0] == "api" and len(parts) == 2) or (parts[0] == "apis" and len(parts) == 3 and parts[1] in _groups())


@lru_cache(1)
def _groups() -> frozenset[str]:
    return frozenset(one.group for one in catalogue.versions())


@lru_cache(1024)
def _legacy(path: str, of_custom: tuple[Version, ...], removed_betas: bool) -> bytes:
    """Empty: there is no such document."""
    served = catalogue.with_custom(of_custom, removed_betas)
    parts = path.strip("/").split("/")
    found: dict[str, Any] | None = None
    if path == "":
        found = {
            "paths": [
                *legacy.paths(served),
                "/healthz",
                "/livez",
                "/metrics",
                openapi.ROOT,
                "/readyz",
                "/statusz",
                "/version",
            ]
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


@lru_cache(24)
def _aggregated(path: str, of_custom: tuple[Version, ...], media: str, removed_betas: bool) -> tuple[bytes, str]:
    """The document, and the tag that all its forms share."""
    found = _AGGREGATED[path](catalogue.with_custom(of_custom, removed_betas))
    body = documents.text(found) + b"\n"
    tag = tag_of(body)
    if media == negotiation.YAML:
        return documents.as_yaml(body), tag
    return (protobufs.encoded(found) or b"") if media == negotiation.PROTOBUF else body, tag


def _aggregated_form(request: Request) -> str:
    """The media type of the aggregated document, where that is the first form of all that the client takes and the
    server has; empty: it is not."""
    for clause in negotiation.clauses(request.headers.get("accept", "")):
        for media in negotiation.SERVED:
            if clause.type not in (media, "application/*", "*/*"):
                continue
            asked = tuple(clause.parameters.get(name, "") for name in ("g", "v", "as"))
            if asked == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
                return media
            if not any(asked):
                return ""
    return ""


async def _schema(
    request: Request, path: str, backend: Backend, definitions: tuple[bytes, ...], others: Mapping[str, str]
) -> Response:
    """``/openapi/v3`` and what it names (``handler3.HandleGroupVersion``). ``others``: paths of other servers."""
    if path == openapi.ROOT:
        root = openapi.root(definitions, tuple(others.items()))
        return _tagged(request, "text/plain; charset=utf-8", root, tag_of(root), None, ())
    name = path.removeprefix(openapi.ROOT).strip("/")
    body, tag = openapi.document(name), openapi.tag()
    if body is None:
        found = openapi.custom_document(name, await custom.versions(backend), definitions) if definitions else None
        if found is None:
            return Response(404, "", ())
        body, tag = found
    known = request.query.text("hash")
    if known and known != tag:
        return Response(301, "text/html; charset=utf-8", (), ((b"location", f"{path}?hash={tag}".encode()),))
    accept = request.headers.get("accept", "")
    if accept and not any("/" in clause.type or clause.type == "*" for clause in negotiation.clauses(accept)):
        return Response(200, "", ())  # nobody has written anything
    if not _takes(request, negotiation.JSON, _V3_MEDIA):
        return Response(406, "", (), ((b"vary", b"Accept"),))
    return _tagged(request, negotiation.JSON, body, tag, b"public, immutable" if known else None)


def _takes(request: Request, *served: str) -> bool:
    """Whether the client takes one of these; parameters do not matter."""
    accept = request.headers.get("accept", "")
    known = {one for media in served for one in (media, f"{media.partition('/')[0]}/*", "*/*")}
    return not accept or any(clause.type in known for clause in negotiation.clauses(accept))


def tag_of(body: bytes) -> str:
    """``calculateETag``."""
    return hashlib.sha512(body).hexdigest().upper()


def _tagged(
    request: Request,
    media: str,
    body: bytes,
    tag: str,
    control: bytes | None = b"public",
    varies: Sequence[bytes] = (b"Accept",),
) -> Response:
    """``ServeHTTPWithETag``. ``varies``: headers on which the answer depends."""
    headers = [(b"etag", f'"{tag}"'.encode()), *((b"vary", name) for name in varies)]
    if control is not None:
        headers.append((b"cache-control", control))
    if request.headers.get("if-none-match") == f'"{tag}"':
        return Response(304, "", (), headers)
    return Response(200, media, (body,), headers)
