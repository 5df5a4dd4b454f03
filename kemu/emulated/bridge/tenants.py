"""A run as a guest of a cluster that stands: which of its objects are the run's, and what they are called there.

The namespaces of a run are its own: ``default`` is ``kemu-RUN-default`` in the cluster. So are its schedulers, by their
names, since the cluster has a ``default-scheduler`` already. Clients of the bridge see and write the names of the run;
objects of anybody else they do not see, and cannot write. Objects without a namespace keep their names, and carry
:data:`LABEL`; only those that the run has created can be changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from typing import Any, cast

from google.protobuf.message import Message

from kemu import errors
from kemu.emulated.bridge import connections
from kemu.emulated.bridge.requests import Request
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.wire import wires
from kemu.messages.v1 import api_pb2

LABEL = "kemu.dev/run"
"""On every namespace of a run, and on every object that it creates outside of them; its value is the run."""
LEASES = "kube-node-lease"
"""The cluster's own: its node lifecycle controller looks for heartbeats there. A run writes those of its nodes."""
GIVEN = ("default", "kube-public", "kube-system")
"""Namespaces that a run finds, as in every cluster."""
DEFAULT_SCHEDULER = "default-scheduler"
_HIDDEN = ("namespaces", "nodes")
"""Kinds without a namespace of which clients see the run's own objects only."""
_WRITES = ("update", "update_status", "patch", "delete")

_ACCOUNT_S = 10.0
_LOOK_S = 0.2
_FOUND = 200

Answer = api_pb2.ObjectResponse | api_pb2.ListResponse | api_pb2.CommitResponse


def new_run() -> str:
    """Short, since names of namespaces have at most 63 characters."""
    return secrets.token_hex(4)


