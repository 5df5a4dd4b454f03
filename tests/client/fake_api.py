"""A tiny API server in memory, with faults at command, so that the client's rules do not hang on the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc

from kemu.emulated.objects import resources, selectors
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import Env

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = range(5)


class State:
    """What survives a crash of the server."""

    def __init__(self) -> None:
        self.revision = 1
        self.compacted = 0
        self.objects: dict[tuple[str, str, str], bytes] = {}
        self.log: list[tuple[int, int, str, bytes]] = []
        """(revision, type of event, plural, object)."""
        self.batches: list[int] = []
        """How many calls each SessionRequest had."""
        self.lists: list[api_pb2.ListRequest] = []
        self.creates: list[api_pb2.WatchCreate] = []
        self.cancels = 0
        self.sessions = 0
        self.watch_streams = 0
        self.silent = False
        """Takes requests and never answers."""
        self.watch_errors: list[str] = []
        """Reasons with which the next watches are refused."""
        self.page = 10_000
        self.servers: list[FakeApi] = []

    def put(self, obj: Any, event: int = MODIFIED) -> Any:
        self.revision += 1
        obj.metadata.resourceVersion = str(self.revision)
        key = (resources.of(obj).plural, obj.metadata.namespace, obj.metadata.name)
        self.objects[key] = obj.SerializeToString(deterministic=True)
        self._happened(event, key[0], self.objects[key])
        return obj

    def remove(self, plural: str, name: str, namespace: str = "") -> Any:
        self.revision += 1
        obj = resources.BY_PLURAL[plural].message.FromString(self.objects.pop((plural, namespace, name)))
        obj.metadata.resourceVersion = str(self.revision)
        self._happened(DELETED, plural, obj.SerializeToString(deterministic=True))
        return obj

    def _happened(self, event: int, plural: str, data: bytes) -> None:
        self.log.append((self.revision, event, plural, data))
        for server in self.servers[-1:]:
            server.changed.set()


STATE = State()


def reset() -> State:
    global STATE
    STATE = State()
    return STATE


def pod(name: str, *, uid: str = "", labels: Mapping[str, str] | None = None, node: str = "") -> core_v1_pb2.Pod:
    found = core_v1_pb2.Pod()
    found.metadata.name = name
    found.metadata.namespace = "default"
    found.metadata.uid = uid or f"uid-{name}"
    for key, value in sorted((labels or {}).items()):
        found.metadata.labels[key] = value
    if node:
        found.spec.nodeName = node
    return found


def status(reason: str, message: str = "no") -> bytes:
    found = meta_v1_pb2.Status(status="Failure", reason=reason, message=message)
    found.details.kind = "pods"
    found.details.name = "p"
    found.details.causes.add(field="spec.x", reason="FieldValueInvalid", message="bad")
    return found.SerializeToString(deterministic=True)


class FakeApi(api_pb2_grpc.ApiServicer):
    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.state = STATE
        self.changed = asyncio.Event()
        self.state.servers.append(self)
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        self.env.ready()
        await asyncio.get_running_loop().create_future()

    async def Session(self, request_iterator: Any, context: Any) -> None:
        self.state.sessions += 1
        while (request := await context.read()) is not grpc.aio.EOF:
            self.state.batches.append(len(request.calls))
            if self.state.silent:
                continue
            response = api_pb2.SessionResponse()
            for call in request.calls:
                reply = response.replies.add()
                reply.id = call.id
                self._answer(call, reply)
            await context.write(response)

    def _answer(self, call: api_pb2.Call, reply: api_pb2.Reply) -> None:
        verb = call.WhichOneof("request")
        request = getattr(call, verb)
        state = self.state
        if verb == "list":
            state.lists.append(request)
            row = resources.BY_PLURAL[request.resource.resource]
            matches = _matcher(request, row.plural)
            found = [data for (plural, _, _), data in state.objects.items() if plural == row.plural and matches(data)]
            begin = int(getattr(request, "continue") or 0)
            limit = request.limit or len(found) or 1
            reply.list.items.extend(found[begin : begin + limit])
            reply.list.resource_version = str(state.revision)
            if begin + limit < len(found):
                setattr(reply.list, "continue", str(begin + limit))
            return
        if verb in ("create", "update", "update_status"):
            message = resources.BY_PLURAL[request.resource.resource].message
            obj = message.FromString(request.object)
            key = (request.resource.resource, obj.metadata.namespace, obj.metadata.name)
            known = state.objects.get(key)
            if verb == "create" and known is not None:
                reply.error = status("AlreadyExists", "is there")
            elif verb != "create" and known is None:
                reply.error = status("NotFound", "is not there")
            elif (
                verb != "create"
                and obj.metadata.resourceVersion
                and message.FromString(known).metadata.resourceVersion != obj.metadata.resourceVersion
            ):
                reply.error = status("Conflict", "has changed")
            else:
                state.put(obj, ADDED if verb == "create" else MODIFIED)
                reply.object.object = obj.SerializeToString(deterministic=True)
            return
        if verb in ("get", "delete", "patch"):
            key = (request.resource.resource, request.resource.namespace, request.name)
        else:
            key = ("pods", request.namespace, request.name)
        if key not in state.objects:
            reply.error = status("NotFound", "is not there")
        elif verb == "delete":
            obj = state.remove(key[0], key[2], key[1])
            reply.object.object = obj.SerializeToString(deterministic=True)
        elif verb == "bind":
            obj = core_v1_pb2.Pod.FromString(state.objects[key])
            obj.spec.nodeName = request.node
            reply.object.object = state.put(obj).SerializeToString(deterministic=True)
        else:
            reply.object.object = state.objects[key]

    async def Watch(self, request_iterator: Any, context: Any) -> None:
        self.state.watch_streams += 1
        watches: dict[int, tuple[Any, str]] = {}
        sent = [self.state.revision]
        self.env.spawn(self._send(context, watches, sent), "send events")
        while (request := await context.read()) is not grpc.aio.EOF:
            if request.WhichOneof("request") == "cancel":
                self.state.cancels += 1
                watches.pop(request.cancel.watch_id, None)
                continue
            create = request.create
            self.state.creates.append(create)
            since = int(create.resource_version)
            reason = self.state.watch_errors.pop(0) if self.state.watch_errors else ""
            if reason or since < self.state.compacted:
                event = api_pb2.WatchEvent(watch_id=create.watch_id, type=ERROR, error=status(reason or "Expired"))
                await context.write(api_pb2.WatchResponse(events=[event]))
                continue
            plural = create.resource.resource
            matches = _matcher(create, plural)
            response = api_pb2.WatchResponse()
            for revision, kind, of, data in self.state.log:
                if since < revision <= sent[0] and of == plural and matches(data):
                    response.events.add(watch_id=create.watch_id, type=kind, resource_version=revision, object=data)
            watches[create.watch_id] = (matches, plural)
            if response.events:
                await context.write(response)

    async def _send(self, context: Any, watches: dict[int, tuple[Any, str]], sent: list[int]) -> None:
        while True:
            await self.changed.wait()
            self.changed.clear()
            response = api_pb2.WatchResponse()
            for revision, kind, of, data in self.state.log:
                if revision > sent[0]:
                    for watch_id, (matches, plural) in watches.items():
                        if of == plural and matches(data):
                            response.events.add(watch_id=watch_id, type=kind, resource_version=revision, object=data)
            sent[0] = self.state.revision
            if response.events:
                await context.write(response)


def _matcher(request: Any, plural: str) -> Any:
    labels = selectors.parse_labels(request.label_selector)
    fields = selectors.parse_fields(request.field_selector, plural)
    namespace = request.resource.namespace
    message = resources.BY_PLURAL[plural].message

    def matches(data: bytes) -> bool:
        obj = message.FromString(data)
        in_namespace = not namespace or obj.metadata.namespace == namespace
        return in_namespace and labels.matches(obj.metadata.labels) and fields.matches(obj)

    return matches
