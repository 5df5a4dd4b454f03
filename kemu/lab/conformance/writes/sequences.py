"""Sequences of writes to one object, answered by an API server as it runs in a cluster.

What is compared of each answer: status, reason, message, causes, warnings; whether the object has changed; the object;
and every entry of its managed fields, field by field. Not compared: UIDs, versions, and times but for whether there are
some.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

import grpc
from google.rpc import status_pb2

from kemu import errors
from kemu.emulated.apiserver.errors import DETAILS_KEY
from kemu.emulated.client.sessions import error_of
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.managed_fields import fieldsets, schemas
from kemu.emulated.objects.resources import Resource
from kemu.lab.conformance import comparisons
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.messages.k8s import autoscaling_v1_pb2, meta_v1_pb2
from kemu.messages.v1 import api_pb2, api_pb2_grpc

Json = dict[str, Any]
NAMESPACE, NAME = "default", "x"
_PATCHES = {
    "strategic": api_pb2.PatchRequest.STRATEGIC,
    "merge": api_pb2.PatchRequest.MERGE,
    "json": api_pb2.PatchRequest.JSON,
    "apply": api_pb2.PatchRequest.APPLY,
}


def answer(case: Json) -> Json:
    plane = ControlPlane(stores_unsimulated=True)
    return {"steps": plane.run(lambda: _play(plane, case))}


def agrees(expect: Json, answered: Json) -> list[str]:
    return comparisons.compare(expect, answered)


async def _play(plane: ControlPlane, case: Json) -> list[Json]:
    stub: Any = api_pb2_grpc.ApiStub(plane.env.dial("apiserver/0"))  # type: ignore[no-untyped-call]
    results, version = [], ""
    for step in case["steps"]:
        await plane.clock.sleep(step.get("after", 0))
        try:
            resource = resources.BY_PLURAL[case["resource"]]
            where = api_pb2.Resource(resource=resource.plural, namespace=NAMESPACE if resource.namespaced else "")
            result, version = result_of(*await write(stub, resource, where, NAME, step), version)
        except grpc.aio.AioRpcError as error:
            result = refusal(error)
        results.append(result)
    return results


async def write(
    stub: grpc.aio.Channel, resource: Resource, where: api_pb2.Resource, name: str, step: Json
) -> tuple[int, Json, list[str]]:
    """Code, manifest and warnings."""
    caller = as_whom(step)
    verb, body = step["verb"], step.get("text", "").encode() or json.dumps(step["body"]).encode()
    content_type = step.get("contentType", "application/json")
    options = api_pb2.WriteOptions(
        field_manager=step.get("manager", ""),
        user_agent=step.get("agent", "recorder/1"),
        field_validation=step.get("validation", "Strict"),
        dry_run=["All"] if step.get("dryRun") else [],
    )
    if verb == "create":
        creation = api_pb2.CreateRequest(resource=where, object=body, options=options, content_type=content_type)
        found = await stub.Create(creation, **caller)
    elif verb == "update":
        replacement = api_pb2.UpdateRequest(
            resource=where,
            object=body,
            options=options,
            content_type=content_type,
            subresource=step.get("subresource", ""),
        )
        found = await stub.Update(replacement, **caller)
    else:
        patch = api_pb2.PatchRequest(
            resource=where,
            name=name,
            type=_PATCHES[verb],
            patch=body,
            options=options,
            subresource=step.get("subresource", ""),
        )
        if "force" in step:
            patch.force = step["force"]
        found = await stub.Patch(patch, **caller)
    message: Any = autoscaling_v1_pb2.Scale if step.get("subresource") == "scale" else resource.message
    manifest = convert.to_manifest(message.FromString(found.object))
    manifest = as_go_writes(manifest)
    code = 201 if verb == "create" or found.created else 200
    return code, manifest, list(found.warnings)


def as_go_writes(manifest: Json) -> Json:
    kind = schemas.find(manifest["apiVersion"], manifest["kind"]) or ""
    return cast(dict[str, Any], schemas.as_go_writes(kind, manifest))


def as_whom(step: Json) -> Json:
    """The metadata of a call of somebody else (``as``: a name and a group), whom the caller impersonates."""
    if "as" not in step:
        return {}
    name, group = step["as"]
    return {"metadata": [("kemu-as", name), *(("kemu-as-group", one) for one in (group, "system:authenticated"))]}


def result_of(code: int, manifest: Json, warnings: list[str], version: str) -> tuple[Json, str]:
    """What is compared of an answer that is an object, and the object's version. ``version``: the one before."""
    metadata = dict(manifest.get("metadata") or {})
    entries = metadata.pop("managedFields", None) or []
    found = metadata.pop("resourceVersion", "")
    for name in ("uid", "creationTimestamp", "deletionTimestamp"):
        if metadata.get(name):
            metadata[name] = "is set"
    if manifest["kind"] == "Service":
        # The server's choice.
        manifest = {**manifest, "spec": {name: one for name, one in manifest["spec"].items() if name != "clusterIPs"}}
    if manifest["kind"] == "PersistentVolume":
        manifest = {**manifest, "status": {**manifest["status"], "lastPhaseTransitionTime": "is set"}}
    result: Json = {"code": code, "object": {**manifest, "metadata": metadata}, "managers": managers_of(entries)}
    warnings = [one for one in warnings if not one.startswith(_OF_GATEWAYS)]
    if warnings:
        result["warnings"] = warnings
    if found:
        result["changed"] = found != version
    return result, found or version


