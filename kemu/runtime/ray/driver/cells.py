"""A cell as the driver sees it: the Ray actor whose process it is, and the gRPC connection over which it is told.

``fleets`` decides what is to happen; this module starts one cell, finds it again after its process died, and ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgpack

from kemu.errors import InfrastructureError, SimulationError
from kemu.messages.v1 import cell_pb2, cell_pb2_grpc
from kemu.runtime import user_code
from kemu.runtime.env import ActorSpec
from kemu.runtime.host import control, segments, tokens
from kemu.runtime.host.calls import channels
from kemu.runtime.ray import frames, processes
from kemu.runtime.ray.driver import brokers, clusters
from kemu.runtime.ray.driver.logs import merges, wall_offsets

LOOPBACK = "127.0.0.1"
NODE = "node"
"""Interface of a cell: the address of its Ray node."""

_STATEMENT_TIMEOUT_S = 30.0
"""For statements that a living cell carries out at once."""


_LOOK_S = 0.001

_IS_OF_THE_DISK = re.compile("OSError|PermissionError|FileNotFoundError|NotADirectoryError")


class RemoteCell:
    def __init__(
        self,
        cluster: clusters.RayCluster,
        number: int,
        name: str,
        resources: Mapping[str, float],
        directory: Path,
        interface: str,
        issuer: tokens.Issuer,
        code: Sequence[str],
    ) -> None:
        """Has Ray start the process; ``connect`` waits for it. ``number``: which cell of the run this is, from 0.
        ``code``: what its process may load by ``module:Class``."""
        self.number = number
        self.name = name
        self.endpoint: control.Endpoint | None = None
        self.incarnation = 0
        """Incarnation of the process, from 1."""
        self.connected = False
        """There is a process to talk to, or was until a moment ago."""
        self.up = asyncio.Event()
        """Set while the process is connected and has been told everything it should know."""
        self.actors: dict[str, ActorSpec] = {}
        """Actors that should run in it, in the order of their start."""
        self.told: set[str] = set()
        """Names of actors that this process was told to start."""
        self.ready: set[str] = set()
        """Names of actors that this process reported ready."""
        self.faults: set[str] = set()
        """Partitions that this process knows of, or may know of."""
        self.paused = False
        self.clock = wall_offsets.Offset(0, 0)
        """Clock of its process."""
        self.ends_by = ""
        """What of the run ends its present process; empty: if it dies, it was done from outside."""
        self.ordering = asyncio.Lock()
        """Starts and stops reach it in the order in which they were asked for."""
        self.configuring = asyncio.Lock()
        """Tables of addresses arrive in the order in which they were made."""
        self.reported_at = 0.0
        """Real (monotonic) time of its last sign of life."""
        self.stopped_pid = 0
        """The process that was stopped from outside, as the driver has told; 0: none."""
        self._cluster = cluster
        self._connections = channels.Connections()
        """To the present process, and for a while to the one before: its pending calls must hear that it died."""
        self._issuer = issuer
        self._resources = resources
        """That it takes."""
        self._actor = cluster.place(
            resources, name, str(directory), interface, issuer.public_key, list(code), brokers.python_path()
        )

    # The process

    async def connect(self, timeout_s: float) -> bool:
        """Find the process, now or once Ray has restarted it. Returns whether it is another one than before.

        Raises InfrastructureError when there is none within the time, or will be none.
        """
        endpoint = await self._find_within(timeout_s)
        if endpoint == self.endpoint:
            return False
        self.endpoint = endpoint
        self.incarnation += 1
        # What the last process was told, or what was meant for it while it was away, this one has never heard.
        self.told.clear()
        self.ready.clear()
        self.faults.clear()
        self.ends_by = ""
        # Another process may listen on the same port: it gets a connection of its own all the same.
        self._connections.retain(set())
        self._connections.certificates = {endpoint.target: endpoint.certificate}
        channel = tokens.Signed(self._connections.to(endpoint.target), tokens.DRIVER, self._issuer.token(tokens.DRIVER))
        self._stub = cell_pb2_grpc.CellStub(channel)  # type: ignore[no-untyped-call]
        # The stub's own is of one answer, and tells nothing before that has come.
        self._start = channel.unary_stream(
            f"/{control.CELL_SERVICE}/Start",
            request_serializer=cell_pb2.StartRequest.SerializeToString,
            response_deserializer=cell_pb2.Empty.FromString,
        )
        self.connected = True
        return True

    async def is_replaced(self, timeout_s: float) -> bool:
        """Whether Ray has another process in the place of the present one. Raises as ``connect`` does."""
        return await self._find_within(timeout_s) != self.endpoint

    async def _find_within(self, timeout_s: float) -> control.Endpoint:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._find()
        except TimeoutError:
            takes = _text(self._resources)
            offers = "; ".join([_text(node["Resources"]) for node in await self._cluster.nodes()])
            raise InfrastructureError(
                f"cell {self.name} could not be started within {timeout_s:g} s: it takes {takes} and a place for"
                f" another process; the nodes of the cluster offer {offers}"
            ) from None

    async def _find(self) -> control.Endpoint:
        try:
            return control.Endpoint(*await self._cluster.find(self._actor))
        except frames.RayFailed as error:
            raise InfrastructureError(f"cell {self.name} cannot run: {_reason(str(error))}") from error
        except frames.ClusterLost as error:
            raise InfrastructureError(f"the Ray cluster is lost: {error}") from error

    async def disconnect(self) -> None:
        self.connected = False
        await self._connections.close()

    @property
    def source(self) -> merges.Source:
        """Source of the events of the present process."""
        return (self.number, self.incarnation)

    @property
    def target(self) -> str:
        assert self.endpoint is not None
        return self.endpoint.target

    @property
    def pid(self) -> int:
        assert self.endpoint is not None
        return self.endpoint.pid

    @property
    def stands_still(self) -> bool:
        """Whether its process was stopped from outside."""
        return self.connected and self.stopped_pid == self.pid

    @property
    def is_local(self) -> bool:
        """Whether it runs on the driver's machine."""
        return self.endpoint is not None and self.endpoint.machine == control.machine()

    @property
    def process(self) -> str:
        """Its name in the run log."""
        return f"{control.CELL}{self.name}"

    def forget(self, names: Iterable[str]) -> None:
        """They do not run there any more."""
        self.told.difference_update(names)
        self.ready.difference_update(names)

    async def pause(self) -> None:
        """Returns when it stands still, or does not have to any more."""
        assert self.is_local
        pid = self.pid
        self.paused = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            while self.paused and not processes.is_stopped(pid) and not self._cluster.has_ended(pid):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)

    def resume(self) -> bool:
        """Returns whether it was paused; otherwise nothing happens."""
        was_paused, self.paused = self.paused, False
        if was_paused:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGCONT)
        return was_paused

    def strike(self) -> None:
        """End the process by SIGKILL; Ray starts another one."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process for good. May be repeated."""
        self._cluster.kill(self._actor)

    # What it is told. All raise grpc.aio.AioRpcError when the process dies.

    async def configure(self, request: cell_pb2.ConfigureRequest) -> None:
        await self._stub.Configure(request, timeout=_STATEMENT_TIMEOUT_S)

    async def start(self, specs: Sequence[ActorSpec]) -> Coroutine[Any, Any, None]:
        """Returns when they have begun. The result waits until all are ready; it raises ActorFailed when one failed."""
        call = self._start(cell_pb2.StartRequest(actors=[self._message(spec) for spec in specs]))
        await call.initial_metadata()
        return self._ready(call)

    async def _ready(self, call: Any) -> None:
        try:
            await call.read()
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.ABORTED:
                raise user_code.from_text(error.details()) from None
            if error.code() is grpc.StatusCode.FAILED_PRECONDITION:
                raise SimulationError(error.details()) from None
            raise

    def _message(self, spec: ActorSpec) -> cell_pb2.ActorSpec:
        return cell_pb2.ActorSpec(
            name=spec.name,
            factory=spec.factory,
            config=msgpack.packb(spec.config),
            token=self._issuer.token(spec.name),
        )

    async def stop(self, names: Sequence[str], *, crash: bool = False) -> None:
        await self._stub.Stop(cell_pb2.StopRequest(actors=names, crash=crash))

    async def inject(self, fault: cell_pb2.Fault) -> None:
        self.faults.add(fault.id)
        await self._stub.Inject(fault, timeout=_STATEMENT_TIMEOUT_S)

    async def heal(self, fault: str) -> int:
        """Returns how often the fault has struck there."""
        response = await self._stub.Heal(cell_pb2.HealRequest(id=fault), timeout=_STATEMENT_TIMEOUT_S)
        self.faults.discard(fault)
        return int(response.hits)

    async def statistics(self) -> cell_pb2.StatisticsResponse:
        response: cell_pb2.StatisticsResponse = await self._stub.Statistics(
            cell_pb2.Empty(), timeout=_STATEMENT_TIMEOUT_S
        )
        return response

    async def measure_clock(self) -> None:
        """How far its wall clock is ahead of this one."""

        async def ask() -> int:
            return int((await self.statistics()).wall_ns)

        self.clock = await wall_offsets.measure(ask)

    def log(self, offset: int, *, follow: bool) -> Any:
        """A stream of LogSegment, to be read with ``read()``."""
        return self._stub.Log(cell_pb2.LogRequest(offset=offset, follow=follow))

    async def recover_log(self, offset: int) -> tuple[list[bytes], str]:
        """The events from the ``offset``-th on that a dead process left in its file, and what is missing, or "".

        The file of another machine is fetched through Ray.
        """
        assert self.endpoint is not None
        path = Path(self.endpoint.segment)
        why = ""
        if not self.is_local:
            try:
                await asyncio.to_thread(self._cluster.fetch, self.endpoint.address, str(path), path)
            except InfrastructureError as error:
                why = f": {error}"
        payloads: list[bytes] = []
        try:
            for payload in segments.read_segment(path, offset):
                payloads.append(payload)  # noqa: PERF402 - those before an error count
        except FileNotFoundError:
            return payloads, f"its log segment {path.name} is not within reach of the driver{why}"
        except (OSError, segments.DamagedSegment) as error:
            return payloads, f"its log segment {path.name} cannot be read to the end: {error}"
        return payloads, ""


def _reason(told: str) -> str:
    """The reason in what Ray tells of a process that cannot start: an error of the disk is one line and what to do; of
    any other the traceback says where it came from."""
    last = next((line for line in reversed(told.splitlines()) if line.strip()), "")
    kind, _, text = last.partition(": ")
    if not _IS_OF_THE_DISK.fullmatch(kind):
        return told
    return f"{text.partition('] ')[2] or text}: free some space, or choose another folder with --out"


def _text(resources: Mapping[str, float]) -> str:
    """Resources that a plan can ask for; Ray adds some of its own to each node."""
    ours = {name: amount for name, amount in resources.items() if ":" not in name and not name.endswith("memory")}
    return ", ".join(f"{name}: {amount:g}" for name, amount in sorted(ours.items())) or "nothing special"
