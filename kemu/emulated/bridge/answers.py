"""What a real API server answers, as answers of kemu's API service.

Objects are handed on as the bytes in which they came, but for the place of their version. Where Kubernetes answers a
write with a ``Status`` and kemu with an object, the object has no more than its name; clients treat it like one that is
gone already.
"""

from __future__ import annotations

import json
from typing import Any

from kemu.emulated.bridge.connections import Answer
from kemu.emulated.bridge.requests import Request
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.wire import envelopes, wires
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.v1 import api_pb2

_CREATED = 201
_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict",
    410: "Expired", 413: "RequestEntityTooLarge", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError",
    503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


class Refused(Exception):
    """``status``: a serialised ``metav1.Status``."""

    def __init__(self, status: meta_v1_pb2.Status) -> None:
        super().__init__(status.message)
        self.status = status


def of(request: Request, answer: Answer) -> api_pb2.ObjectResponse | api_pb2.ListResponse:
    """Raises Refused."""
    check(answer)
    if not answer.headers.get("Content-Type", "").startswith(envelopes.MEDIA_TYPE):
        return _of_json(request, answer)
    envelope = envelopes.unwrap(answer.body)
    if envelope.kind == f"{request.resource.kind}List":
        return _list(envelope.raw)
    if envelope.kind == request.resource.kind:
        gone = request.method == "DELETE" and not _lives(request, envelope.raw)
        return api_pb2.ObjectResponse(object=wires.of_real(envelope.raw)[0], created=answer.code == _CREATED, gone=gone)
    status = meta_v1_pb2.Status.FromString(envelope.raw)
    return _named(request, status.details.name, status.details.uid)


def check(answer: Answer) -> None:
    """Raises Refused unless the request was carried out."""
    if not 200 <= answer.code < 300:
        raise Refused(status_of(answer))


def status_of(answer: Answer) -> meta_v1_pb2.Status:
    """Why a request was refused, as ``NewGenericServerResponse`` words it where the server does not say."""
    status = meta_v1_pb2.Status()
    try:
        if answer.body.startswith(envelopes.MAGIC):
            status.MergeFromString(envelopes.unwrap(answer.body).raw)
        else:
            data = json.loads(answer.body)
            status = convert.from_json(meta_v1_pb2.Status, {k: v for k, v in data.items() if k not in _TYPE})
    except Exception:  # whatever stands between here and there may have answered
        status = meta_v1_pb2.Status(message=answer.body[:200].decode(errors="replace").strip())
    status.code = status.code or answer.code
    status.reason = status.reason or _REASONS.get(answer.code, "InternalError" if answer.code >= 500 else "Unknown")
    status.message = status.message or f"the server answered with {answer.code}"
    after = answer.headers.get("Retry-After", "")
    if after.isdigit() and not status.details.retryAfterSeconds:
        status.details.retryAfterSeconds = int(after)
    return status


def unreachable(why: str) -> meta_v1_pb2.Status:
    return meta_v1_pb2.Status(status="Failure", reason="ServiceUnavailable", code=503, message=why)


def passing(status: meta_v1_pb2.Status) -> meta_v1_pb2.Status:
    """The status of a list or watch: client-go's reflectors try again whatever the refusal, but for a revision that is
    gone."""
    if status.reason in ("Expired", "Gone", "ServiceUnavailable", "TooManyRequests", "Timeout", "InternalError"):
        return status
    return unreachable(status.message)


def lists(raw_meta: bytes, items: list[bytes]) -> api_pb2.ListResponse:
    meta = meta_v1_pb2.ListMeta.FromString(raw_meta)
    response = api_pb2.ListResponse(resource_version=meta.resourceVersion, items=items)
    setattr(response, "continue", getattr(meta, "continue"))
    response.remaining_item_count = meta.remainingItemCount
    return response


_TYPE = ("kind", "apiVersion")


def _list(raw: bytes) -> api_pb2.ListResponse:
    meta, items = envelopes.split_list(raw)
    return lists(meta, [wires.of_real(item)[0] for item in items])


def _of_json(request: Request, answer: Answer) -> api_pb2.ObjectResponse | api_pb2.ListResponse:
    """A server that knows no protobuf."""
    data = json.loads(answer.body)
    kind = data.get("kind", "")
    if kind == f"{request.resource.kind}List":
        meta = convert.from_json(meta_v1_pb2.ListMeta, data.get("metadata") or {})
        return lists(meta.SerializeToString(), [json_object(request, item) for item in data.get("items") or ()])
    if kind == "Status":
        details = data.get("details") or {}
        return _named(request, details.get("name", ""), details.get("uid", ""))
    return api_pb2.ObjectResponse(object=json_object(request, data), created=answer.code == _CREATED)


def json_object(request: Request, data: dict[str, Any]) -> bytes:
    stripped = {key: value for key, value in data.items() if key not in _TYPE}
    return convert.from_json(request.resource.message, stripped).SerializeToString(deterministic=True)


def _named(request: Request, name: str, uid: str) -> api_pb2.ObjectResponse:
    parts = request.path.split("/")
    namespace = parts[parts.index("namespaces") + 1] if request.resource.namespaced and "namespaces" in parts else ""
    if not name and request.resource.plural in parts[:-1]:
        name = parts[parts.index(request.resource.plural) + 1]
    obj: Any = request.resource.message()
    obj.metadata.name, obj.metadata.namespace, obj.metadata.uid = name, namespace, uid
    return api_pb2.ObjectResponse(object=obj.SerializeToString(deterministic=True), gone=True)


def _lives(request: Request, raw: bytes) -> bool:
    """Whether an object that a delete has answered with is still there: it ends gracefully, or a finalizer holds it."""
    metadata: Any = request.resource.message.FromString(raw).metadata  # type: ignore[attr-defined]
    return bool(metadata.finalizers) or (
        metadata.HasField("deletionTimestamp") and metadata.deletionGracePeriodSeconds > 0
    )
