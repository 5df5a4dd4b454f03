"""What the messages between actors are about: for holds and for choosers that steer a run in ``sim``.

A message is read only when that is asked: what steers by sender, receiver and method pays nothing for its content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.message import Message as Protobuf

from kemu.emulated.objects import resources
from kemu.messages.etcd import rpc_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.holds import Label
from kemu.runtime.rpc.ends import ClientEnd, Status
from kemu.runtime.sim.steering.messages import Message
from kemu.runtime.words import short

_VERBS = {
    "get": "get",
    "list": "list",
    "create": "create",
    "update": "update",
    "update_status": "update-status",
    "patch": "patch",
    "delete": "delete",
    "delete_collection": "delete-collection",
    "bind": "bind",
    "evict": "evict",
    "commit": "bind",
}
_PODS = resources.BY_PLURAL["pods"]
_NODES = resources.BY_PLURAL["nodes"]


class Reader:
    """Reads messages of a run, in the order in which they were sent.

    What an answer or an event of a watch is about follows from requests before it, so it has to be shown every message
    between two actors, in both directions.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple[Any, int], tuple[Label, ...]] = {}
        """What batched requests were about, by call and id."""
        self._watched: dict[tuple[Any, int], resources.Resource | None] = {}
        """By call and watch id."""
        self._seen: dict[tuple[Any, int, str], tuple[Any, ...]] = {}
        """What a watch has shown of an object."""

    def labels(self, message: Message) -> tuple[Label, ...]:
        """What it is about: more than one label for batches."""
        payload = message.payload
        service, _, method = message.method.lstrip("/").partition("/")
        if isinstance(payload, ClientEnd):
            return self._requested(service, method, payload.request)
        if isinstance(payload, Status):
            of = self._requested(service, method, message.call.request)
            return tuple(Label(label.kind, label.name, f"{label.what}-answered") for label in of)
        if method == "Session":
            return self._batch(message, payload)
        if method == "Watch" and service.startswith("kemu."):
            return self._watch(message, payload)
        if method == "Watch":
            return _stored(message, payload)
        return (Label("", "", method.lower()),)

    def _requested(self, service: str, method: str, request: bytes) -> tuple[Label, ...]:
        """The label of a call with a single request; of others, that they began."""
        if service == "kemu.v1.Api" and method not in ("Session", "Watch"):
            found = getattr(api_pb2, f"{method}Request").FromString(request)
            if isinstance(found, api_pb2.CommitRequest):
                return _abouts("bind", found)
            verb = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in method).lstrip("-")
            return (_about(verb, found),)
        if service == "etcdserverpb.KV" and method == "Txn":
            return _transaction(rpc_pb2.TxnRequest.FromString(request))
        if service == "etcdserverpb.KV" and method == "Range":
            return (_of_key(rpc_pb2.RangeRequest.FromString(request).key, "range"),)
        if method in ("Session", "Watch"):
            return (Label("", "", f"open-{method.lower()}"),)
        return (Label("", "", method.lower()),)

    def _batch(self, message: Message, payload: bytes) -> tuple[Label, ...]:
        found: list[Label] = []
        if message.is_request:
            for call in api_pb2.SessionRequest.FromString(payload).calls:
                field = call.WhichOneof("request")
                labels = _abouts(_VERBS[field], getattr(call, field))
                self._calls[message.call, call.id] = labels
                found += labels
        else:
            for reply in api_pb2.SessionResponse.FromString(payload).replies:
                of = self._calls.pop((message.call, reply.id), (Label(),))
                for label, is_refused in zip(of, _refusals(reply, len(of)), strict=True):
                    how = "refused" if is_refused else "answered"
                    found.append(Label(label.kind, label.name, f"{label.what}-{how}"))
        return tuple(found)

    def _watch(self, message: Message, payload: bytes) -> tuple[Label, ...]:
        if message.is_request:
            request = api_pb2.WatchRequest.FromString(payload)
            if request.WhichOneof("request") != "create":
                return (Label("", "", "cancel-watch"),)
            created = request.create
            row = resources.BY_PLURAL.get(created.resource.resource)
            self._watched[message.call, created.watch_id] = row
            return (Label(row.kind if row else "", "", "watch"),)
        found = []
        for event in api_pb2.WatchResponse.FromString(payload).events:
            row = self._watched.get((message.call, event.watch_id))
            kind = row.kind if row else ""
            if event.type == api_pb2.WatchEvent.BOOKMARK:
                found.append(Label(kind, "", "bookmark"))
            elif event.type == api_pb2.WatchEvent.ERROR or row is None:
                found.append(Label(kind, "", "watch-ended"))
            else:
                found.append(self._changed((message.call, event.watch_id), row, event))
        return tuple(found)

    def _changed(self, watch: tuple[Any, int], row: resources.Resource, event: Any) -> Label:
        """What became of an object since the watch showed it last."""
        obj: Any = row.message.FromString(event.object)
        name = _named(obj.metadata.namespace, obj.metadata.name)
        key = (*watch, name)
        if event.type == api_pb2.WatchEvent.DELETED:
            self._seen.pop(key, None)
            return Label(row.kind, name, "deleted")
        before = self._seen.get(key)
        now = self._seen[key] = _state(row, obj)
        is_new = event.type == api_pb2.WatchEvent.ADDED or before is None
        if row is _PODS:
            return Label(row.kind, name, _pod_change(before or _NO_POD, now, is_new))
        if row is _NODES and before is not None and before != now:
            return Label(row.kind, name, "tainted" if before[0] != now[0] else "conditioned")
        return Label(row.kind, name, "added" if is_new else "modified")


