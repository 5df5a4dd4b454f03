"""Requests of a tenant's clients as events of the run log, in the place of the audit log of the cluster."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects import resources
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.runlog.events import ApiRequest, Event, RequestRefused

_OF_PODS = ("create", "bind", "delete", "evict")
_READS = ("get", "list")
_QUIET = ("events", "leases")

Answer = api_pb2.ObjectResponse | api_pb2.ListResponse | api_pb2.CommitResponse


def event_of(verb: str, request: Message, by: str, start_ns: int, came: Answer | meta_v1_pb2.Status) -> Event | None:
    """None: the run log says nothing of such a request. ``came``: the answer, or why it was refused."""
    if verb in _READS or isinstance(request, api_pb2.CommitRequest):
        return None
    asked: Any = request
    if verb in ("bind", "evict"):
        plural, namespace = "pods", asked.namespace
    else:
        where = asked.list.resource if verb == "delete_collection" else asked.resource
        plural, namespace = where.resource, where.namespace
    resource = resources.BY_PLURAL.get(plural)
    if resource is None or plural in _QUIET:
        return None
    name, uid = getattr(asked, "name", ""), getattr(asked, "uid", "")
    answer: Any = resource.message.FromString(came.object) if isinstance(came, api_pb2.ObjectResponse) else None
    if answer is not None:
        name, uid = answer.metadata.name, answer.metadata.uid
    elif verb in ("create", "update", "update_status"):
        written: Any = resource.message.FromString(asked.object)
        name, uid = written.metadata.name, written.metadata.uid
    common = {
        "verb": verb, "resource": plural, "namespace": namespace, "name": name, "uid": uid, "by": by, "start": start_ns,
    }  # fmt: skip
    if isinstance(came, meta_v1_pb2.Status):
        return RequestRefused(**common, reason=came.reason, message=came.message)
    if plural != "pods" or verb not in _OF_PODS:
        return None
    revision = answer.metadata.resourceVersion if answer is not None else ""
    return ApiRequest(**common, rev=int(revision or 0))
