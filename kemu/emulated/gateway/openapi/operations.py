"""The paths of a group version: what can be done with each resource, with which parameters and bodies."""

from __future__ import annotations

from typing import Any

from kemu.emulated.gateway.discovery.catalogue import Entry, Kind, Subresource, Version
from kemu.emulated.gateway.openapi import schemas
from kemu.emulated.gateway.openapi.schemas import Collection
from kemu.emulated.objects import events, resources
from kemu.emulated.objects.kinds import autoscalers, components
from kemu.messages.k8s import (
    authentication_v1_pb2,
    authorization_v1_pb2,
    autoscaling_v1_pb2,
    core_v1_pb2,
    meta_v1_pb2,
    policy_v1_pb2,
)

_BODIES: dict[str, Any] = {
    kind: message.DESCRIPTOR
    for kind, message in (
        ("Binding", core_v1_pb2.Binding),
        ("Eviction", policy_v1_pb2.Eviction),
        ("Scale", autoscaling_v1_pb2.Scale),
        ("TokenRequest", authentication_v1_pb2.TokenRequest),
        ("TokenReview", authentication_v1_pb2.TokenReview),
        ("SelfSubjectReview", authentication_v1_pb2.SelfSubjectReview),
        ("LocalSubjectAccessReview", authorization_v1_pb2.LocalSubjectAccessReview),
        ("SelfSubjectAccessReview", authorization_v1_pb2.SelfSubjectAccessReview),
        ("SelfSubjectRulesReview", authorization_v1_pb2.SelfSubjectRulesReview),
        ("SubjectAccessReview", authorization_v1_pb2.SubjectAccessReview),
    )
}
"""Bodies of kinds that are not stored."""

_ROWS = {
    (row.api_version, row.kind): row for row in (*resources.RESOURCES, autoscalers.ROW, events.ROW, components.ROW)
}