_NO_POD: tuple[Any, ...] = ("", "", False, "Pending")


def _state(row: resources.Resource, obj: Any) -> tuple[Any, ...]:
    """What of an object has words of its own."""
    if row is _PODS:
        is_terminating = obj.metadata.HasField("deletionTimestamp")
        return obj.spec.nodeName, obj.status.nominatedNodeName, is_terminating, obj.status.phase or "Pending"
    if row is _NODES:
        return (
            tuple(taint.SerializeToString() for taint in obj.spec.taints),
            tuple((condition.type, condition.status) for condition in obj.status.conditions),
        )
    return ()


def _pod_change(before: tuple[Any, ...], now: tuple[Any, ...], is_new: bool) -> str:
    if now[2] and not before[2]:
        return "terminating"
    if now[0] and not before[0]:
        return "bound"
    if now[3] != before[3]:
        return str(now[3]).lower()
    if now[1] != before[1]:
        return "nominated" if now[1] else "nomination-cleared"
    return "added" if is_new else "modified"


def labelled(messages: Sequence[Message]) -> Iterator[tuple[Message, tuple[Label, ...]]]:
    """All messages of a run, in their order, with what they are about."""
    reader = Reader()
    for message in messages:
        yield message, reader.labels(message)


def _abouts(verb: str, request: Any) -> tuple[Label, ...]:
    """What a call of a Session is about; a commit is about each pod that it binds."""
    if isinstance(request, api_pb2.CommitRequest):
        return tuple(_about(verb, binding) for binding in request.bindings)
    return (_about(verb, request),)


def _refusals(reply: api_pb2.Reply, count: int) -> list[bool]:
    """For each label of a call whether it was refused."""
    which = reply.WhichOneof("result")
    if which == "commit":
        return [one.WhichOneof("result") == "error" for one in reply.commit.results]
    return [which == "error"] * count


def _about(verb: str, request: Any) -> Label:
    """What a request to an API server is about."""
    if isinstance(request, api_pb2.BindRequest | api_pb2.EvictRequest):
        return Label(_PODS.kind, _named(request.namespace, request.name), verb)
    if isinstance(request, api_pb2.DeleteCollectionRequest):
        request = request.list
    row = resources.BY_PLURAL.get(request.resource.resource)
    kind = row.kind if row else request.resource.resource
    if isinstance(request, api_pb2.CreateRequest | api_pb2.UpdateRequest | api_pb2.UpdateStatusRequest):
        metadata = _metadata(row, request.object)
        name = _named(metadata.namespace or request.resource.namespace, metadata.name) if metadata is not None else ""
        return Label(kind, name, verb)
    name = getattr(request, "name", "")
    if getattr(request, "subresource", "") == "status":
        verb += "-status"
    return Label(kind, _named(request.resource.namespace, name) if name else "", verb)


def _metadata(row: resources.Resource | None, data: bytes) -> Any:
    if row is None:
        return None
    obj: Protobuf = row.message.FromString(data)
    return obj.metadata  # type: ignore[attr-defined]  # every object has it


def _transaction(request: Any) -> tuple[Label, ...]:
    found = []
    for operation in request.success:
        if operation.WhichOneof("request") == "request_put":
            found.append(_of_key(operation.request_put.key, "put"))
        elif operation.WhichOneof("request") == "request_delete_range":
            found.append(_of_key(operation.request_delete_range.key, "delete"))
    return tuple(found) or (Label("", "", "txn"),)


def _stored(message: Message, payload: bytes) -> tuple[Label, ...]:
    """A message of the store's own watch."""
    if message.is_request:
        return (Label("", "", "watch"),)
    events = rpc_pb2.WatchResponse.FromString(payload).events
    found = []
    for event in events:
        is_put = event.type == 0
        word = "deleted" if not is_put else "added" if event.kv.create_revision == event.kv.mod_revision else "modified"
        found.append(_of_key(event.kv.key, word))
    return tuple(found) or (Label("", "", "progress"),)


def _of_key(key: bytes, what: str) -> Label:
    """The label of a key of the store: ``/registry/pods/default/web-0``."""
    plural, *names = key.removeprefix(resources.REGISTRY).decode(errors="replace").strip("\0/").split("/")
    row = resources.BY_PLURAL.get(plural)
    return Label(row.kind if row else "", short("/".join(names)), what)


def _named(namespace: str, name: str) -> str:
    return short(f"{namespace}/{name}" if namespace else name)
