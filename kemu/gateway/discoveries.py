"""What clients ask before they ask for objects, in its smallest form: groups, resources, version, health."""

from __future__ import annotations

from typing import Any

from kemu.gateway.answers import documents, responses
from kemu.gateway.answers.responses import Response
from kemu.gateway.requests.messages import Request
from kemu.gateway.requests.paths import Path
from kemu.objects import resources

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/amd64",
}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def open_document(path: str) -> Response | None:
    if path.rstrip("/") == "/version":
        return _json(VERSION)
    if path.startswith(("/healthz", "/livez", "/readyz")):
        return responses.text(200, "ok")
    return None


def document(request: Request) -> Response:
    path = request.path.rstrip("/")
    if path == "/api":
        return _json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
    groups = sorted({row.group for row in resources.RESOURCES if row.group})
    if path == "/apis":
        return _json({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(one) for one in groups]})
    if path == "/api/v1":
        return _json(_resources("v1"))
    parts = path.strip("/").split("/")
    if parts[0] == "apis" and len(parts) == 2 and parts[1] in groups:
        return _json({"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])})
    if (
        parts[0] == "apis"
        and len(parts) == 3
        and any(row.api_version == f"{parts[1]}/{parts[2]}" for row in resources.RESOURCES)
    ):
        return _json(_resources(f"{parts[1]}/{parts[2]}"))
    return responses.text(404, "404 page not found\n")


def is_unknown_group(path: Path) -> bool:
    return bool(path.group) and path.group not in GROUPS


GROUPS = frozenset((*(row.group for row in resources.RESOURCES), "authorization.k8s.io", "authentication.k8s.io"))


def _group(name: str) -> dict[str, Any]:
    versions = dict.fromkeys(row.api_version for row in resources.RESOURCES if row.group == name)
    found = [{"groupVersion": one, "version": one.rpartition("/")[2]} for one in versions]
    return {"name": name, "versions": found, "preferredVersion": found[0]}


def _resources(api_version: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for row in resources.RESOURCES:
        if row.api_version != api_version:
            continue
        found.append(
            {
                "name": row.plural,
                "singularName": row.kind.lower(),
                "namespaced": row.namespaced,
                "kind": row.kind,
                "verbs": _VERBS,
                "shortNames": list(row.short_names),
            }
        )
        if row.has_status:
            found.append(
                {
                    "name": f"{row.plural}/status",
                    "singularName": "",
                    "namespaced": row.namespaced,
                    "kind": row.kind,
                    "verbs": ["get", "patch", "update"],
                }
            )
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": found}


def _json(found: Any) -> Response:
    return Response(200, "application/json", (documents.text(found) + b"\n",))
