"""Everything an actor sees of the world, and thus where to begin reading.

Two schedulers, one node. Each looks whether the node is free, and takes it::

    from kemu.messages.etcd.rpc_pb2 import PutRequest, RangeRequest
    from kemu.messages.etcd.rpc_pb2_grpc import KVStub
    from kemu.runtime.env import ActorSpec, Env
    from kemu.testing import Recorder, sim

    class Scheduler:
        def __init__(self, env: Env, config: dict) -> None:
            self.env = env
            self.store = KVStub(env.dial("store"))

        async def run(self) -> None:
            self.env.ready()
            await self.env.clock.sleep(self.env.random.uniform(0, 0.1))
            node = await self.store.Range(RangeRequest(key=b"node"))
            if not node.kvs:
                await self.store.Put(PutRequest(key=b"node", value=self.env.name.encode()))
                self.env.log("node.taken", {})

    ACTORS = [
        ActorSpec("store", "kemu.emulated.store.server:Store"),
        ActorSpec("scheduler/a", f"{__name__}:Scheduler"),
        ActorSpec("scheduler/b", f"{__name__}:Scheduler"),
    ]

    def is_taken_once(seed: int) -> bool:
        log = Recorder()
        sim(lambda runtime: runtime.clock.sleep(1), seed, ACTORS, sink=log)
        return len(log.of("node.taken")) == 1

It mostly is. This line finds a run in which both take it; the same seed always gives the same run::

    failing = next(seed for seed in range(1000) if not is_taken_once(seed))

A transaction that takes the node only if its key has no version yet is never broken. kemu's API server and schedulers
are such actors, a scenario is such a list of them, a check is such a property, and ``kemu explore`` such a search.

An actor is a class with ``async def run(self)`` and, where others call it, gRPC servicers. It touches the world only
through the :class:`Env` that it is given, so the same code runs in deterministic virtual time (``sim``), in one process
in real time (``wall``) and in Ray actors (``ray``). Actor code imports none of time, random, uuid, threading, socket or
ray; a linter rule says so.

Of asyncio an actor may use Event, Lock, Queue, Future and ``gather`` (whose results are ordered). Time passes only
through ``env.clock``, tasks start only through ``env.spawn``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from kemu.runtime import outside
from kemu.runtime.faults.handlers import Handler
from kemu.runtime.runlog.events import Event

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000

Random = random.Random
"""The type of :attr:`Env.random`, for actor code, which does not import ``random``."""

EPOCH_UNIX_S = 946_684_800
"""Virtual time 0 in ``sim``, as Kubernetes timestamps show it: 2000-01-01T00:00:00Z."""


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """Virtual time, in integer nanoseconds since the start of the run.

    While the cluster is being set up the clock stands at 0; sleeps begun then are counted from 0.
    """

    @property
    def epoch_unix_s(self) -> int:
        """Unix time, in seconds, of virtual time 0, by a clock that is right."""
        ...

    def now_ns(self) -> int:
        """A monotonic clock, as Go's is: it never jumps, but it may drift. For timers, and to compare own readings."""
        ...

    def unix_ns(self) -> int:
        """The wall clock, for timestamps in objects and to compare with those of others. It may be wrong, and jump."""
        ...

    @property
    def unix_offset_ns(self) -> int:
        """What the wall clock is ahead of the monotonic one now: makes timestamps of own readings, and readings of
        timestamps."""
        ...

    async def started(self) -> None:
        """Wait until set-up is over and time begins to pass."""
        ...

    async def sleep(self, seconds: float, *, background: bool = False) -> None:
        """``background``: housekeeping that must not keep a run alive (heartbeats, flushes)."""
        ...

    async def sleep_until_ns(self, when_ns: int, *, background: bool = False) -> None: ...

    async def pause(self, seconds: float) -> None:
        """Sleep before another attempt at what has failed. In the set-up of a run on Ray, in which this clock stands
        and processes may die all the same, real time passes instead."""
        ...

    def call_at_ns(
        self, when_ns: int, callback: Callable[..., object], *args: object, background: bool = False
    ) -> Timer: ...


class Disk(Protocol):
    """The files of one actor. They survive its crash; what was not fsynced may not.

    Names are flat (no directories). All calls but ``sync`` are synchronous. Those that change something raise OSError,
    as the operating system does: ENOSPC when the disk is full, EIO when it fails.
    """

    def list(self) -> list[str]:
        """File names, sorted."""
        ...

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Creates the file if it is absent."""
        ...

    def write(self, name: str, data: bytes, *, durably: bool = True) -> None:
        """Replace the whole file atomically and durably (write aside, fsync, rename). Otherwise than ``durably``, a
        machine that loses its power may have what it had before."""
        ...

    def truncate(self, name: str, size: int) -> None: ...

    def fsync(self, name: str) -> None:
        """After an OSError, what was appended since the last success is not on the disk, nor will it be after another
        fsync."""
        ...

    async def sync(self, name: str) -> None:
        """``fsync`` as it takes its time: other tasks of the actor go on. What they append meanwhile is not covered."""
        ...

    def remove(self, name: str) -> None: ...


Codec = Callable[[Any], Any]
"""Turns a message into bytes, or bytes into a message."""


class Channel(Protocol):
    """The part of ``grpc.aio.Channel`` that generated stubs use. In ``sim`` it is an in-memory one."""

    def unary_unary(
        self,
        method: str,
        request_serializer: Codec | None = None,
        response_deserializer: Codec | None = None,
        *,
        _registered_method: bool | None = False,
    ) -> Callable[..., Any]: ...

    def unary_stream(
        self,
        method: str,
        request_serializer: Codec | None = None,
        response_deserializer: Codec | None = None,
        *,
        _registered_method: bool | None = False,
    ) -> Callable[..., Any]: ...

    def stream_unary(
        self,
        method: str,
        request_serializer: Codec | None = None,
        response_deserializer: Codec | None = None,
        *,
        _registered_method: bool | None = False,
    ) -> Callable[..., Any]: ...

    def stream_stream(
        self,
        method: str,
        request_serializer: Codec | None = None,
        response_deserializer: Codec | None = None,
        *,
        _registered_method: bool | None = False,
    ) -> Callable[..., Any]: ...


Took = Callable[[int], int]
"""From a time by the actor's clock until the time of the event, in true nanoseconds."""


