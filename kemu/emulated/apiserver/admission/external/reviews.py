"""AdmissionReview: what a webhook is asked, and what it may answer (``plugin/webhook/request``)."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kemu.emulated.apiserver.admission.external.attributes import Attributes, Matched
from kemu.errors import KemuError

T = TypeVar("T")

GROUP = "admission.k8s.io"
JSON_PATCH = "JSONPatch"

_KINDS: dict[type, str] = {
    bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object", type(None): "null",
}  # fmt: skip


class BadAnswer(KemuError):
    """A webhook's answer makes no sense."""


def _invalid(why: str) -> BadAnswer:
    return BadAnswer(f"received invalid webhook response: {why}")


@dataclass(slots=True)
class Answer:
    allowed: bool = False
    patch: list[Any] | None = None
    """Operations of a JSON patch."""
    status: dict[str, Any] | None = None
    """Why it refuses: a ``metav1.Status``."""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    changed: dict[str, Any] | None = None
    """In place of a patch, by hooks in Python: the object as it shall be."""


def request(
    attributes: Attributes,
    matched: Matched,
    uid: str = "",
    obj: dict[str, Any] | None = None,
    old: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """``AdmissionRequest``. Expressions see it without a UID and without objects (``CreateAdmissionRequest``)."""
    group, version, kind = attributes.kind
    resource = {"group": attributes.group, "version": attributes.version, "resource": attributes.plural}
    as_kind = {"group": group, "version": version, "kind": kind}
    if attributes.differs(matched):
        as_kind = {"group": matched.group, "version": matched.version, "kind": kind}
    found: dict[str, Any] = {
        "uid": uid,
        "kind": as_kind,
        "resource": {**resource, "group": matched.group, "version": matched.version},
        "requestKind": {"group": group, "version": version, "kind": kind},
        "requestResource": resource,
        "operation": attributes.operation,
        "userInfo": attributes.user.info(),
        "object": obj,
        "oldObject": old,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    if attributes.subresource:
        found["subResource"] = found["requestSubResource"] = attributes.subresource
    if attributes.name:
        found["name"] = attributes.name
    if attributes.namespace:
        found["namespace"] = attributes.namespace
    return found


def review(version: str, asked: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": asked}


def read(answer: dict[str, Any], version: str, uid: str, *, mutating: bool) -> Answer:
    """``VerifyAdmissionResponse``. Raises BadAnswer."""
    response = _of(answer, "response", dict, "v1.AdmissionReview")
    if response is None:
        raise _invalid("webhook response was absent")
    if version == "v1":
        if response.get("uid", "") != uid:
            raise _invalid(f'expected response.uid="{uid}", got {json.dumps(response.get("uid", ""))}')
        group, _, found_version = str(answer.get("apiVersion", "")).rpartition("/")
        kind = answer.get("kind", "")
        if (group, found_version, kind) != (GROUP, "v1", "AdmissionReview"):
            told = f"{group}/{found_version}, Kind={kind}"
            raise _invalid(f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {told}")
    found = Answer(allowed=bool(_of(response, "allowed", bool)))
    found.status = _of(response, "status", dict)
    if found.status is not None:
        _check_status(found.status)
    found.warnings = [str(one) for one in _of(response, "warnings", list) or () if isinstance(one, str)]
    annotations = _of(response, "auditAnnotations", dict) or {}
    found.annotations = {str(key): value for key, value in annotations.items() if isinstance(value, str)}
    patch, kind = _of(response, "patch", str) or "", _of(response, "patchType", str)
    if not mutating:
        if version == "v1" and patch:
            raise _invalid("validating webhook may not return response.patch")
        if version == "v1" and kind is not None:
            raise _invalid("validating webhook may not return response.patchType")
        return found
    if version == "v1":
        if patch and kind is None:
            raise _invalid("webhook returned response.patch but not response.patchType")
        if not patch and kind is not None:
            raise _invalid("webhook returned response.patchType but not response.patch")
        if kind == "":
            raise _invalid('webhook returned invalid response.patchType of ""')
    if patch and found.allowed:
        if version == "v1" and kind != JSON_PATCH:
            raise BadAnswer(f'unsupported patch type "{kind}"')
        found.patch = _read_patch(patch)
    return found


def _read_patch(text: str) -> list[Any]:
    try:
        decoded = base64.b64decode(text, validate=True)
        found = json.loads(decoded)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise BadAnswer(f"received undecodable patch in webhook response: {error}") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadAnswer("received undecodable patch in webhook response: it is no list of operations")
    return found


def _of(data: dict[str, Any], key: str, kind: type[T], owner: str = "AdmissionResponse") -> T | None:
    """A value, as Go reads it into a field of that type."""
    value = data.get(key)
    if value is None or isinstance(value, kind):
        return value
    told = _KINDS.get(type(value), "value")
    why = f"json: cannot unmarshal {told} into Go struct field {owner}.{key} of type {kind.__name__}"
    raise BadAnswer(f"failed to call webhook: {why}")


def _check_status(status: dict[str, Any]) -> None:
    for key, kind in (("message", str), ("reason", str), ("status", str), ("code", int), ("details", dict)):
        _of(status, key, kind, "Status")
