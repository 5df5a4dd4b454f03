"""Which HTTP request to a real API server each call of kemu's API service is.

Bodies of objects go as protobuf, patches and options as JSON; answers come as protobuf. Paths and parameters are those
of client-go (``k8s.io/client-go/rest``, ``Request.URL``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from google.protobuf.message import Message

from kemu import errors
from kemu.emulated.bridge import patches
from kemu.emulated.objects import resources
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.wire import envelopes
from kemu.messages.v1 import api_pb2

JSON = "application/json"

_PATCHES = {
    api_pb2.PatchRequest.MERGE: "application/merge-patch+json",
    api_pb2.PatchRequest.STRATEGIC: "application/strategic-merge-patch+json",
    api_pb2.PatchRequest.MESSAGE: "application/strategic-merge-patch+json",
    api_pb2.PatchRequest.JSON: "application/json-patch+json",
}

Query = tuple[tuple[str, str], ...]


class Request(NamedTuple):
    method: str
    path: str
    resource: Resource
    """Whose objects the answer holds."""
    query: Query = ()
    body: bytes = b""
    content_type: str = ""


def of(verb: str, request: Message | None) -> Request:
    """The request of a call of that name. Raises ApiError for what a real API server does not know."""
    make = _MAKERS.get(verb)
    if make is None:
        raise errors.MethodNotAllowed(f"a real API server knows no {verb}")
    return make(request)


def watch(create: api_pb2.WatchCreate, revision: str, timeout_s: int) -> Request:
    """From ``revision`` on, whatever ``create`` says; "": from the present state."""
    resource = _resource(create.resource)
    query = [("watch", "true"), *_selectors(create)]
    if revision:
        query.append(("resourceVersion", revision))
    if create.allow_bookmarks:
        query.append(("allowWatchBookmarks", "true"))
    query.append(("timeoutSeconds", str(timeout_s)))
    return Request("GET", _path(resource, create.resource.namespace), resource, tuple(query))


def _resource(where: api_pb2.Resource) -> Resource:
    resource = resources.BY_PLURAL.get(where.resource)
    if resource is None:
        raise errors.NotFound(f"kemu has no {where.resource}", kind=where.resource)
    return resource


def _path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    parts = ["apis" if resource.group else "api", resource.api_version]
    if resource.namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(resource.plural)
    parts += [quote(part, safe="") for part in (name, subresource) if part]
    return "/" + "/".join(parts)


def _selectors(request: api_pb2.ListRequest | api_pb2.WatchCreate) -> list[tuple[str, str]]:
    given = (("labelSelector", request.label_selector), ("fieldSelector", request.field_selector))
    return [one for one in given if one[1]]


def _options(options: api_pb2.WriteOptions) -> Query:
    query = [("dryRun", value) for value in options.dry_run]
    if options.field_manager:
        query.append(("fieldManager", options.field_manager))
    if options.field_validation:
        query.append(("fieldValidation", options.field_validation))
    return tuple(query)


def _get(request: api_pb2.GetRequest) -> Request:
    resource = _resource(request.resource)
    query = (("resourceVersion", request.resource_version),) if request.resource_version else ()
    return Request(
        "GET", _path(resource, request.resource.namespace, request.name, request.subresource), resource, query
    )


def _list(request: api_pb2.ListRequest) -> Request:
    resource = _resource(request.resource)
    query = _selectors(request)
    if request.limit:
        query.append(("limit", str(request.limit)))
    rest: str = getattr(request, "continue")
    given = (
        ("continue", rest),
        ("resourceVersion", request.resource_version),
        ("resourceVersionMatch", request.resource_version_match),
    )
    query += [one for one in given if one[1]]
    return Request("GET", _path(resource, request.resource.namespace), resource, tuple(query))


def _create(request: api_pb2.CreateRequest) -> Request:
    resource = _resource(request.resource)
    body, content_type = _body(resource, request.object, request.content_type)
    path = _path(resource, request.resource.namespace)
    return Request("POST", path, resource, _options(request.options), body, content_type)


def _update(request: api_pb2.UpdateRequest) -> Request:
    resource = _resource(request.resource)
    body, content_type = _body(resource, request.object, request.content_type)
    name = resource.message.FromString(request.object).metadata.name  # type: ignore[attr-defined]
    path = _path(resource, request.resource.namespace, name, request.subresource)
    return Request("PUT", path, resource, _options(request.options), body, content_type)


def _update_status(request: api_pb2.UpdateStatusRequest) -> Request:
    whole = api_pb2.UpdateRequest(resource=request.resource, object=request.object, subresource="status")
    return _update(whole)


def _body(resource: Resource, data: bytes, content_type: str) -> tuple[bytes, str]:
    if content_type:
        return data, content_type
    return envelopes.wrap(resource.api_version, resource.kind, data), envelopes.MEDIA_TYPE


def _patch(request: api_pb2.PatchRequest) -> Request:
    resource = _resource(request.resource)
    content_type = _PATCHES.get(request.type)
    if content_type is None:
        raise errors.BadRequest("a patch of that type is not passed on")
    if request.type == api_pb2.PatchRequest.MESSAGE:
        patch = patches.strategic(resource.message, request.patch, request.removed)
    else:
        patch = json.loads(request.patch)
    if request.HasField("preconditions"):
        # As client-go's users state them: a patch of metadata.uid that does not match is a conflict.
        metadata = {}
        if request.preconditions.uid:
            metadata["uid"] = request.preconditions.uid
        if request.preconditions.resource_version:
            metadata["resourceVersion"] = request.preconditions.resource_version
        if isinstance(patch, list):
            patch = [{"op": "test", "path": f"/metadata/{key}", "value": metadata[key]} for key in metadata] + patch
        else:
            patch = {**patch, "metadata": {**patch.get("metadata", {}), **metadata}}
    path = _path(resource, request.resource.namespace, request.name, request.subresource)
    return Request("PATCH", path, resource, _options(request.options), _json(patch), content_type)


def _delete(request: api_pb2.DeleteRequest) -> Request:
    resource = _resource(request.resource)
    path = _path(resource, request.resource.namespace, request.name)
    return Request("DELETE", path, resource, (), _json(_delete_options(request)), JSON)


def _delete_collection(request: api_pb2.DeleteCollectionRequest) -> Request:
    listed = _list(request.list)
    body = _json(_delete_options(request.delete))
    return listed._replace(method="DELETE", body=body, content_type=JSON)


def _delete_options(request: api_pb2.DeleteRequest | api_pb2.EvictRequest) -> dict[str, Any]:
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if request.HasField("grace_period_seconds"):
        options["gracePeriodSeconds"] = request.grace_period_seconds
    if request.HasField("preconditions"):
        given = {"uid": request.preconditions.uid, "resourceVersion": request.preconditions.resource_version}
        options["preconditions"] = {key: value for key, value in given.items() if value}
    if isinstance(request, api_pb2.DeleteRequest) and request.propagation_policy:
        options["propagationPolicy"] = request.propagation_policy
    if request.dry_run:
        options["dryRun"] = list(request.dry_run)
    return options


def _bind(request: api_pb2.BindRequest) -> Request:
    if request.HasField("node_generation"):
        raise errors.BadRequest("a real API server counts no bind generations")
    metadata: dict[str, Any] = {"name": request.name, "namespace": request.namespace}
    if request.uid:
        metadata["uid"] = request.uid
    if request.annotations:
        metadata["annotations"] = dict(request.annotations)
    target = {"kind": "Node", "name": request.node}
    body = _json({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})
    pods = resources.BY_PLURAL["pods"]
    return Request("POST", _path(pods, request.namespace, request.name, "binding"), pods, (), body, JSON)


def _evict(request: api_pb2.EvictRequest) -> Request:
    metadata = {"name": request.name, "namespace": request.namespace}
    options = _delete_options(request)
    body = _json({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options})
    pods = resources.BY_PLURAL["pods"]
    return Request("POST", _path(pods, request.namespace, request.name, "eviction"), pods, (), body, JSON)


def _json(data: Json) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


_MAKERS: dict[str, Callable[[Any], Request]] = {
    "get": _get,
    "list": _list,
    "create": _create,
    "update": _update,
    "update_status": _update_status,
    "patch": _patch,
    "delete": _delete,
    "delete_collection": _delete_collection,
    "bind": _bind,
    "evict": _evict,
}
