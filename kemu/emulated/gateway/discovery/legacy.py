"""The documents that clients walk through one by one: ``/api``, ``/apis``, ``/apis/apps``, ``/apis/apps/v1``."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

from kemu.emulated.gateway.discovery.catalogue import Entry, Version


def api_versions(address: str) -> dict[str, Any]:
    """``/api``. ``address``: host and port by which the client knows the server."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def groups(served: Sequence[Version]) -> dict[str, Any]:
    """``/apis``."""
    names = dict.fromkeys(one.group for one in served if one.group)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name, served) for name in names]}


def group(name: str, served: Sequence[Version]) -> dict[str, Any] | None:
    """``/apis/<group>``; None for one that is not served."""
    if not name or all(one.group != name for one in served):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, served)}


def _group(name: str, served: Sequence[Version]) -> dict[str, Any]:
    found = [{"groupVersion": one.api_version, "version": one.version} for one in served if one.group == name]
    return {"name": name, "versions": found, "preferredVersion": found[0]}


def resources(api_version: str, served: Sequence[Version]) -> dict[str, Any] | None:
    """``/api/v1``, ``/apis/<group>/<version>``; None for one that is not served."""
    for one in served:
        if one.api_version == api_version:
            # As kube-apiserver: the list of the core group does not say its own version.
            head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if one.group else {})}
            listed = [document for entry in one.entries for document in _documents(one, entry)]
            return {**head, "groupVersion": api_version, "resources": listed}
    return None


def _documents(version: Version, entry: Entry) -> list[dict[str, Any]]:
    found: dict[str, Any] = {
        "name": entry.plural,
        "singularName": entry.singular,
        "namespaced": entry.namespaced,
        "kind": entry.kind,
        "verbs": list(entry.verbs),
    }
    if entry.short_names:
        found["shortNames"] = list(entry.short_names)
    if entry.categories:
        found["categories"] = list(entry.categories)
    if entry.is_stored:
        found["storageVersionHash"] = _hash(version, entry)
    parts = [
        {
            "name": f"{entry.plural}/{part.name}",
            "singularName": "",
            "namespaced": entry.namespaced,
            **({"group": part.kind.group, "version": part.kind.version} if part.kind.group else {}),
            "kind": part.kind.kind,
            "verbs": list(part.verbs),
        }
        for part in entry.subresources
    ]
    return [found, *parts]


_STORED_AS = dict.fromkeys(("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"), "v1beta1")
"""Kinds that kube-apiserver stores in another version than it prefers."""


def _hash(version: Version, entry: Entry) -> str:
    """``StorageVersionHash``. Events are stored as those of the core group, autoscalers as those of v2."""
    group, stored = version.group, entry.stored_as or version.version
    if entry.kind == "Event" and version.api_version in ("v1", "events.k8s.io/v1"):
        group, stored = "", "v1"
    elif group == "autoscaling":
        stored = "v2"
    elif group == "admissionregistration.k8s.io":
        stored = _STORED_AS.get(entry.kind, stored)
    digest = hashlib.sha256(f"{group}/{stored}/{entry.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def paths(served: Sequence[Version]) -> list[str]:
    """``/``: of these documents."""
    found = {"/api", "/apis"}
    for one in served:
        if one.group:
            found.update((f"/apis/{one.group}", f"/apis/{one.api_version}"))
        else:
            found.add(f"/api/{one.version}")
    return sorted(found)
