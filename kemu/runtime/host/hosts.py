"""Holds the actors of one process: makes them, gives each its Env, and lets them go.

A cell has one :class:`Host`, and so has the driver (for ``runtime.env("user")`` and for actors that are placed there).
Everything here runs on the one event loop of the process. Neighbours: ``control`` is the process around a host and its
control service, ``inbound`` and ``channels`` connect its actors to those of other cells, ``rpc`` to each other.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import random
import signal
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import grpc
import grpc.aio

from kemu.errors import SimulationError
from kemu.runtime import outside, random_streams, runtimes, tasks, user_code
from kemu.runtime.env import SECOND_NS, ActorSpec, LogSink, Random, Took
from kemu.runtime.faults.handlers import Handler, Handlers
from kemu.runtime.faults.hits import CHAOS, Hits
from kemu.runtime.faults.kinds import carriers
from kemu.runtime.host import disk_faults, files, tokens, wall_clocks
from kemu.runtime.host.calls import channels, far_calls, inbound, relays
from kemu.runtime.rpc import clients, network_faults, networks, servers
from kemu.runtime.rpc.partitions import DEFAULT_KEEPALIVE_TIMEOUT_S
from kemu.runtime.runlog import events
from kemu.runtime.skews import JUMP, SKEW, Skew, Skews

OnFailure = Callable[[str, str], None]
"""Told of an actor that failed: its name, and a text with the traceback."""

SHORTEST_STOP_TIMEOUT_S = 2.0
"""Real seconds; at least that, however fast the clock runs."""

ETCD = "etcd://"
PLAIN = "grpc://"
OUTSIDE = (ETCD, PLAIN, channels.SECURE)
"""Prefixes of ``host:port`` of processes outside the cluster, such as a real etcd in the place of the store."""


RESIDENT: contextvars.ContextVar[Resident | None] = contextvars.ContextVar("resident", default=None)
"""The actor whose code runs."""


class Host:
    """The actors of one process, and all that they share."""

    def __init__(self, loop: asyncio.AbstractEventLoop, log: LogSink, on_failure: OnFailure) -> None:
        self.loop = loop
        self.log = log
        self.on_failure = on_failure
        self.clock = wall_clocks.DilatedClock()
        wire = networks.LoopWire(loop, lambda: self.clock.speed)
        self.network = networks.Network(lambda target: wire, self._connection_lost)
        self.connections = channels.Connections()
        self.traffic = inbound.Traffic()
        self.seed = 0
        self.directory = Path()
        self.target = ""
        """Where the actors of this process are served."""
        self.addresses: dict[str, tuple[str, int]] = {}
        """Target and incarnation of every actor of the run that is up."""
        self.token: Callable[[str], str] = lambda name: ""
        """Token of an actor that lives here; empty: it has none, and other cells refuse its calls."""
        self.residents: dict[str, Resident] = {}
        self.on_strike: Callable[[str], None] = self.crash
        """Ends an actor that has come to a step at which it is to crash."""
        self.on_exit: Callable[[str], None] = self._end_process
        """Told of an actor that has ended itself."""
        self.outside: set[str] = set()
        """Targets of processes that are not actors, such as a real etcd."""
        self.hits = Hits(lambda event: self.log(self.clock.now_ns(), CHAOS, event.KIND, event))
        self.handlers = Handlers(self.hits.strike, lambda fault, actor: self.stream("fault", fault, actor))
        self.network.on_struck = self.hits.strike
        self._begin = network_faults.beginnings(self.network, self.stream)
        self._faults: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        """Faults of the network that are in force, and the actors between which they are."""
        self._ends: dict[str, network_faults.End] = {}
        self._relays: dict[str, relays.Relay] = {}
        """By actor of another cell."""
        self.skews = Skews()
        self._skewing: dict[str, None] = {}
        """Faults of clocks that this process has heard of."""
        self._armed: dict[str, dict[str, str]] = {}
        """By actor: the steps at which it is to crash, and the faults that say so."""

    def stream(self, *names: str | int) -> random.Random:
        """The stream of the run of that name."""
        return random_streams.random_stream(self.seed, *names)

    # What the driver tells

    def configure(
        self,
        *,
        seed: int,
        directory: Path,
        addresses: Mapping[str, tuple[str, int]],
        certificates: Mapping[str, bytes] | None = None,
        keepalive_time_s: float = 0.0,
        keepalive_timeout_s: float = DEFAULT_KEEPALIVE_TIMEOUT_S,
    ) -> None:
        """``certificates``: of the cells that use TLS, by target."""
        self.network.partitions.keepalive_time_s = keepalive_time_s
        self.network.partitions.keepalive_timeout_s = keepalive_timeout_s
        self.seed = seed
        self.directory = directory
        self.addresses = dict(addresses)
        self.connections.certificates = dict(certificates or {})
        self.connections.retain({target for target, _ in self.addresses.values()} | self.outside)

    def inject(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        """Begin a fault of a kind that actors carry out, of clocks, or of the network."""
        if carriers(what, parameters):
            self.handlers.begin(fault, what, parameters)
            return
        if what in (SKEW, JUMP):
            self._skew(fault, what, parameters)
            return
        one, other = network_faults.sides(what, parameters)
        # Calls take the detour before the fault begins: what is on its way already arrives.
        for resident in self.residents.values():
            for route in resident.routes.values():
                if _is_between(one, other, resident.name, route.peer):
                    self.detour(route)
        end = self._begin[what](fault, parameters)
        if end is not None:
            self._faults[fault] = (one, other)
            self._ends[fault] = end

    def is_concerned(self, one: str, other: str) -> bool:
        """Whether a fault is in force between the two."""
        return any(_is_between(*between, one, other) for between in self._faults.values())

    def detour(self, route: far_calls.Route) -> None:
        self.relay(route.peer)
        route.move()

    def relay(self, name: str) -> relays.Relay:
        """What stands here for an actor of another cell."""
        relay = self._relays.get(name)
        if relay is None:
            relay = self._relays[name] = relays.Relay(
                name, lambda: self.channel_to(name), self._connection_lost, lambda caller: self.token(caller)
            )
            self.network.join(networks.Peer(name, relay))
        return relay

    def channel_to(self, name: str) -> grpc.aio.Channel | None:
        """The connection to the cell of an actor; None: it lives in this one, or its place is not known."""
        if name in self.residents:
            return None
        address = self.addresses.get(name)
        # The driver serves no other process: its own actors reach each other in memory, and all others are refused.
        if address is None or address[0] in ("", self.target):
            return None
        return self.connections.to(address[0])

    def _skew(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        """Make clocks wrong; until ``heal(fault)``, unless they jump. A second time nothing happens."""
        if fault in self._skewing:
            return
        self._skewing[fault] = None
        self._use(self.skews.begin(fault, what, parameters, self.clock.now_ns()))
        for name in parameters["actor"]:
            if name in self.residents:
                self.hits.strike(fault, name)

    def _use(self, concerned: Iterable[tuple[str, Skew]]) -> None:
        for name, skew in concerned:
            resident = self.residents.get(name)
            if resident is not None:
                resident.clock.use(skew)

    def arm(self, fault: str, name: str, step: str) -> None:
        """The actor is to crash at that step, until ``heal(fault)``."""
        self.armed_steps(name)[step] = fault

    def armed_steps(self, name: str) -> dict[str, str]:
        return self._armed.setdefault(name, {})

    def heal(self, fault: str) -> int:
        """End a fault. Returns how often it has struck here."""
        for steps in self._armed.values():
            for step in [step for step, armed in steps.items() if armed == fault]:
                del steps[step]
        self.handlers.end(fault)
        self._use(self.skews.end(fault, self.clock.now_ns()))
        self._faults.pop(fault, None)
        end = self._ends.pop(fault, None)
        if end is not None:
            end()
        return self.hits.of(fault)

    # Actors

    def start(self, specs: Iterable[ActorSpec]) -> Coroutine[Any, Any, None]:
        """Start actors, in this order. The result waits until all are ready, or were stopped or crashed before.

        Raises SimulationError for a name that is in use; the result, ActorFailed.
        """
        return self._wait_ready([self._start(spec).is_ready for spec in specs])

    async def _wait_ready(self, starting: Sequence[asyncio.Future[None]]) -> None:
        for ready in starting:
            await asyncio.wait([ready])
            if not ready.cancelled():
                ready.result()

    def _start(self, spec: ActorSpec) -> Resident:
        if spec.name in self.residents:
            raise SimulationError(f"{spec.name} is running")
        _, incarnation = self.addresses.get(spec.name, ("", 1))
        resident = self._add(spec.name, incarnation)
        resident.log(events.ActorStarted(incarnation=incarnation))
        try:
            actor = runtimes.resolve(spec.factory)(resident, spec.config)
        except asyncio.CancelledError:
            if not resident.gone:
                raise
        except Exception as error:
            self.failed(resident, f"its factory {spec.factory}", error)
        else:
            resident.main = resident.spawn(actor.run(), "run")
        return resident

    def env(self, name: str) -> Resident:
        """An Env for code that is no actor."""
        resident = self.residents.get(name)
        if resident is None:
            resident = self._add(name, 1)
        return resident

    async def stop(self, name: str) -> None:
        """Cancel the actor and wait, within bounds, until it has cleaned up. Raises KeyError."""
        resident = self.residents[name]
        resident.server.close()
        await resident.end_tasks(max(SHORTEST_STOP_TIMEOUT_S, runtimes.STOP_TIMEOUT_S / self.clock.speed))
        if not resident.gone:
            resident.log(events.ActorStopped())
            self._drop(resident)

    def crash(self, name: str) -> None:
        """Drop the actor without running any of its clean-up. Raises KeyError."""
        resident = self.residents[name]
        if not resident.struck:
            resident.log(events.ActorCrashed())
        self._drop(resident)

    def strike(self, resident: Resident, step: str) -> NoReturn:
        """The actor has come to a step at which it is to crash. One that is gone already only unwinds."""
        if not resident.gone:
            del self._armed[resident.name][step]
            resident.log(events.ActorCrashed(step=step))
            resident.struck = True
            self.on_strike(resident.name)
        raise asyncio.CancelledError(f"{resident.name} has crashed {step}")

    def exit(self, resident: Resident, why: str) -> NoReturn:
        """The actor ends itself: it hears and says nothing more."""
        if not resident.gone:
            resident.log(events.ActorExited(why=why))
            self._drop(resident)
            self.on_exit(resident.name)
        raise asyncio.CancelledError(f"{resident.name} has ended: {why}")

    def _end_process(self, name: str) -> None:
        """After the supervisor's delay, with all that lives in it; it is replaced."""
        delay_s = runtimes.SUPERVISOR_DELAY_S / self.clock.speed
        self.loop.call_later(delay_s, lambda: os.kill(os.getpid(), signal.SIGKILL))

    def failed(self, resident: Resident, what: str, error: BaseException) -> None:
        failure = user_code.failed(
            f"{resident.name} (incarnation {resident.incarnation}) failed at {self.clock.now_ns() / SECOND_NS:.9f} s:"
            f" {what} ended with {type(error).__name__}: {error}\n\n"
            + "".join(traceback.format_exception(error)).rstrip(),
            error,
        )
        text = str(failure)
        resident.log(events.ActorFailed(error=text))
        if not resident.is_ready.done():
            resident.is_ready.set_exception(failure)
        self._drop(resident)
        self.on_failure(resident.name, text)

    def _drop(self, resident: Resident) -> None:
        self.residents.pop(resident.name, None)
        self.handlers.remove(resident.name)
        resident.drop()
        self.network.leave(resident.peer)

    def _add(self, name: str, incarnation: int) -> Resident:
        resident = self.residents[name] = Resident(self, name, incarnation)
        self.network.join(resident.peer)
        return resident

    def _connection_lost(self, survivor: str, peer: str) -> None:
        resident = self.residents.get(survivor)
        if resident is not None:
            resident.lost(peer)
        elif survivor in self._relays and survivor in self.addresses:
            # It is in another cell, where gRPC tells it no more than that its callers are gone.
            event = events.ConnectionLost(peer=peer)
            self.log(self.clock.now_ns(), survivor, event.KIND, event)

    @property
    def pending(self) -> int:
        """How many things keep the run alive, of the first actor that has any: timers, and responses that it waits
        for. With hundreds of actors, to count all of them many times a second would take a part of a core."""
        return next((pending for resident in self.residents.values() if (pending := resident.pending)), 0)

    async def close(self) -> None:
        """Drop all actors without clean-up."""
        for resident in list(self.residents.values()):
            self._drop(resident)
        await self.connections.close()
        await outside.close()


