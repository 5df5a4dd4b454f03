"""Requests about HorizontalPodAutoscalers in the form of autoscaling/v1, as requests about the form that is stored.

A patch of the older form is carried out on that form: the gateway reads the object, patches it as the client sees it,
and sends what has changed of the form that is stored, on condition that nobody else has changed it meanwhile.
"""

from __future__ import annotations

import json
from typing import Any, cast

import yaml

from kemu.emulated.apiserver.registry import json_patches, patches
from kemu.emulated.gateway.requests import bodies, documents, negotiation
from kemu.emulated.gateway.requests.bodies import Body
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.objects import autoscalers
from kemu.emulated.objects.conversion import convert, go_values, sizes
from kemu.errors import BadRequest, Conflict
from kemu.messages.k8s import autoscaling_v2_pb2
from kemu.messages.v1 import api_pb2

_TRIES = 5
"""As often as kube-apiserver patches anew what has changed meanwhile (``MaxRetryWhenPatchConflicts``)."""


def body(found: Body) -> Body:
    """Raises :class:`kemu.errors.BadRequest`."""
    if found.content_type:
        document = documents.mapping(found.data, found.content_type)
    else:
        message = bodies.parse(found, autoscalers.ROW.message)
        go_values.trim(message)
        head = {"apiVersion": autoscalers.ROW.api_version, "kind": autoscalers.ROW.kind}
        document = {**head, **convert.to_json(message)}
    newer = json.dumps(autoscalers.newer(document)).encode()
    return found._replace(data=newer, content_type=negotiation.JSON)


async def patch(call: Call, kind: api_pb2.PatchRequest.Type, data: bytes) -> api_pb2.ObjectResponse:
    """Raises :class:`kemu.errors.ApiError`."""
    if kind == api_pb2.PatchRequest.APPLY:
        newer = autoscalers.newer(documents.mapping(data, negotiation.YAML))
        return await _send(call, kind, yaml.safe_dump(newer).encode())
    await call.require("patch", call.path.subresource)
    for number in range(_TRIES):
        request = api_pb2.GetRequest(resource=call.where(), name=call.path.name)
        answer = await call.look("Get", request)
        stored = autoscaling_v2_pb2.HorizontalPodAutoscaler.FromString(answer.object)
        before = convert.to_json(stored)
        wanted = autoscalers.newer(_patched(convert.to_json(autoscalers.shown(stored)), kind, data))
        changes = _difference(before, wanted)
        if call.path.subresource != "status":
            changes.pop("status", None)
        changes.setdefault("metadata", {})["resourceVersion"] = stored.metadata.resourceVersion
        try:
            return await _send(call, api_pb2.PatchRequest.MERGE, json.dumps(changes).encode())
        except Conflict:
            if number == _TRIES - 1:
                raise
    raise AssertionError("the last try ends this")


async def _send(call: Call, kind: api_pb2.PatchRequest.Type, data: bytes) -> api_pb2.ObjectResponse:
    request = api_pb2.PatchRequest(
        resource=call.where(),
        name=call.path.name,
        type=kind,
        patch=data,
        subresource=call.path.subresource,
        options=call.write_options(),
        force=call.request.query.flag("force"),
    )
    return cast(api_pb2.ObjectResponse, await call.ask("Patch", request))


def _patched(document: dict[str, Any], kind: api_pb2.PatchRequest.Type, data: bytes) -> dict[str, Any]:
    if kind == api_pb2.PatchRequest.JSON:
        return json_patches.apply(document, json_patches.parse(data))
    sizes.check_json(data)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"error decoding patch: {error}") from None
    if not isinstance(found, dict):
        raise BadRequest("error decoding patch: it is no mapping")
    # No list of this form merges by keys, so a strategic patch is a merge patch.
    return patches.merge(document, found)


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that makes one of the other."""
    changes: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        known = before.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            inner = _difference(known, value)
            if inner:
                changes[key] = inner
        elif known != value:
            changes[key] = value
    return changes
