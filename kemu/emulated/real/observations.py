"""What happens in a cluster whose store nobody may watch, as ``store.txn``: watches of its collections.

Each watch is in order by itself; together they are put into the order of revisions, so what comes waits for a moment.
A revision at which nothing of the run has changed is a transaction without changes. Versions are counted from when an
object was first seen.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from kemu.emulated.bridge import answers, connections, requests
from kemu.emulated.bridge.tenants import LEASES, Tenant
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.wire import envelopes
from kemu.emulated.real.transactions import KnownPods
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.host import wall_clocks
from kemu.runtime.runlog.events import Transaction

WAIT_NS = SECOND_NS
"""For events of other collections with earlier revisions."""
UNSEEN = frozenset(("secrets",))
"""Collections that are none of a run's business."""
_NOT_READY = "node.kubernetes.io/not-ready"
_REGISTRY = resources.REGISTRY.decode()
_WATCH_S = 600
_RETRY_S = 0.5
_GONE = 410
_NOT_SERVED = ("NotFound", "MethodNotAllowed", "Forbidden")
_FLUSH_S = 0.1


class _Change(NamedTuple):
    revision: int
    heard_ns: int
    """Unix time."""
    row: list[Any]
    pod: Any
    """A pod that was changed; None: it is none."""


class Observer:
    """Follows the objects of one run. ``hear``: Unix time in ns, transaction."""

    def __init__(
        self, connection: connections.Connection, tenant: Tenant, hear: Callable[[int, Transaction], object]
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._hear = hear
        self._tasks: list[asyncio.Task[None]] = []
        self._changes: list[_Change] = []
        self._told_ns = 0
        self._told = 0
        """The last revision."""
        self._versions: dict[str, tuple[int, int]] = {}
        """By key: the revision at which it was created, and how often it was written since."""
        self._nodes: dict[str, bool] = {}
        """Those of the run: whether a controller has seen that they are ready."""
        self._node_came = asyncio.Event()
        self.pods = KnownPods()

    async def start(self) -> None:
        """Returns when all collections are watched. Raises ClusterError."""
        revisions = await asyncio.gather(*(self._revision(one) for one in resources.RESOURCES))
        for resource, revision in zip(resources.RESOURCES, revisions, strict=True):
            if revision:
                task = asyncio.create_task(self._follow(resource, revision), name=f"watch of {resource.plural}")
                self._tasks.append(task)
        self._tasks.append(asyncio.create_task(self._flush(), name="transactions"))

    async def stop(self) -> None:
        """When what has happened until now is heard."""
        if self._tasks:
            await asyncio.sleep(WAIT_NS / SECOND_NS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tell(self._changes)

    async def nodes_ready(self, count: int, timeout_s: float) -> bool:
        """Whether so many nodes of the run become ready before the time is over."""
        self._node_came.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while sum(self._nodes.values()) < count:
                    await self._node_came.wait()
                    self._node_came.clear()
        return sum(self._nodes.values()) >= count

    async def _revision(self, resource: Resource) -> str:
        """From where a collection is watched; "": the cluster does not serve it, or not to us."""
        if resource.plural in UNSEEN:
            return ""
        made = requests.of("list", api_pb2.ListRequest(resource=api_pb2.Resource(resource=resource.plural), limit=1))
        try:
            answer = answers.of(made, await self._connection.send(made))
        except answers.Refused as refused:
            if refused.status.reason in _NOT_SERVED:
                return ""
            raise connections.ClusterError(f"{self._connection.server}: {refused}") from None
        except connections.Unreachable as error:
            raise connections.ClusterError(f"{self._connection.server} does not answer: {error}") from None
        assert isinstance(answer, api_pb2.ListResponse)
        return answer.resource_version

    async def _follow(self, resource: Resource, revision: str) -> None:
        while True:
            create = api_pb2.WatchCreate(resource=api_pb2.Resource(resource=resource.plural), allow_bookmarks=True)
            request = requests.watch(create, revision, _WATCH_S)
            try:
                async for frame in self._connection.watch(request):
                    if isinstance(frame, connections.Answer):
                        answers.check(frame)
                        break
                    kind, envelope = envelopes.watch_event(frame)
                    if kind == "ERROR":
                        # What was compacted away is lost: it goes on with what there is.
                        revision = await self._revision(resource)
                        break
                    revision = str(envelopes.resource_version(envelope.raw))
                    if kind != "BOOKMARK":
                        self._changed(resource, kind == "DELETED", envelope.raw)
            except answers.Refused as refused:
                if refused.status.code == _GONE:
                    revision = await self._revision(resource)
                await asyncio.sleep(_RETRY_S)
            except connections.Unreachable:
                await asyncio.sleep(_RETRY_S)

    def _changed(self, resource: Resource, is_gone: bool, raw: bytes) -> None:
        found = self._tenant.stored(resource, raw)
        if found is None:
            return
        message: Any = found[0]
        metadata = message.metadata
        name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        if metadata.namespace == LEASES and metadata.name not in self._nodes:
            return
        key, revision = f"{_REGISTRY}{resource.plural}/{name}", int(metadata.resourceVersion)
        pod = message if resource.plural == "pods" else None
        if resource.plural == "nodes":
            self._nodes[name] = not is_gone and all(taint.key != _NOT_READY for taint in message.spec.taints)
            self._node_came.set()
        created, count = self._versions.pop(key, (revision, 0))
        row = [1, key, None, 0, 0]
        if not is_gone:
            self._versions[key] = created, count + 1
            row = [0, key, found[1], created, count + 1]
        self._changes.append(_Change(revision, wall_clocks.wall_ns(), row, pod))

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_S)
            until_ns = wall_clocks.wall_ns() - WAIT_NS
            due = [change for change in self._changes if change.heard_ns <= until_ns]
            if due:
                last = max(change.revision for change in due)
                due = [change for change in self._changes if change.revision <= last]
                self._changes = [change for change in self._changes if change.revision > last]
                self._tell(due)

    def _tell(self, changes: list[_Change]) -> None:
        for change in sorted(changes, key=lambda one: one.revision):
            self._told_ns = max(self._told_ns, change.heard_ns)
            for other in range((self._told or change.revision - 1) + 1, change.revision):
                self._hear(self._told_ns, Transaction(rev=other, changes=[]))
            if change.pod is not None:
                metadata, gone = change.pod.metadata, change.row[0] == 1
                name = f"{metadata.namespace}/{metadata.name}"
                self.pods.changed(name, change.revision, None if gone else change.pod, self._told_ns)
            self._hear(self._told_ns, Transaction(rev=change.revision, changes=[change.row]))
            self._told = change.revision