MEDIA = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_METHODS = {"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
_ACTIONS = {"get": "get", "post": "post", "put": "put", "patch": "patch", "delete": "delete"}

_PARAMETERS: dict[str, tuple[str, str]] = {
    "dryRun": ("string", "All: nothing is stored."),
    "fieldManager": ("string", "Who makes the change."),
    "fieldValidation": ("string", "What becomes of unknown and duplicate fields: Ignore, Warn or Strict."),
    "force": ("boolean", "Whether an apply takes over fields that others manage."),
    "gracePeriodSeconds": ("integer", "How long the object may take to end."),
    "orphanDependents": ("boolean", "Whether dependents stay. Use propagationPolicy instead."),
    "propagationPolicy": ("string", "What becomes of dependents: Orphan, Background or Foreground."),
    "ignoreStoreReadErrorWithClusterBreakingPotential": ("boolean", "Whether to delete what cannot be read."),
    "allowWatchBookmarks": ("boolean", "Whether a watch may send bookmarks."),
    "continue": ("string", "Where a list goes on, as the part before it says."),
    "fieldSelector": ("string", "Fields that the objects must have."),
    "labelSelector": ("string", "Labels that the objects must have."),
    "limit": ("integer", "How many objects a list has at most."),
    "resourceVersion": ("string", "How new the state must be, or since when changes are told."),
    "resourceVersionMatch": ("string", "How resourceVersion is meant: Exact or NotOlderThan."),
    "sendInitialEvents": ("boolean", "Whether a watch begins with the present state."),
    "timeoutSeconds": ("integer", "How long a list or watch may last."),
    "watch": ("boolean", "Whether changes are told as they come."),
    "pretty": ("string", "Whether the answer is indented."),
}
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_OF_METHOD = {"post": _WRITE, "put": _WRITE, "patch": (*_WRITE, "force"), "delete": _DELETE}


def paths(version: Version, collection: Collection) -> dict[str, Any]:
    """What the schemas of the paths are goes into ``collection``."""
    base = f"/apis/{version.api_version}" if version.group else f"/api/{version.version}"
    found: dict[str, Any] = {}
    for entry in version.entries:
        add_entry(found, Of(version, entry, base, collection))
    return dict(sorted(found.items()))


class Of:
    """An entry, and where it belongs."""

    patches: tuple[str, ...] = PATCHES
    """Media types of its patches; ``media``: of its objects."""
    media: tuple[str, ...] = MEDIA

    def __init__(self, version: Version, entry: Entry, base: str, collection: Collection) -> None:
        self.version = version
        self.entry = entry
        self.collection = collection
        self.everywhere = f"{base}/{entry.plural}"
        within = f"{base}/namespaces/{{namespace}}/{entry.plural}"
        self.path = within if entry.namespaced else self.everywhere

    def body(self, kind: Kind) -> tuple[dict[str, str], dict[str, str]]:
        """The reference to the schema of a kind, and what the kind is."""
        group, version = (kind.group, kind.version) if kind.version else (self.version.group, self.version.version)
        api_version = f"{group}/{version}" if group else version
        row = _ROWS.get((api_version, kind.kind))
        descriptor = _BODIES[kind.kind] if row is None else row.message.DESCRIPTOR
        named = schemas.group_version_kind(api_version, kind.kind)
        return self.collection.add_object(descriptor, api_version, kind.kind), named

    def listed(self) -> dict[str, str]:
        """The reference to the schema of its lists."""
        row = _ROWS[self.version.api_version, self.entry.kind]
        list_meta = meta_v1_pb2.ListMeta.DESCRIPTOR
        return self.collection.add_list(row.message.DESCRIPTOR, list_meta, self.version.api_version, self.entry.kind)


def add_entry(found: dict[str, Any], of: Of) -> None:
    entry = of.entry
    schema, kind = of.body(Kind(entry.kind))
    own: dict[str, Any] = {}
    if "create" in entry.verbs:
        own["post"] = _operation(of, "post", kind, schema, body=schema)
    if "list" in entry.verbs:
        own["get"] = _operation(of, "get", kind, of.listed(), _LIST, action="list")
        if entry.namespaced:
            found[of.everywhere] = {"get": own["get"], "parameters": [_parameter("pretty")]}
    if "deletecollection" in entry.verbs:
        own["delete"] = _deletion(of, kind, (*_DELETE, *_LIST[1:-1]), "deletecollection")
    found[of.path] = {**own, "parameters": _located(of, of.path)}
    named = f"{of.path}/{{name}}"
    single = {
        _METHODS[verb]: _deletion(of, kind, _DELETE, "delete")
        if verb == "delete"
        else _operation(of, _METHODS[verb], kind, schema, body=schema if verb != "get" else None)
        for verb in ("delete", "get", "patch", "update")
        if verb in entry.verbs
    }
    if single:
        found[named] = {**single, "parameters": _located(of, named)}
    for part in entry.subresources:
        _add_part(found, of, part)


def _add_part(found: dict[str, Any], of: Of, part: Subresource) -> None:
    if part.kind.kind.endswith("Options"):
        return  # Streams of bytes.
    schema, kind = of.body(part.kind)
    path = f"{of.path}/{{name}}/{part.name}"
    found[path] = {
        **{
            _METHODS[verb]: _operation(of, _METHODS[verb], kind, schema, body=schema if verb != "get" else None)
            for verb in part.verbs
        },
        "parameters": _located(of, path),
    }


def _operation(
    of: Of,
    method: str,
    kind: dict[str, str],
    answer: dict[str, str],
    parameters: tuple[str, ...] = (),
    *,
    body: dict[str, str] | None = None,
    action: str = "",
) -> dict[str, Any]:
    names = parameters or _OF_METHOD.get(method, ())
    found: dict[str, Any] = {
        "description": f"{action or _ACTIONS[method]} {kind['kind']}",
        **({"parameters": [_parameter(name) for name in names]} if names else {}),
        "responses": {"200": _answer(of, "OK", answer), "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action or _ACTIONS[method],
        "x-kubernetes-group-version-kind": kind,
    }
    if method in ("post", "put", "patch"):
        found["responses"]["201"] = _answer(of, "Created", answer)
    if method == "patch":
        patch = {"schema": {"type": "object"}}
        found["requestBody"] = {"required": True, "content": dict.fromkeys(of.patches, patch)}
    elif body is not None:
        found["requestBody"] = {"required": True, "content": {"*/*": {"schema": body}}}
    return found


def _deletion(of: Of, kind: dict[str, str], parameters: tuple[str, ...], action: str) -> dict[str, Any]:
    status = of.collection.add_object(meta_v1_pb2.Status.DESCRIPTOR, "v1", "Status")
    options = of.collection.add_object(meta_v1_pb2.DeleteOptions.DESCRIPTOR, of.version.api_version, "DeleteOptions")
    found = _operation(of, "delete", kind, status, parameters, action=action)
    found["requestBody"] = {"content": {"*/*": {"schema": options}}}
    return found


def _answer(of: Of, description: str, schema: dict[str, str]) -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema} for media in of.media}}


def _parameter(name: str) -> dict[str, Any]:
    kind, description = _PARAMETERS[name]
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": True}}


def _located(of: Of, path: str) -> list[dict[str, Any]]:
    """The parameters in a path."""
    found = []
    for name, description in (("name", f"Name of the {of.entry.kind}."), ("namespace", "Namespace of the object.")):
        if f"{{{name}}}" in path:
            schema = {"type": "string", "uniqueItems": True}
            found.append({"name": name, "in": "path", "description": description, "required": True, "schema": schema})
    return [*found, _parameter("pretty")]
