"""kemu's kubelets as nodes of a real cluster: what ``kemu nodes`` runs.

They create their Nodes, and take over only those that carry :data:`LABEL`: a Node of the cluster's own is not touched.
At the end the Nodes go, and so do the pods on them, as the cluster's pod garbage collector finds them without a node.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from kemu.emulated.bridge import answers, connections, hosting, requests, rights
from kemu.errors import KemuError
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.runlog import frames
from kemu.runtime.runlog.events import AdmissionDecided, BridgeOpened, BridgeTrouble, PodEvicting

LABEL = "kemu.dev/kubelet"
"""On every Node of kemu's kubelets; its value is no matter."""
LEASES = "kube-node-lease"
SHARES = ("pods", "nodes")
TOGETHER = 50
"""Kubelets that register at a time."""
_AT_ONCE = 20
"""Nodes that are removed at a time."""
_PATIENCE_S = 30.0

RIGHTS = (
    *rights.rights("get list watch create patch delete", "nodes"),
    *rights.rights("patch", "nodes/status"),
    *rights.rights("list watch delete get", "pods"),
    *rights.rights("create", "pods"),  # mirrors of static pods
    *rights.rights("patch", "pods/status"),
    *rights.rights("create patch", "events"),
    *rights.rights("get create update delete", "leases", "coordination.k8s.io", LEASES),
)
"""What kubelets do."""


def run(
    cluster: Mapping[str, Any],
    kubelets: Sequence[ActorSpec],
    *,
    writer: frames.Writer | None = None,
    quiet: bool = False,
    keep: bool = False,
    seed: int | None = None,
) -> None:
    """Until SIGINT or SIGTERM. ``cluster``: the config of :mod:`kemu.emulated.bridge.apiservers`. ``kubelets``: their
    names are those of their nodes. ``keep``: the Nodes stay at the end.

    Raises KemuError where a Node is not kemu's, where rights are missing, and for a cluster that does not answer.
    """
    asyncio.run(_run(cluster, kubelets, Told(quiet=quiet, writer=writer), keep=keep, seed=seed))


def remove(cluster: Mapping[str, Any]) -> int:
    """The Nodes of all of kemu's kubelets, as a process that was killed leaves them. Returns how many there were."""
    return asyncio.run(_remove_all(cluster))


async def _run(
    cluster: Mapping[str, Any], kubelets: Sequence[ActorSpec], told: Told, *, keep: bool, seed: int | None
) -> None:
    names = [spec.name.partition("/")[2] for spec in kubelets]
    async with _opened(cluster) as connection:
        await rights.require(connection, RIGHTS)
        await _check_free(connection, names)
    process = hosting.Process({**cluster, "shares": SHARES}, told.log, seed)
    try:
        await process.start(kubelets, TOGETHER)
        told.say(f"{len(names)} nodes are registered; Ctrl-C removes them" if not keep else f"{len(names)} nodes")
        await process.run(asks=False)
    finally:
        await process.stop()
        if not keep:
            async with _opened(cluster) as connection:
                await _remove(connection, names)
    told.end()


@contextlib.asynccontextmanager
async def _opened(cluster: Mapping[str, Any]) -> AsyncIterator[connections.Connection]:
    connection = connections.Connection(connections.Settings(**cluster))
    try:
        await connection.open()
        yield connection
    finally:
        await connection.close()


async def _check_free(connection: connections.Connection, names: Sequence[str]) -> None:
    """Raises KemuError for Nodes that are there and not kemu's."""
    foreign = [node.metadata.name for node in await _nodes(connection) if LABEL not in node.metadata.labels]
    taken = sorted(set(foreign) & set(names))
    if taken:
        shown = ", ".join(taken[:3]) + (f" and {len(taken) - 3} more" if len(taken) > 3 else "")
        raise KemuError(f"{connection.server} has nodes of its own with these names: {shown}; choose others")


async def _nodes(connection: connections.Connection, label_selector: str = "") -> list[core_v1_pb2.Node]:
    """Raises KemuError."""
    where = api_pb2.Resource(resource="nodes")
    request = requests.of("list", api_pb2.ListRequest(resource=where, label_selector=label_selector))
    try:
        answer = answers.of(request, await connection.send(request))
    except (connections.Unreachable, answers.Refused) as error:
        raise KemuError(f"{connection.server}: nodes cannot be listed: {error}") from None
    assert isinstance(answer, api_pb2.ListResponse)
    return [core_v1_pb2.Node.FromString(raw) for raw in answer.items]


async def _remove_all(cluster: Mapping[str, Any]) -> int:
    async with _opened(cluster) as connection:
        names = [node.metadata.name for node in await _nodes(connection, LABEL)]
        await _remove(connection, names)
        return len(names)


async def _remove(connection: connections.Connection, names: Sequence[str]) -> None:
    """Nodes and their leases; those that are gone already are no mistake. Raises KemuError that names what is left."""
    gate = asyncio.Semaphore(_AT_ONCE)
    left: list[str] = []

    async def delete(resource: api_pb2.Resource, name: str) -> None:
        request = requests.of("delete", api_pb2.DeleteRequest(resource=resource, name=name))
        async with gate:
            try:
                answers.of(request, await asyncio.wait_for(connection.send(request), _PATIENCE_S))
            except answers.Refused as refused:
                if refused.status.reason != "NotFound":
                    left.append(name)
            except (connections.Unreachable, TimeoutError):
                left.append(name)

    lease = api_pb2.Resource(resource="leases", namespace=LEASES)
    await asyncio.gather(*(delete(api_pb2.Resource(resource="nodes"), name) for name in names))
    await asyncio.gather(*(delete(lease, name) for name in names if name not in left))
    if left:
        raise KemuError(f"{connection.server}: {len(left)} nodes could not be removed, such as {left[0]}")


class Told:
    """Events of the process, for people and for the run log."""

    def __init__(self, *, quiet: bool, writer: frames.Writer | None) -> None:
        self._quiet = quiet
        self._writer = writer
        self._admitted = self._rejected = self._evicted = 0

    def log(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if self._writer is not None:
            self._writer.append(time_ns, actor, kind, data)
        if isinstance(data, AdmissionDecided):
            self._admitted += data.ok
            self._rejected += not data.ok
            if not data.ok:
                self._line(time_ns, f"{actor.partition('/')[2]} rejects {data.pod}: {data.reason}")
        elif isinstance(data, PodEvicting):
            self._evicted += 1
            self._line(time_ns, f"{actor.partition('/')[2]} evicts {data.pod}: {data.message}")
        elif isinstance(data, BridgeOpened):
            self.say(f"uses {data.server}")
        elif isinstance(data, BridgeTrouble):
            self.say(f"the cluster cannot be read: {data.message}")

    def say(self, text: str) -> None:
        print(f"kemu nodes: {text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        self.say(f"{self._admitted} pods admitted, {self._rejected} rejected, {self._evicted} evicted")

    def _line(self, time_ns: int, text: str) -> None:
        if not self._quiet:
            print(f"{time_ns / SECOND_NS:9.3f} s  {text}", flush=True)