def managers_of(entries: list[Json]) -> list[Json]:
    """The entries in an order that does not depend on the time."""
    found = [
        {
            "who": [
                entry.get(name, "") for name in ("manager", "operation", "apiVersion", "subresource", "fieldsType")
            ],
            "is timed": "time" in entry,
            "fields": [
                fieldsets.text(path) for path in fieldsets.iterate(fieldsets.from_json(entry.get("fieldsV1") or {}))
            ],
        }
        for entry in entries
    ]
    return sorted(found, key=lambda one: (one["who"], one["fields"]))


def refusal_of(status: Json) -> Json:
    """What is compared of an answer that is a Status."""
    details = status.get("details") or {}
    causes = [{**one, "message": _shortened(one.get("message", ""))} for one in details.get("causes") or []]
    causes.sort(key=lambda one: (one.get("field", ""), one["message"]))
    return {
        "code": status.get("code"),
        "reason": "" if status.get("reason") == "Unknown" else status.get("reason", ""),
        "message": _shortened(_in_order(status.get("message", ""))),
        "kind": details.get("kind", ""),
        "name": details.get("name", ""),
        "causes": causes,
    }


_OF_GATEWAYS = "v1 Endpoints is deprecated"
"""How the warnings begin that do not come with an answer, but from who passes it on."""


def _shortened(message: str) -> str:
    """Without how the old spec of a pod differs from the new one, which follows what may change in a form of Go's own,
    without the whole of an object that a patch has made, and without UIDs."""
    message = _UID.sub("a UID", _PATCHED.sub("an object", message))
    return message.partition("\n")[0] if any(one in message for one in _CHANGES) else message


_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PATCHED = re.compile(r'(?<=Invalid value: )"\{.*\}"(?=: )', re.DOTALL)
_CHANGES = ("pod updates may not change fields other than", "may not be changed\n")


def _in_order(message: str) -> str:
    """Conflicts come in the order of a Go map."""
    head, colon, rest = message.partition(": conflicts with ")
    return head + colon + "\n".join(sorted(rest.split("\n"))) if colon else message


def refusal(error: grpc.aio.AioRpcError) -> Json:
    trailing: Any = dict(error.trailing_metadata() or ())
    for detail in status_pb2.Status.FromString(trailing[DETAILS_KEY]).details:
        if detail.Is(meta_v1_pb2.Status.DESCRIPTOR):
            status = meta_v1_pb2.Status.FromString(detail.value)
            found = convert.to_manifest(status)
            return refusal_of(found)
    raise errors.KemuError(str(error_of(b"")))
