"""The documents of discovery in protobuf, as clients ask that prefer it.

The messages are those of ``apimachinery/pkg/apis/meta/v1`` and ``apidiscovery.k8s.io/v2``; each is a table of fields,
by their names in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated.gateway.requests import envelopes

_Fields = dict[str, tuple[int, Any]]
"""By name: a number, and the fields of the message, or None for a text or a flag."""

_VERBS: _Fields = {"items": (1, None)}
_RESOURCE: _Fields = {
    "name": (1, None),
    "namespaced": (2, None),
    "kind": (3, None),
    "verbs": (4, _VERBS),
    "shortNames": (5, None),
    "singularName": (6, None),
    "categories": (7, None),
    "group": (8, None),
    "version": (9, None),
    "storageVersionHash": (10, None),
}
_VERSION: _Fields = {"groupVersion": (1, None), "version": (2, None)}
_ADDRESS: _Fields = {"clientCIDR": (1, None), "serverAddress": (2, None)}
_GROUP: _Fields = {
    "name": (1, None),
    "versions": (2, _VERSION),
    "preferredVersion": (3, _VERSION),
    "serverAddressByClientCIDRs": (4, _ADDRESS),
}
_TYPE: _Fields = {"group": (1, None), "version": (2, None), "kind": (3, None)}
_PART: _Fields = {"subresource": (1, None), "responseKind": (2, _TYPE), "verbs": (4, None)}
_DISCOVERED: _Fields = {
    "resource": (1, None),
    "responseKind": (2, _TYPE),
    "scope": (3, None),
    "singularResource": (4, None),
    "verbs": (5, None),
    "shortNames": (6, None),
    "categories": (7, None),
    "subresources": (8, _PART),
}
_VERSION_OF_GROUP: _Fields = {"version": (1, None), "resources": (2, _DISCOVERED), "freshness": (3, None)}
_KINDS: dict[str, _Fields] = {
    "APIResourceList": {"groupVersion": (1, None), "resources": (2, _RESOURCE)},
    "APIGroup": _GROUP,
    "APIGroupList": {"groups": (1, _GROUP)},
    "APIGroupDiscoveryList": {
        "metadata": (1, {}),
        "items": (2, {"metadata": (1, {"name": (1, None)}), "versions": (2, _VERSION_OF_GROUP)}),
    },
    "APIVersions": {"versions": (1, None), "serverAddressByClientCIDRs": (2, _ADDRESS)},
}


def encoded(document: Mapping[str, Any]) -> bytes | None:
    """In its envelope; None: there is no such message."""
    fields = _KINDS.get(document.get("kind", ""))
    if fields is None:
        return None
    # As JSON has it: some documents come without one.
    version = document.get("apiVersion", "")
    return envelopes.pack(version, document["kind"], _message(fields, document))


def _message(fields: _Fields, document: Mapping[str, Any]) -> bytes:
    found = []
    for name, (number, inner) in fields.items():
        value = document.get(name)
        if inner is _VERBS:
            found.append(envelopes.field(number, b"".join(envelopes.field(1, one.encode()) for one in value or ())))
            continue
        for one in value if isinstance(value, list) else () if value is None else (value,):
            if inner is not None:
                found.append(envelopes.field(number, _message(inner, one)))
            elif isinstance(one, bool):
                found.append(bytes((number << 3, one)))
            else:
                found.append(envelopes.field(number, one.encode()))
    return b"".join(found)
