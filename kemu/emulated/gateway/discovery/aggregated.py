"""Everything in two documents, ``/api`` and ``/apis``: ``APIGroupDiscoveryList`` of ``apidiscovery.k8s.io/v2``."""

from __future__ import annotations

from typing import Any

from kemu.emulated.gateway.discovery import catalogue
from kemu.emulated.gateway.discovery.catalogue import Entry, Kind, Version

PARAMETERS = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
MEDIA_TYPE = f"application/json;{PARAMETERS}"


def core() -> dict[str, Any]:
    """``/api``."""
    return _list([{"metadata": {}, "versions": _versions("")}])


def groups() -> dict[str, Any]:
    """``/apis``."""
    names = dict.fromkeys(one.group for one in catalogue.versions() if one.group)
    return _list([{"metadata": {"name": name}, "versions": _versions(name)} for name in names])


def _list(items: list[dict[str, Any]]) -> dict[str, Any]:
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
    return {**head, "items": items}


def _versions(group: str) -> list[dict[str, Any]]:
    return [_version(one) for one in catalogue.versions() if one.group == group]


def _version(version: Version) -> dict[str, Any]:
    listed = [_resource(entry) for entry in version.entries]
    return {"version": version.version, "resources": listed, "freshness": "Current"}


def _resource(entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = {
        "resource": entry.plural,
        "responseKind": _kind(Kind(entry.kind)),
        "scope": "Namespaced" if entry.namespaced else "Cluster",
        "singularResource": entry.singular,
        "verbs": list(entry.verbs),
    }
    if entry.short_names:
        found["shortNames"] = list(entry.short_names)
    if entry.categories:
        found["categories"] = list(entry.categories)
    if entry.subresources:
        found["subresources"] = [
            {"subresource": one.name, "responseKind": _kind(one.kind), "verbs": list(one.verbs)}
            for one in entry.subresources
        ]
    return found


def _kind(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}