def _is_between(one: frozenset[str], other: frozenset[str], a: str, b: str) -> bool:
    return (a in one and b in other) or (a in other and b in one)


class Resident:
    """One incarnation of an actor: its :class:`kemu.runtime.env.Env`, and what the host knows of it."""

    def __init__(self, host: Host, name: str, incarnation: int) -> None:
        self._host = host
        self.name = name
        self.incarnation = incarnation
        self.measured = False
        self.gone = False
        self.struck = False
        """It came to a step at which it was to crash, and has logged that."""
        self.clock = wall_clocks.WallClock(host.clock, self._timer_failed)
        self.context = contextvars.copy_context()
        """In which its code runs."""
        self.context.run(RESIDENT.set, self)
        self.server = servers.Server(name, self.spawn, host.loop, self.handler_failed, self.context)
        self.peer = networks.Peer(name, self.server)
        self.offered = inbound.Offered()
        self.calls = inbound.InboundCalls(self, host.traffic)
        self.is_ready: asyncio.Future[None] = host.loop.create_future()
        # If it is not asked for, asyncio must not complain.
        self.is_ready.add_done_callback(tasks.retrieve)
        self.main: asyncio.Task[Any] | None = None
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._streams: dict[Any, str] = {}
        """Open streams to other cells, and to whom."""
        self.routes: dict[str, far_calls.Route] = {}
        """To peers in other cells."""
        self._channels: dict[str, channels.ActorChannel] = {}
        self._nearby: dict[str, clients.MemoryChannel] = {}
        self._random: random.Random | None = None
        self._disk: files.ActorDisk | None = None
        self._awaited: list[Callable[[], int]] = []
        self.crash_steps = host.armed_steps(name)
        if (skew := host.skews.by_actor.get(name)) is not None:
            self.clock.use(skew)

    # The Env of the actor

    @property
    def random(self) -> random.Random:
        stream = self._random
        if stream is None:
            names = ("actor", self.name) if self.incarnation == 1 else ("actor", self.name, self.incarnation)
            stream = self._random = self._host.stream(*names)
        return stream

    def stream(self, *names: str | int) -> Random:
        return self._host.stream(*names)

    @property
    def disk(self) -> files.ActorDisk:
        if self._disk is None:
            self._disk = files.ActorDisk(files.directory_of(self._host.directory, self.name))
            disk_faults.attach(self, self._disk)
        return self._disk

    def dial(self, name: str) -> channels.ActorChannel:
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = channels.ActorChannel(self, name)
        return channel

    async def ask(self, question: outside.Question) -> outside.Answer:
        return await outside.ask(question)

    def serve(self, add_to_server: Callable[[Any, Any], None], servicer: object) -> None:
        add_to_server(servicer, self.server)
        add_to_server(servicer, self.offered)

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        if self.gone:
            coroutine.close()
            raise asyncio.CancelledError(f"{self.name} is no more")
        task = self._host.loop.create_task(coroutine, name=f"{self.name}: {name}", context=self.context.copy())
        self._tasks[task] = None
        task.add_done_callback(self._task_done)
        return task

    def log(self, event: events.Event | str, data: Mapping[str, Any] | None = None) -> None:
        if not self.gone:
            if isinstance(event, str):
                event = events.typed(event, data or {})
            # The times in the run log are true, whatever the actor's own clock shows.
            if self.name in self._host.skews.by_actor:
                event = event.by_clock(self.clock.true_ns)
            self._host.log(self._host.clock.now_ns(), self.name, event.KIND, event)

    def log_took(self, make: Callable[[Took], events.Event]) -> None:
        if not self.gone:
            now_ns, is_skewed = self._host.clock.now_ns(), self.name in self._host.skews.by_actor
            true_ns = self.clock.true_ns
            took = (lambda start_ns: now_ns - true_ns(start_ns)) if is_skewed else now_ns.__sub__
            event = make(took)
            self._host.log(now_ns, self.name, event.KIND, event)

    def work(self, seconds: float) -> Awaitable[None]:
        return self.clock.sleep(seconds)

    def awaits(self, count: Callable[[], int]) -> None:
        self._awaited.append(count)

    def step(self, name: str) -> None:
        if name in self.crash_steps:
            self._host.strike(self, name)

    def armed(self, step: str) -> bool:
        """Whether it is to crash at that step; the fault may be known before."""
        return step in self.crash_steps

    def exit(self, why: str) -> NoReturn:
        self._host.exit(self, why)

    def on_fault(self, what: str, handler: Handler) -> None:
        self._host.handlers.add(self.name, what, handler)

    def ready(self) -> None:
        if not self.is_ready.done():
            self.is_ready.set_result(None)

    # For its channels

    def token(self, peer: str) -> str:
        return "" if peer.startswith(OUTSIDE) else self._host.token(self.name)

    def remote(self, peer: str) -> grpc.aio.Channel | None:
        host = self._host
        if self.gone:
            return None
        if peer.startswith(OUTSIDE):
            target = peer.removeprefix(ETCD).removeprefix(PLAIN)
            host.outside.add(target)
            return host.connections.to(target)
        return host.channel_to(peer)

    def nearby(self, peer: str) -> clients.MemoryChannel:
        if self.gone:
            raise asyncio.CancelledError(f"{self.name} is no more")
        channel = self._nearby.get(peer)
        if channel is None:
            host = self._host
            channel = self._nearby[peer] = clients.MemoryChannel(
                lambda: host.network.connect(self.peer, peer), host.loop, ((tokens.CALLER, self.name),)
            )
        return channel

    def route(self, peer: str) -> far_calls.Route:
        route = self.routes.get(peer)
        if route is None:
            route = self.routes[peer] = far_calls.Route(self, peer)
            if self._host.is_concerned(self.name, peer):
                self._host.detour(route)
        return route

    def needs_detour(self, route: far_calls.Route) -> bool:
        """Whether it still does: a connection that a fault has left silent is used until keepalive gives it up."""
        return self._host.is_concerned(self.name, route.peer) or self.nearby(route.peer).is_blocked()

    def relay(self, peer: str) -> relays.Relay:
        return self._host.relay(peer)

    def forget_stream(self, call: grpc.aio.Call) -> None:
        self._streams.pop(call, None)

    def opened(self, call: grpc.aio.Call, peer: str) -> None:
        self._streams[call] = peer
        call.add_done_callback(self._stream_done)

    def real_seconds(self, seconds: float) -> float:
        return seconds / self._host.clock.speed

    def _stream_done(self, call: grpc.aio.Call) -> None:
        peer = self._streams.pop(call, None)
        if peer is not None and not self.gone:
            self.spawn(self._note_lost_stream(call, peer), "note a lost stream")

    async def _note_lost_stream(self, call: grpc.aio.Call, peer: str) -> None:
        if relays.tells_loss(await call.code(), await call.details() or ""):
            self.lost(peer)

    # For its callers and timers

    @property
    def pending(self) -> int:
        return self.clock.pending + sum(count() for count in self._awaited)

    def lost(self, peer: str) -> None:
        self.log(events.ConnectionLost(peer=peer))

    def handler_failed(self, method: str, error: BaseException) -> None:
        if not self.gone:
            self._host.failed(self, f"the handler of {method}", error)

    def _timer_failed(self, error: BaseException) -> None:
        self._host.failed(self, "the callback of a timer", error)

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if self.gone:
            return
        if error is not None:
            self._host.failed(self, f"task {task.get_name()!r}", error)
        elif task is self.main:
            self.ready()

    # The end

    async def end_tasks(self, timeout_s: float) -> None:
        """First ``run()``, then the others: its clean-up may need them."""
        if self.main is not None and not self.main.done():
            self.main.cancel()
            await asyncio.wait([self.main], timeout=timeout_s)
        remaining = list(self._tasks)
        for task in remaining:
            task.cancel()
        if remaining:
            await asyncio.wait(remaining, timeout=timeout_s)

    def drop(self) -> None:
        """From now on nothing that the actor's code does has an effect; its tasks are cancelled."""
        self.gone = True
        self.peer.gone = True
        self.server.close()
        self.calls.close(f"{self.name}: connection reset by peer")
        for call in list(self._streams):
            call.cancel()
        self._streams.clear()
        self.clock.drop()
        for task in list(self._tasks):
            task.cancel()
        if self._disk is not None:
            self._disk.close()
        self.is_ready.cancel()