class Tenant:
    """One run. ``created``: objects without a namespace, by plural and name; the same for all connections of a run."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.prefix = f"kemu-{run}-"
        self.created: set[tuple[str, str]] = set()

    # --- names -------------------------------------------------------------------------------------------------------

    def theirs(self, name: str) -> str:
        """A namespace or scheduler of the run, as the cluster calls it."""
        return name if name in ("", LEASES) else self.prefix + name

    def ours(self, name: str) -> str:
        return name.removeprefix(self.prefix)

    # --- objects -----------------------------------------------------------------------------------------------------

    def outward(self, resource: Resource, data: bytes) -> bytes:
        """An object of the run, as the cluster gets it."""
        message: Any = resource.message.FromString(data)
        _rename(message, self.theirs)
        if not resource.namespaced or message.metadata.namespace == LEASES:
            message.metadata.labels[LABEL] = self.run
        if resource.plural == "namespaces":
            message.metadata.name = self.theirs(message.metadata.name)
        return message.SerializeToString(deterministic=True)  # type: ignore[no-any-return]

    def inward(self, resource: Resource, wire: bytes) -> bytes | None:
        """An object of the cluster, as kemu's clients get it; None: it is none of theirs."""
        message: Any = resource.message.FromString(wire)
        metadata = message.metadata
        if resource.namespaced:
            if not metadata.namespace.startswith(self.prefix) and metadata.namespace != LEASES:
                return None
        elif resource.plural in _HIDDEN and metadata.labels.get(LABEL) != self.run:
            return None
        revision = metadata.resourceVersion
        metadata.resourceVersion = ""
        _rename(message, self.ours)
        if LABEL in metadata.labels:
            del metadata.labels[LABEL]
        if resource.plural == "namespaces":
            metadata.name = self.ours(metadata.name)
        value = message.SerializeToString(deterministic=True)
        return value + wires.version_suffix(int(revision)) if revision else value  # type: ignore[no-any-return]

    def stored(self, resource: Resource, raw: bytes) -> tuple[Message, bytes] | None:
        """An object that the cluster shows, and its bytes as a store of the run's would have them."""
        wire = self.inward(resource, wires.of_real(raw)[0])
        if wire is None:
            return None
        message: Any = resource.message.FromString(wire)
        version = message.metadata.resourceVersion
        return message, wire.removesuffix(wires.version_suffix(int(version))) if version else wire

    # --- requests ----------------------------------------------------------------------------------------------------

    def request(self, verb: str, request: Message) -> Message:
        """A request of one of the run's clients, as the cluster gets it. Raises Forbidden for what would reach further
        than the run."""
        made: Any = type(request)()
        made.CopyFrom(request)
        if verb in ("bind", "evict"):
            made.namespace = self.theirs(made.namespace)
            return cast(Message, made)
        if verb == "delete_collection":
            if not made.list.resource.namespace:
                raise _forbidden(f"delete all {made.list.resource.resource}")
            made.list.resource.namespace = self.theirs(made.list.resource.namespace)
            return cast(Message, made)
        where = made.resource
        resource = resources.BY_PLURAL.get(where.resource)
        if resource is None:
            return cast(Message, made)
        if verb in ("create", "update", "update_status"):
            message: Any = resource.message.FromString(made.object)
            name = message.metadata.name
            if resource.plural == "events" and not message.involvedObject.namespace:
                raise _forbidden("write events about objects without a namespace, which stand in default")
            made.object = self.outward(resource, made.object)
        else:
            name = "" if verb == "list" else made.name
        if verb == "patch" and made.type == api_pb2.PatchRequest.MESSAGE:
            patch: Any = resource.message.FromString(made.patch)
            _rename(patch, self.theirs, empty=False)
            made.patch = patch.SerializeToString(deterministic=True)
        if verb in _WRITES or (verb == "create" and where.namespace == LEASES):
            self._guard(resource, where.namespace, name)
        if resource.plural == "namespaces" and verb in ("get", "patch", "delete"):
            made.name = self.theirs(made.name)
        where.namespace = self.theirs(where.namespace)
        return cast(Message, made)

    def _guard(self, resource: Resource, namespace: str, name: str) -> None:
        kind, known = (resource.plural, name) if not resource.namespaced else ("nodes", name), self.created
        if (not resource.namespaced or namespace == LEASES) and kind not in known:
            raise _forbidden(f"change {resource.plural} {name}, which this run has not created")

    def answer(self, verb: str, request: Message, answer: Answer) -> Answer:
        """What came of a request, as its client gets it. Raises NotFound for an object that is not the run's."""
        if isinstance(answer, api_pb2.CommitResponse):
            return answer
        asked: Any = request
        where = asked.list.resource if verb == "delete_collection" else getattr(asked, "resource", None)
        plural = "pods" if where is None else where.resource
        resource = resources.BY_PLURAL[plural]
        if isinstance(answer, api_pb2.ListResponse):
            found = [wire for item in answer.items if (wire := self.inward(resource, item)) is not None]
            del answer.items[:]
            answer.items.extend(found)
            return answer
        message: Any = resource.message.FromString(answer.object)
        if verb == "create" and not resource.namespaced:
            self.created.add((plural, self.ours(message.metadata.name)))
        wire = self.inward(resource, answer.object) if not answer.gone else self._gone(resource, message)
        if wire is None:
            raise errors.NotFound(
                f'{plural} "{message.metadata.name}" not found', kind=plural, name=message.metadata.name
            )
        answer.object = wire
        return answer

    def _gone(self, resource: Resource, obj: Message) -> bytes:
        message: Any = obj
        _rename(message, self.ours, empty=False)
        if resource.plural == "namespaces":
            message.metadata.name = self.ours(message.metadata.name)
        return message.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


async def account_made(connection: connections.Connection, namespace: str) -> None:
    """Wait for the service account that pods of a new namespace need, where there is a controller that makes it."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    until = time.monotonic() + _ACCOUNT_S
    while time.monotonic() < until:
        with contextlib.suppress(connections.Unreachable):
            if (await connection.send(Request("GET", path, resources.BY_PLURAL["pods"]))).code == _FOUND:
                return
        await asyncio.sleep(_LOOK_S)


def _forbidden(what: str) -> errors.Forbidden:
    return errors.Forbidden(f"a run in a cluster that stands may not {what}")


def _rename(obj: Message, name_of: Callable[[str], str], *, empty: bool = True) -> None:
    """Namespaces and schedulers, wherever a message names them. ``empty``: a pod without a scheduler has the default
    one."""
    message: Any = obj
    if empty and message.DESCRIPTOR.name == "PodSpec" and not message.schedulerName:
        message.schedulerName = DEFAULT_SCHEDULER
    for field, value in message.ListFields():
        if isinstance(value, Message):
            _rename(value, name_of, empty=empty)
        elif field.name in ("namespace", "schedulerName"):
            setattr(message, field.name, name_of(value))
        elif field.name == "namespaces":
            value[:] = [name_of(one) for one in value]
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for one in value:
                _rename(one, name_of, empty=empty)
