"""One watch of a collection at a real API server, for many clients that each want a small part of it.

A kubelet watches the pods of its node, and its Node. A thousand kubelets in one process would keep two thousand watches
open; so the bridge keeps one of each collection, and gives every client its part of the events. Lists go to the server:
what the bridge holds may be older than what a client has seen. A client that asks for events from a revision before
those kept is told that it is gone, and lists again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from google.protobuf.message import Message

from kemu.emulated.bridge import answers, connections, tenants, watches
from kemu.emulated.client import streams
from kemu.emulated.objects import resources
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import Env

KEPT = 50_000
"""Events of a collection that are kept for clients that list and then watch."""


class _Part(NamedTuple):
    """How the collection is divided: by the value of one field."""

    field: str
    """The field selector of a client names it, ``spec.nodeName=n1``."""
    selector: str
    """The field selector of the one watch; "": all objects."""
    value_of: Callable[[Message], str]


def _by_node(pod: Message) -> str:
    return pod.spec.nodeName  # type: ignore[attr-defined, no-any-return]


def _by_name(obj: Message) -> str:
    return obj.metadata.name  # type: ignore[attr-defined, no-any-return]


PARTS: Mapping[str, _Part] = {
    "pods": _Part("spec.nodeName", "spec.nodeName!=", _by_node),
    "nodes": _Part("metadata.name", "", _by_name),
}
"""The collections that can be shared."""


class _Event(NamedTuple):
    revision: int
    value: str
    kind: api_pb2.WatchEvent.Type
    raw: bytes


class SharedWatch:
    """One collection. It begins with the first client."""

    def __init__(
        self,
        env: Env,
        connection: connections.Connection,
        plural: str,
        on_trouble: Callable[[str], object],
        tenant: tenants.Tenant | None = None,
    ) -> None:
        self._env = env
        self._tenant = tenant
        self._connection = connection
        self._resource = resources.BY_PLURAL[plural]
        self._part = PARTS[plural]
        self._on_trouble = on_trouble
        self._objects: dict[str, dict[str, bytes]] = {}
        """By value, then by namespace and name."""
        self._revision = 0
        self._kept: deque[_Event] = deque(maxlen=KEPT)
        self._first = 0
        """Events after this revision are all there, but for those that ``_kept`` has dropped."""
        self._clients: dict[str, dict[Callable[[api_pb2.WatchEvent], object], int]] = {}
        """By value: where events go, and as which watch."""
        self._running: asyncio.Task[None] | None = None
        self._synced = asyncio.Event()

    def serves(self, where: api_pb2.Resource, field_selector: str, label_selector: str) -> bool:
        """Whether a client asks for one part of this collection."""
        name, _, value = field_selector.partition("=")
        simple = name == self._part.field and value and not set(value) & set("=,!")
        return bool(simple and not label_selector and not where.namespace)

    async def watch(self, create: api_pb2.WatchCreate, hand: Callable[[api_pb2.WatchEvent], object]) -> None:
        """Hands events on until it is cancelled, or the client's revision is gone."""
        await self._begin()
        value, since = _value(create.field_selector), int(create.resource_version or 0)
        if watches.begins_with_state(create) and not since:
            since = await self._tell(create, hand)

        def give(event: _Event) -> None:
            hand(
                api_pb2.WatchEvent(
                    watch_id=create.watch_id, type=event.kind, resource_version=event.revision, object=event.raw
                )
            )

        oldest = self._kept[0].revision - 1 if len(self._kept) == KEPT else self._first
        if since < oldest:
            gone = meta_v1_pb2.Status(status="Failure", reason="Expired", code=watches.GONE, message="too old")
            hand(
                api_pb2.WatchEvent(
                    watch_id=create.watch_id, type=api_pb2.WatchEvent.ERROR, error=gone.SerializeToString()
                )
            )
            return
        if since < self._revision:
            for event in self._kept:
                if event.value == value and event.revision > since:
                    give(event)
        clients = self._clients.setdefault(value, {})

        def pass_on(event: api_pb2.WatchEvent) -> None:
            # A client that has written an object itself may know of a later revision than this watch.
            if event.resource_version > since:
                hand(event)

        clients[pass_on] = create.watch_id
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            del clients[pass_on]

    async def _tell(self, create: api_pb2.WatchCreate, hand: Callable[[api_pb2.WatchEvent], object]) -> int:
        """The state of the client's part, from the server: what is here may be older than what the client has seen.
        Returns its revision."""
        backoff = streams.Backoff(self._env)
        while True:
            try:
                return await watches.tell_state(self._connection, create, hand, self._tenant)
            except (connections.Unreachable, answers.Refused) as error:
                self._on_trouble(str(error))
                await self._env.clock.pause(backoff.next_s())

    # --- the one watch ------------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        if self._running is None:
            self._running = self._env.spawn(self._run(), f"shared watch of {self._resource.plural}")
        await self._synced.wait()

    async def _run(self) -> None:
        backoff = streams.Backoff(self._env)
        while True:
            try:
                await self._relist()
            except (connections.Unreachable, answers.Refused) as error:
                self._on_trouble(str(error))
                await self._env.clock.pause(backoff.next_s())
                continue
            backoff.reset()
            self._synced.set()
            where = api_pb2.Resource(resource=self._resource.plural)
            create = api_pb2.WatchCreate(
                resource=where,
                field_selector=self._part.selector,
                resource_version=str(self._revision),
                allow_bookmarks=True,
            )
            # Ends when the revision is gone.
            await watches.Watch(self._env, self._connection, create, self._came, self._on_trouble, self._tenant).run()

    async def _relist(self) -> None:
        """What has changed while nothing was watched is told as events of the list's revision."""
        where = api_pb2.Resource(resource=self._resource.plural)
        found: dict[tuple[str, str], bytes] = {}
        revision = 0
        async for page in watches.pages(
            self._connection, where, api_pb2.WatchCreate(field_selector=self._part.selector)
        ):
            for item in page.items:
                raw = item if self._tenant is None else self._tenant.inward(self._resource, item)
                if raw is None:
                    continue
                obj = self._resource.message.FromString(raw)
                found[self._part.value_of(obj), _key(obj)] = raw
            revision = int(page.resource_version)
        before = {(value, key): raw for value, objects in self._objects.items() for key, raw in objects.items()}
        is_first = not self._first
        self._first = self._first or revision
        for (value, key), raw in before.items():
            if (value, key) not in found:
                self._keep(_Event(revision, value, api_pb2.WatchEvent.DELETED, raw), key)
        for (value, key), raw in found.items():
            if is_first:
                self._objects.setdefault(value, {})[key] = raw
            elif before.get((value, key)) != raw:
                kind = api_pb2.WatchEvent.MODIFIED if (value, key) in before else api_pb2.WatchEvent.ADDED
                self._keep(_Event(revision, value, kind, raw), key)
        self._revision = revision

    def _came(self, event: api_pb2.WatchEvent) -> None:
        if event.type == api_pb2.WatchEvent.ERROR:
            return
        self._revision = event.resource_version
        if event.type != api_pb2.WatchEvent.BOOKMARK:
            obj = self._resource.message.FromString(event.object)
            self._keep(_Event(event.resource_version, self._part.value_of(obj), event.type, event.object), _key(obj))

    def _keep(self, event: _Event, key: str) -> None:
        self._kept.append(event)
        objects = self._objects.setdefault(event.value, {})
        if event.kind == api_pb2.WatchEvent.DELETED:
            objects.pop(key, None)
            if not objects:
                del self._objects[event.value]
        else:
            objects[key] = event.raw
        for hand, watch_id in tuple(self._clients.get(event.value, {}).items()):
            hand(
                api_pb2.WatchEvent(
                    watch_id=watch_id, type=event.kind, resource_version=event.revision, object=event.raw
                )
            )


def _value(field_selector: str) -> str:
    return field_selector.partition("=")[2]


def _key(obj: Message) -> str:
    metadata = obj.metadata  # type: ignore[attr-defined]
    return f"{metadata.namespace}/{metadata.name}"
