"""A cell: one process that holds actors, serves them over gRPC, and obeys the driver.

``driver.cells`` starts a :class:`CellProcess` in each Ray actor. Ray places it and starts it again when it dies;
everything else is said over gRPC, through the Cell service, which this module serves beside the services of the actors.
Nothing in this module knows Ray.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import os
import resource
import signal
import socket
import threading
import time
import traceback
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgpack
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from kemu.errors import ActorFailed, SimulationError
from kemu.messages.v1 import cell_pb2, cell_pb2_grpc
from kemu.runtime import garbage, user_code
from kemu.runtime.env import ActorSpec
from kemu.runtime.host import certificates, hosts, loads, segments, ticks, tokens, wall_clocks
from kemu.runtime.host.calls import channels, decoding, gates, inbound

_LOG_INTERVAL_S = 0.02
"""How often new events are sent on."""

_LOG_SIGN_OF_LIFE_S = 0.1
"""How often a log stream says how far it has come when there are no events."""

_LOG_BATCH_BYTES = 1 << 20

_PENDING_S = 0.2
"""How often all actors of an idle cell are asked whether they wait for something. Of hundreds that takes a millisecond;
a run is called idle when nothing was heard of for longer than this."""

_HEALTH_INTERVAL_S = 0.25

CELL = "cell/"
"""Prefix of its name in the run log."""

CELL_SERVICE = cell_pb2.DESCRIPTOR.services_by_name["Cell"].full_name


@dataclass(frozen=True)
class Endpoint:
    """Where a cell can be reached, as its Ray actor tells the driver."""

    target: str
    """``host:port``."""
    pid: int
    machine: str
    """Equal for processes of one machine."""
    segment: str
    """Path of the file with its events."""
    certificate: bytes
    """What its server shows, in PEM; empty: it does not use TLS."""

    @property
    def address(self) -> str:
        """Where it listens, without the port."""
        return self.target.rpartition(":")[0]


_FLUSH_EVERY_S = 1.0


class Cell(cell_pb2_grpc.CellServicer):  # type: ignore[misc]
    """The control service."""

    def __init__(self, name: str, directory: Path, verifier: tokens.Verifier) -> None:
        self.name = name
        self.verifier = verifier
        self.certificate = b""
        """What its server shows, once it runs."""
        self._tokens: dict[str, str] = {}
        """Tokens of the actors that ever were started here."""
        self.segment = segments.Segment(directory / "logs" / f"{name}-{os.getpid()}-{time.time_ns()}.segment")
        self.host = hosts.Host(asyncio.get_running_loop(), self.segment.append, self._failed)
        self.host.on_strike = self._crash
        self.ticks = ticks.Ticks(f"{CELL}{name}", self.host.clock, self.segment.append)
        self.host.token = lambda name: self._tokens.get(name, "")
        self._sent = 0
        """Events of the log that were sent."""
        self._meter = loads.Meter(self.ticks, self.host.traffic, lambda: self.segment.events - self._sent)
        self._pending = 0
        self._pending_due_s = 0.0
        self._errors: dict[str, str] = {}

    def _failed(self, name: str, text: str) -> None:
        self._errors[name] = text

    def unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that was not retrieved, and of no known actor: put it into the run log at least."""
        error = context.get("exception")
        text = "".join(traceback.format_exception(error)) if error is not None else ""
        data = {"what": context["message"], "error": text}
        self.segment.append(self.host.clock.now_ns(), f"{CELL}{self.name}", "cell.unhandled", data)
        loop.default_exception_handler(context)

    async def Configure(self, request: cell_pb2.ConfigureRequest, context: grpc.aio.ServicerContext) -> cell_pb2.Empty:
        self.host.configure(
            seed=request.seed,
            directory=Path(request.directory),
            addresses={address.name: (address.target, address.incarnation) for address in request.addresses},
            certificates=dict(request.certificates),
            keepalive_time_s=request.keepalive_time_s,
            keepalive_timeout_s=request.keepalive_timeout_s,
        )
        clock = request.clock
        if clock.epoch_unix_ns and not self.host.clock.begun:
            self._meter.make_due()
        self.host.clock.configure(epoch_unix_ns=clock.epoch_unix_ns, speed=clock.speed, epoch_unix_s=clock.epoch_unix_s)
        return cell_pb2.Empty()

    async def Start(self, request: cell_pb2.StartRequest, context: grpc.aio.ServicerContext) -> cell_pb2.Empty:
        for actor in request.actors:
            if not user_code.is_admitted(actor.factory):
                await context.abort(
                    grpc.StatusCode.PERMISSION_DENIED, f"{actor.name}: no actor of this run is made by {actor.factory}"
                )
        self._tokens.update({actor.name: actor.token for actor in request.actors})
        try:
            ready = self.host.start(
                ActorSpec(actor.name, actor.factory, msgpack.unpackb(actor.config, strict_map_key=False))
                for actor in request.actors
            )
            # The driver may go on as soon as they have begun.
            await context.send_initial_metadata(())
            await ready
        except ActorFailed as error:
            await context.abort(grpc.StatusCode.ABORTED, str(error))
        except SimulationError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return cell_pb2.Empty()

    async def Stop(self, request: cell_pb2.StopRequest, context: grpc.aio.ServicerContext) -> cell_pb2.Empty:
        for name in request.actors:
            if name not in self.host.residents:
                continue  # it crashed or failed meanwhile
            if request.crash:
                self._crash(name)
            else:
                await self.host.stop(name)
        return cell_pb2.Empty()

    def _crash(self, name: str) -> None:
        if self._tokens.keys() == {name}:
            # No other actor lives here, not even one that is down: end the process.
            os.kill(os.getpid(), signal.SIGKILL)
        self.host.crash(name)

    async def Inject(self, request: cell_pb2.Fault, context: grpc.aio.ServicerContext) -> cell_pb2.Empty:
        if request.HasField("step"):
            self.host.arm(request.id, request.step.actor, request.step.step)
        else:
            self.host.inject(
                request.id, request.kind.what, msgpack.unpackb(request.kind.parameters, strict_map_key=False)
            )
        return cell_pb2.Empty()

    async def Heal(self, request: cell_pb2.HealRequest, context: grpc.aio.ServicerContext) -> cell_pb2.HealResponse:
        return cell_pb2.HealResponse(hits=self.host.heal(request.id))

    async def Statistics(
        self, request: cell_pb2.Empty, context: grpc.aio.ServicerContext
    ) -> cell_pb2.StatisticsResponse:
        states = [cell_pb2.ActorState(name=name, running=True) for name in sorted(self.host.residents)]
        states += [cell_pb2.ActorState(name=name, error=error) for name, error in sorted(self._errors.items())]
        return cell_pb2.StatisticsResponse(
            actors=states,
            max_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            log_events=self.segment.events,
            wall_ns=wall_clocks.wall_ns(),
        )

    def _pending_now(self) -> int:
        now_s = time.monotonic()
        if self._pending or now_s >= self._pending_due_s:
            self._pending_due_s = now_s + _PENDING_S
            self._pending = self.host.pending
        return self._pending

    async def Log(
        self, request: cell_pb2.LogRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[cell_pb2.LogSegment]:
        offset = request.offset
        silent_since = 0.0
        while True:
            # First the time, then the events: an event in between has a later time.
            now_ns = self.host.clock.now_ns()
            events = self.segment.read(offset, _LOG_BATCH_BYTES)
            offset += len(events)
            self._sent = max(self._sent, offset)
            complete = offset == self.segment.events
            if events or time.monotonic() - silent_since >= _LOG_SIGN_OF_LIFE_S:
                silent_since = time.monotonic()
                yield cell_pb2.LogSegment(
                    events=events,
                    time_ns=now_ns if complete else 0,
                    pending=self._pending_now(),
                    load=self._meter.sample_when_due() if request.follow else self._meter.sample(),
                )
            if complete:
                if not request.follow:
                    return
                await asyncio.sleep(_LOG_INTERVAL_S)


_ReflectionServicer: Any = reflection.aio.ReflectionServicer  # type: ignore[attr-defined]


class _Reflection(reflection_pb2_grpc.ServerReflectionServicer):  # type: ignore[misc]
    """gRPC reflection over whatever services the cell's actors offer at the moment."""

    def __init__(self, host: hosts.Host) -> None:
        self._host = host

    async def ServerReflectionInfo(self, requests: Message, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
        names = {CELL_SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME}
        for resident in self._host.residents.values():
            names.update(resident.offered.services())
        async for response in _ReflectionServicer(sorted(names)).ServerReflectionInfo(requests, context):
            yield response


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """gRPC health: the cell as such (the empty name), and each service that one of its actors offers."""

    def __init__(self, host: hosts.Host) -> None:
        self._host = host

    def _status(self, service: str) -> Any:
        known = not service or any(service in resident.offered.services() for resident in self._host.residents.values())
        status = health_pb2.HealthCheckResponse
        return health_pb2.HealthCheckResponse(status=status.SERVING if known else status.SERVICE_UNKNOWN)

    async def Check(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        response = self._status(request.service)
        if response.status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no actor of this cell offers {request.service}")
        return response

    async def Watch(self, request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
        last = None
        while True:
            response = self._status(request.service)
            if response != last:
                last = response
                yield response
            await asyncio.sleep(_HEALTH_INTERVAL_S)


async def start_server(cell: Cell, address: str) -> grpc.aio.Server:
    """Serve a cell and its actors on a free port of ``address``, with TLS unless that is loopback."""
    server = grpc.aio.server(options=channels.SERVER_OPTIONS)
    gate = gates.Gate(cell.verifier, CELL_SERVICE)
    cell_pb2_grpc.add_CellServicer_to_server(cell, decoding.Guarded(gate))  # type: ignore[no-untyped-call]
    health_pb2_grpc.add_HealthServicer_to_server(_Health(cell.host), gate)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(_Reflection(cell.host), gate)
    gate.add_generic_rpc_handlers((inbound.Router(cell.host.residents),))
    server.add_generic_rpc_handlers((gate,))
    if certificates.is_loopback(address):
        port = server.add_insecure_port(f"{address}:0")
    else:
        identity = certificates.make(address)
        cell.certificate = identity.certificate
        port = server.add_secure_port(f"{address}:0", identity.credentials())
    await server.start()
    cell.host.target = f"{address}:{port}"
    return server


class CellProcess:
    """A cell in this process: its event loop in a thread of its own, as Ray keeps the main thread for itself."""

    def __init__(self, name: str, directory: str, address: str, public_key: bytes, code: Iterable[str]) -> None:
        """Returns when the cell can be called. ``address``: of the interface to listen on. ``public_key``: see
        ``tokens``. ``code``: what may be loaded here by ``module:Class``."""
        user_code.admit_only(code)
        self._name = name
        self._verifier = tokens.Verifier(public_key)
        self._directory = Path(directory)
        self._address = address
        self._up: concurrent.futures.Future[Endpoint] = concurrent.futures.Future()
        garbage.look_rarely()
        threading.Thread(target=self._run, name=f"cell {name}", daemon=True).start()
        self.endpoint = self._up.result()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if not self._up.done():
                self._up.set_exception(error)
            else:
                # A cell without its event loop is dead.
                traceback.print_exc()
                os.kill(os.getpid(), signal.SIGKILL)

    async def _serve(self) -> None:
        cell = Cell(self._name, self._directory, self._verifier)
        asyncio.get_running_loop().set_exception_handler(cell.unhandled)
        server = await start_server(cell, self._address)
        cell.ticks.begin()
        gc.collect()
        gc.freeze()
        self._up.set_result(
            Endpoint(cell.host.target, os.getpid(), machine(), str(cell.segment.path), cell.certificate)
        )
        flushing = asyncio.create_task(_flush(cell.segment))
        await server.wait_for_termination()
        flushing.cancel()


async def _flush(segment: segments.Segment) -> None:
    """Every second, for a crash of the machine: what a process wrote outlives its own."""
    known = 0
    while True:
        await asyncio.sleep(_FLUSH_EVERY_S)
        if segment.events != known:
            known = segment.events
            await asyncio.to_thread(segment.sync)


def machine() -> str:
    """Names this machine, and this start of it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()
