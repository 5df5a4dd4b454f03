"""Everything in two documents, ``/api`` and ``/apis``: ``APIGroupDiscoveryList`` of ``apidiscovery.k8s.io/v2``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kemu.emulated.gateway.discovery.catalogue import Entry, Kind, Version

PARAMETERS = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
MEDIA_TYPE = f"application/json;{PARAMETERS}"


def core(served: Sequence[Version]) -> dict[str, Any]:
    """``/api``."""
    return _list([{"metadata": {}, "versions": _versions("", served)}])


def groups(served: Sequence[Version]) -> dict[str, Any]:
    """``/apis``."""
    names = dict.fromkeys(one.group for one in served if one.group)
    return _list([{"metadata": {"name": name}, "versions": _versions(name, served)} for name in names])


def _list(items: list[dict[str, Any]]) -> dict[str, Any]:
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
    return {**head, "items": items}


def _versions(group: str, served: Sequence[Version]) -> list[dict[str, Any]]:
    return [_version(one) for one in served if one.group == group]


def _version(version: Version) -> dict[str, Any]:
    listed = [_resource(entry, version) for entry in version.entries]
    return {"version": version.version, "resources": listed, "freshness": "Stale" if version.is_stale else "Current"}


def _resource(entry: Entry, version: Version) -> dict[str, Any]:
    # The document says the group of a kind where it is a custom one, and where it is another.
    whole = {"group": version.group, "version": version.version} if entry.is_custom else {"group": "", "version": ""}

    def kind(one: Kind) -> dict[str, str]:
        place = {"group": one.group, "version": one.version} if one.group else whole
        return {**place, "kind": one.kind}

    found: dict[str, Any] = {
        "resource": entry.plural,
        "responseKind": kind(Kind(entry.kind)),
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
            {"subresource": one.name, "responseKind": kind(one.kind), "verbs": list(one.verbs)}
            for one in entry.subresources
        ]
    return found