class Env(Protocol):
    """One actor's view of the world."""

    @property
    def name(self) -> str:
        """``store``, ``apiserver/0``, ``scheduler/<name>/<replica>``, ``kubelet/<node>``, ``controller/<name>``."""
        ...

    measured: bool
    """The actor also logs what only metrics need: False, until it says otherwise, as its configuration does."""

    @property
    def clock(self) -> Clock: ...

    @property
    def random(self) -> random.Random:
        """This actor's own stream, seeded from the run's seed and the actor's name."""
        ...

    def stream(self, *names: str | int) -> Random:
        """A stream of the run, for what must not shift when the actor draws once more: a new one at each call, seeded
        from the run's seed and these names."""
        ...

    @property
    def disk(self) -> Disk: ...

    def dial(self, name: str) -> Channel:
        """A channel to the actor of that name, wherever it lives now; the same one at each call.

        ``grpc://host:port`` (``grpcs://`` with TLS) is a process outside of the cluster; in ``sim``, where it would be
        outside of virtual time, that is a SimulationError.

        Calls fail with ``grpc.aio.AioRpcError`` UNAVAILABLE while the other side is away. Metadata of every call
        carries ``("kemu-actor", <own name>)``.
        """
        ...

    async def ask(self, question: outside.Question) -> outside.Answer:
        """Ask a process outside of the cluster over HTTPS (a webhook), within bounds of size and time.

        In ``sim`` there is none: a SimulationError. In ``kemu up --virtual`` there is; virtual time stands meanwhile.
        Raises :class:`kemu.runtime.outside.Unanswered` and :class:`kemu.runtime.outside.BadAuthorities`.
        """
        ...

    def serve(self, add_to_server: Callable[[Any, Any], None], servicer: object) -> None:
        """Offer a service: ``env.serve(add_ApiServicer_to_server, servicer)``."""
        ...

    def spawn(self, coroutine: Coroutine[Any, Any, object], name: str) -> asyncio.Task[Any]:
        """Start a task of this actor. An exception that it does not handle ends the actor, and the run with it."""
        ...

    def log(self, event: Event | str, data: Mapping[str, Any] | None = None) -> None:
        """Append an event to the run log (docs/runs.md).

        An actor of yours declares its own kinds as :mod:`kemu.runtime.runlog.events.declared` says, or logs a kind and
        its data: ``env.log("echo.alive", {"n": 3})``, msgpack-able values, keys in a fixed order.
        """
        ...

    def log_took(self, make: Callable[[Took], Event]) -> None:
        """Append an event that tells how long things took until its time: ``make`` is given :data:`Took`.

        The clock is read once. A process that is held up between two readings would say that something began later
        than it did.
        """
        ...

    def work(self, seconds: float) -> Awaitable[None]:
        """Let the time pass that a core needs for something: longer where the cores of the control plane are shared
        (``timing.cores``), otherwise as a sleep."""
        ...

    def awaits(self, count: Callable[[], int]) -> None:
        """Name what the actor waits for from others: as long as ``count()`` is not 0, the run is not idle.

        For runtimes that cannot see which messages are in flight; asked from time to time.
        """
        ...

    @property
    def crash_steps(self) -> Collection[str]:
        """Steps at which a crash is armed now, nearly always none: a hot path asks before it calls :meth:`step`."""
        ...

    def step(self, name: str) -> None:
        """Say that the actor has come to a step at which a fault may crash it (``STEPS`` of
        :mod:`kemu.runtime.faults.kinds`).

        If a crash is armed for this step the actor dies here, and this raises ``asyncio.CancelledError``.
        """
        ...

    def exit(self, why: str) -> NoReturn:
        """End the actor, as a process that gives up: like a crash, but it says why. A supervisor starts it again.

        Raises ``asyncio.CancelledError``.
        """
        ...

    def on_fault(self, what: str, handler: Handler) -> None:
        """Say that the actor carries out faults of that kind itself: ``handler`` begins one, and returns what ends it.

        Handlers are called between two steps of the event loop, and do not wait. Kinds: those of
        :mod:`kemu.runtime.faults.kinds` with ``carried_out_by``.
        """
        ...

    def ready(self) -> None:
        """Say that this actor has done its part of the set-up."""
        ...


class Actor(Protocol):
    async def run(self) -> None:
        """Runs until the actor is stopped (cancelled) or crashes (dropped, without any clean-up)."""
        ...


@dataclass(frozen=True)
class ActorSpec:
    """What to run: a name, and how to make the actor from plain data (so that it can cross a process border)."""

    name: str
    factory: str
    """``module:callable`` taking ``(env, config)``."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """msgpack-able."""


LogSink = Callable[[int, str, str, Mapping[str, Any]], None]
"""Receives each run-log event: time in ns, actor, kind, data."""
