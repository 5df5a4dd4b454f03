"""What a request is about, as authorization sees it (``authorizer.Attributes``)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml
from google.protobuf.message import DecodeError

from kemu.emulated.objects import custom_kinds, resources, selectors
from kemu.emulated.objects.conversion import sizes, yaml_texts
from kemu.emulated.objects.plain import Json
from kemu.messages.v1 import api_pb2

VERBS = {
    "get": "get",
    "list": "list",
    "watch": "watch",
    "create": "create",
    "update": "update",
    "update_status": "update",
    "patch": "patch",
    "delete": "delete",
    "delete_collection": "deletecollection",
    "bind": "create",
    "commit": "create",
    "evict": "create",
}
"""By verb of the service."""


def _of_json(data: bytes) -> Any:
    sizes.check_json(data)
    return json.loads(data)


def _of_yaml(data: bytes) -> Json:
    found: Json = yaml_texts.load(data)[0]
    return found


_TEXTS: dict[str, Callable[[bytes], Any]] = {"application/json": _of_json, "application/yaml": _of_yaml}
"""How to read an object that comes as text, by its content type."""


class Attributes(NamedTuple):
    verb: str
    group: str
    resource: str
    """Plural."""
    subresource: str
    namespace: str
    """Empty: none, or all."""
    name: str
    """Empty where a request names none; a create does not."""
    fields: str
    """The field selector of a list or watch."""

    @property
    def combined(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def demands(self, field: str) -> str:
        """The value that the field selector demands of a field; empty: none."""
        if not self.fields:
            return ""
        try:
            return dict(selectors.parse_fields(self.fields, self.resource).equals).get(field, "")
        except selectors.SelectorError:
            return ""


ObjectRequest = (
    api_pb2.GetRequest
    | api_pb2.ListRequest
    | api_pb2.WatchCreate
    | api_pb2.CreateRequest
    | api_pb2.UpdateRequest
    | api_pb2.UpdateStatusRequest
    | api_pb2.PatchRequest
    | api_pb2.DeleteRequest
)
"""Requests that name their kind."""
WithObject = api_pb2.CreateRequest | api_pb2.UpdateRequest | api_pb2.UpdateStatusRequest
Write = WithObject | api_pb2.PatchRequest | api_pb2.DeleteRequest
"""Requests to write one object."""
PodRequest = api_pb2.BindRequest | api_pb2.EvictRequest
Request = ObjectRequest | PodRequest | api_pb2.DeleteCollectionRequest | api_pb2.CommitRequest


def of_request(verb: str, request: Request) -> list[Attributes]:
    """``verb`` and ``request`` as the service has them. Of several bindings, one for each namespace."""
    found = VERBS[verb]
    if isinstance(request, PodRequest):
        subresource = "binding" if verb == "bind" else "eviction"
        return [Attributes(found, "", "pods", subresource, request.namespace, request.name, "")]
    if isinstance(request, api_pb2.CommitRequest):
        namespaces = dict.fromkeys(one.namespace for one in request.bindings)
        return [Attributes(found, "", "pods", "binding", namespace, "", "") for namespace in namespaces]
    which = request.list if isinstance(request, api_pb2.DeleteCollectionRequest) else request
    where = which.resource
    plural = where.resource
    row = resources.BY_PLURAL.get(plural)
    group = row.group if row is not None else ""
    if row is None and custom_kinds.is_custom(plural):
        plural, _, group = plural.partition(".")
    namespace, name, fields = where.namespace, getattr(request, "name", ""), ""
    subresource = "status" if verb == "update_status" else getattr(request, "subresource", "")
    if isinstance(which, api_pb2.ListRequest | api_pb2.WatchCreate):
        fields = which.field_selector
        # As RequestInfo does: a selector of one name names the object.
        name = Attributes(found, group, plural, "", namespace, "", fields).demands("metadata.name")
    elif isinstance(request, WithObject) and row is not None:
        wants_name, wants_namespace = verb != "create" and not name, row.namespaced and not namespace
        # What the URL says counts, and a body is read only where it says nothing (``RequestInfoFactory``).
        stated_namespace, stated_name = _stated(row, request) if wants_name or wants_namespace else ("", "")
        namespace = namespace or stated_namespace
        name = "" if verb == "create" else name or stated_name
    if row is not None and not row.namespaced:
        # The namespace of a namespace is itself, as in RequestInfo, where the URL names it.
        namespace = getattr(request, "name", "") if plural == "namespaces" else ""
    return [Attributes(found, group, plural, subresource, namespace, name, fields)]


def _stated(row: resources.Resource, request: WithObject) -> tuple[str, str]:
    """Namespace and name of the object in a request. What cannot be read is refused later."""
    try:
        form = getattr(request, "content_type", "")
        if form in _TEXTS:
            metadata = _TEXTS[form](request.object)["metadata"]
            return str(metadata.get("namespace", "")), str(metadata.get("name", ""))
        found: Any = row.message.FromString(request.object)
        return found.metadata.namespace, found.metadata.name
    except (DecodeError, yaml.YAMLError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return "", ""
