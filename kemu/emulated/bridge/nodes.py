"""kemu's kubelets as nodes of a real cluster: what ``kemu nodes`` runs.

They create their Nodes, and take over only those that carry :data:`LABEL`: a Node of the cluster's own is not touched.
At the end the Nodes go, and so do the pods on them, as the cluster's pod garbage collector finds them without a node.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
import urllib.parse
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from kemu.emulated.bridge import answers, connections, hosting, kubelet_servers, requests, rights
from kemu.errors import KemuError
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.host import certificates
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
_LOOPBACK = "127.0.0.1"

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How they run."""

    writer: frames.Writer | None = None
    """Writes a run log; None: there is none."""
    quiet: bool = False
    """Rejections and evictions are not printed."""
    keep: bool = False
    """The Nodes stay at the end."""
    seed: int | None = None
    """None: another one each time."""
    address: str = ""
    """Where the API server may ask for logs; "": on loopback if the API server is there, and nowhere otherwise."""


Kubelets = Callable[[str, int], Sequence[ActorSpec]]
"""Makes the kubelets, named by their nodes, from the address and port of the server of their logs; "": there is
none."""


def run(cluster: Mapping[str, Any], kubelets: Kubelets, settings: Settings) -> None:
    """Until SIGINT or SIGTERM. ``cluster``: the config of :mod:`kemu.emulated.bridge.apiservers`.

    Raises KemuError where a Node is not kemu's, where rights are missing, and for a cluster that does not answer.
    """
    asyncio.run(_run(cluster, kubelets, settings))


def remove(cluster: Mapping[str, Any]) -> int:
    """The Nodes of all of kemu's kubelets, as a process that was killed leaves them. Returns how many there were."""
    return asyncio.run(_remove_all(cluster))


async def _run(cluster: Mapping[str, Any], kubelets: Kubelets, settings: Settings) -> None:
    told = Told(settings)
    async with contextlib.AsyncExitStack() as stack:
        connection = await stack.enter_async_context(_opened(cluster))
        host = urllib.parse.urlsplit(connection.server).hostname or ""
        address = settings.address or (_LOOPBACK if certificates.is_loopback(host) else "")
        server = kubelet_servers.KubeletServer(connection, address)
        if address:
            await server.start()
            stack.push_async_callback(server.stop)
        specs = kubelets(address, server.port)
        names = [spec.name.partition("/")[2] for spec in specs]
        await rights.require(connection, RIGHTS)
        await _check_free(connection, names)
        if not settings.keep:
            stack.push_async_callback(_remove, connection, names)
        process = hosting.Process({**cluster, "shares": SHARES}, told.log, settings.seed)
        stack.push_async_callback(process.stop)
        await process.start(specs, TOGETHER)
        told.say(
            f"{len(names)} nodes are registered; Ctrl-C {'ends their kubelets' if settings.keep else 'removes them'}"
        )
        await process.run(asks=False)
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

    def __init__(self, settings: Settings) -> None:
        self._quiet = settings.quiet
        self._writer = settings.writer
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
