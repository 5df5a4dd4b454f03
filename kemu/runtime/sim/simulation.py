"""The deterministic runtime: all actors in one process, in virtual time. Implements ``runtimes.Runtime``.

All randomness comes from the seed, in named streams (``random_streams``). ``loops`` is the event loop, ``clocks`` the
actors' time, ``wires`` the latency of messages between them (``rpc.networks`` their connections), ``disks`` their
disks, ``crashes`` what a crash does to all of these.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

from kemu import errors
from kemu.runtime import distributions, outside, random_streams, tasks, user_code
from kemu.runtime.env import EPOCH_UNIX_S, SECOND_NS, Actor, ActorSpec, LogSink, Random, Took
from kemu.runtime.faults.handlers import Handler, Handlers
from kemu.runtime.faults.hits import CHAOS, Hits
from kemu.runtime.rpc.clients import MemoryChannel
from kemu.runtime.rpc.networks import Network, Peer
from kemu.runtime.rpc.servers import Server
from kemu.runtime.runlog.events import (
    ActorCrashed,
    ActorExited,
    ActorFailed,
    ActorResumed,
    ActorStarted,
    ActorStopped,
    ConnectionLost,
    Event,
    typed,
)
from kemu.runtime.runtimes import STOP_TIMEOUT_S, SUPERVISOR_DELAY_S, Ending, resolve
from kemu.runtime.sim import crashes, guards
from kemu.runtime.sim.clocks import MasterClock, VirtualClock
from kemu.runtime.sim.cores import Cores
from kemu.runtime.sim.disks import MemoryDisk
from kemu.runtime.sim.faults.disks import DiskFaultKinds
from kemu.runtime.sim.faults.faults import Faults
from kemu.runtime.sim.faults.processes import ProcessFaults
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.owners import OWNER, Condition, Held, Owner
from kemu.runtime.sim.redraws import Redrawing
from kemu.runtime.sim.steering.steering import Steering
from kemu.runtime.sim.wires import SimWires
from kemu.runtime.skews import Skew, Skews

T = TypeVar("T")

DRIVER = "driver"

STEPS_PER_ACTOR = 200
"""Steps per actor of one instant that are no livelock, however many actors there are."""

GC_ACTORS = 1_000
"""How many actors start between two collections of garbage: what they leave behind in one go takes seconds to look
through where there are tens of thousands, in which nothing else happens, not even an answer to Ctrl-C."""


class SimEnv(Owner):
    """One incarnation of an actor: its ``env.Env``, and what the runtime knows of it."""

    __slots__ = ("_channels", "_first", "_random", "_runtime", "clock", "context", "crash_steps", "disk", "incarnation",
                 "is_ready", "main", "measured", "on_done", "peer", "server", "stopped", "work")  # fmt: skip

    def __init__(self, runtime: SimRuntime, name: str, incarnation: int, disk: MemoryDisk) -> None:
        super().__init__(name)
        self._runtime = runtime
        self.incarnation = incarnation
        self.measured = False
        self.context = contextvars.Context()
        self.context.run(OWNER.set, self)
        self.clock = VirtualClock(runtime.master, self.context)
        cores = runtime.cores
        self.disk = disk
        disk.sleep = sleep = self.clock.sleep
        self.work: Callable[[float], Awaitable[None]]
        self.work = sleep if cores is None else functools.partial(cores.work, self)
        disk.usual_s = runtime.fsync_time_of(name, incarnation)
        self.server = Server(name, self._spawn_handler, runtime.loop, self._handler_failed, self.context)
        self.peer = Peer(name, self.server)
        self.main: asyncio.Task[Any] | None = None
        self.on_done = self._task_done
        """Once for all tasks."""
        self.is_ready = False
        self.stopped: asyncio.Future[None] | None = None
        """Set while it stops; done when it has, or has crashed instead."""
        self._first: tuple[str, MemoryChannel] | None = None
        """Whom it dialled first. Most dial nobody else, and a dict takes four times the memory."""
        self._channels: dict[str, MemoryChannel] | None = None
        self._random: Random | random_streams.EarlyStream | None = None
        self.crash_steps = runtime.armed_steps(name)
        if (skew := runtime.skews.by_actor.get(name)) is not None:
            self.use_skew(skew)

    @property
    def random(self) -> Random:
        stream = self._random
        if stream is None:
            early = not self.is_ready and not self._runtime.streams.may_change
            stream = self._random = random_streams.EarlyStream(self._own_stream) if early else self._own_stream()
        elif self.is_ready and isinstance(stream, random_streams.EarlyStream):
            stream = self._random = stream.whole()
        return stream  # type: ignore[return-value]  # an early stream offers what a Random does

    def _own_stream(self) -> Random:
        names = ("actor", self.name) if self.incarnation == 1 else ("actor", self.name, self.incarnation)
        return self._runtime.streams.stream(*names)

    def stream(self, *names: str | int) -> Random:
        return self._runtime.streams.stream(*names)

    def dial(self, name: str) -> MemoryChannel:
        first = self._first
        if first is not None and first[0] == name:
            return first[1]
        channel = self._channels.get(name) if self._channels else None
        if channel is None:
            if "://" in name:
                raise errors.SimulationError(f"{name} is outside of virtual time; {self.name} can dial actors only")
            runtime = self._runtime
            channel = MemoryChannel(runtime.connect, runtime.loop, (("kemu-actor", self.name),), (self.peer, name))
            if first is None:
                self._first = name, channel
            else:
                if self._channels is None:
                    self._channels = {}
                self._channels[name] = channel
        return channel

    async def ask(self, question: outside.Question) -> outside.Answer:
        ask = self._runtime.ask_outside
        if ask is None:
            raise errors.SimulationError(f"{question.url} is outside of virtual time; {self.name} cannot ask there")
        return await ask(question)

    def serve(self, add_to_server: Callable[[Any, Any], None], servicer: object) -> None:
        add_to_server(servicer, self.server)

    def spawn(self, coroutine: Coroutine[Any, Any, object], name: str) -> asyncio.Task[Any]:
        return self._runtime.loop.create_owned_task(
            coroutine, f"{self.name}: {name}", self.context.copy(), self, self.on_done
        )

    def log(self, event: Event | str, data: Mapping[str, Any] | None = None) -> None:
        if self.condition is not Condition.DEAD:
            if isinstance(event, str):
                event = typed(event, data or {})
            runtime = self._runtime
            master = runtime.master  # its now_ns(), inlined: nothing is done more often
            now_ns = master.loop.now_ns - master.origin_ns if master.running else 0
            runtime.sink(now_ns, self.name, event.KIND, event)

    def log_took(self, make: Callable[[Took], Event]) -> None:
        if self.condition is not Condition.DEAD:
            runtime = self._runtime
            master = runtime.master
            now_ns = master.loop.now_ns - master.origin_ns if master.running else 0
            event = make(now_ns.__sub__)
            runtime.sink(now_ns, self.name, event.KIND, event)

    def awaits(self, count: Callable[[], int]) -> None:
        """Nothing to do: messages that are under way are events of the loop."""

    def use_skew(self, skew: Skew) -> None:
        """Its clock is wrong from now on, as this says."""
        self.clock.use(skew)
        # Actors hold this very object; that its class changes costs nothing while clocks are right.
        self.__class__ = SkewedEnv

    def step(self, name: str) -> None:
        if name in self.crash_steps:
            self._runtime._strike(self, name)

    def exit(self, why: str) -> NoReturn:
        self._runtime._exit(self, why)

    def on_fault(self, what: str, handler: Handler) -> None:
        self._runtime.handlers.add(self.name, what, handler)

    def ready(self) -> None:
        if not self.is_ready and self.condition is not Condition.DEAD:
            self.is_ready = True
            if isinstance(self._random, random_streams.EarlyStream):
                self._random.put_away()
            self._runtime._actor_ready(self)

    def _spawn_handler(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return self._runtime.loop.create_quiet_task(coroutine, name, self.context.copy(), self)

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        if self.condition is Condition.DEAD:
            self.forget_task(task)
            return
        self.tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._runtime._actor_failed(self, f"task {task.get_name()!r}", error)
        elif task is self.main:
            self.ready()

    def _handler_failed(self, method: str, error: BaseException) -> None:
        self._runtime._actor_failed(self, f"the handler of {method}", error)


class SkewedEnv(SimEnv):
    """The Env of an actor whose clock is, or was, wrong: the times in the run log are true all the same."""

    __slots__ = ()

    def log(self, event: Event | str, data: Mapping[str, Any] | None = None) -> None:
        if self.condition is not Condition.DEAD:
            if isinstance(event, str):
                event = typed(event, data or {})
            event = event.by_clock(self._runtime.skews.by_actor[self.name].true_ns)
            self._runtime.sink(self._runtime.master.now_ns(), self.name, event.KIND, event)

    def log_took(self, make: Callable[[Took], Event]) -> None:
        if self.condition is not Condition.DEAD:
            now_ns, skew = self._runtime.master.now_ns(), self._runtime.skews.by_actor[self.name]
            event = make(lambda start_ns: now_ns - skew.true_ns(start_ns))
            self._runtime.sink(now_ns, self.name, event.KIND, event)


class Departed(NamedTuple):
    """What is kept of an incarnation that stopped or crashed; its code and objects are gone."""

    incarnation: int
    is_ready: bool


class SimRuntime:
    """Implements ``runtimes.Runtime``.

    ``timing``: see ``wires.SimWires``; and ``fsync``, for the disks. ``steering``: who delays messages, if anybody.
    """

    idle_is_still = True

    def __init__(
        self,
        seed: int,
        sink: LogSink,
        timing: Mapping[str, Any] | None = None,
        steering: Steering | None = None,
        loop: VirtualLoop | None = None,
        redraw: random_streams.Redraw | None = None,
        epoch_unix_s: int = EPOCH_UNIX_S,
    ) -> None:
        """``loop``: one that runs already; its owner ends it, and :meth:`run` is not called. ``epoch_unix_s``: the Unix
        time of virtual time 0. ``redraw``: when the run
        begins to draw from another seed, if ever."""
        self.seed = seed
        self.streams = random_streams.Streams(seed, may_change=redraw is not None)
        self.sink = sink
        self.loop = loop or VirtualLoop()  # type: ignore[abstract]  # what it refuses is added by name
        self.loop.explain_stall = self._explain_stall
        self.loop.explain_failure = lambda owner, error: self._failure(owner, "a timer", error)
        self.loop.tell_resumed = self._resumed
        self.master = MasterClock(self.loop, epoch_unix_s)
        cores = (timing or {}).get("cores")
        self.cores = None if cores is None else Cores(self.loop, cores)
        """Absent: each actor works as fast as if it were alone."""
        self._fsync_time = distributions.parse((timing or {}).get("fsync", 0))
        self._fsync_streams: dict[tuple[str, int], Random] = {}
        """By actor and incarnation: of those that have written. A stream takes 2.5 KiB, and most actors never write."""
        if steering is not None:
            self.steer(steering)
        self._redrawing = Redrawing(self.loop, redraw, self.streams) if redraw is not None else None
        wires = SimWires(self.loop, self.streams, timing or {}, steering, self._redrawing)
        self.hits = Hits(lambda event: self._log(CHAOS, event))
        self.network = Network(wires.to, self._connection_lost, wires.keepalive_timeout_s, self.hits.strike)
        self.connect = self.network.connect
        """One for all actors."""
        self.network.partitions.keepalive_time_s = wires.keepalive_time_s
        stream = self.streams.stream
        self.handlers = Handlers(self.hits.strike, lambda fault, actor: stream("fault", fault, actor))
        self.faults = Faults(self.network, self.handlers, stream)
        self.skews = Skews()
        self.faults.add(DiskFaultKinds(self).begins)
        self.faults.add(ProcessFaults(self, self.skews).begins)
        self.ask_outside: Callable[[outside.Question], Awaitable[outside.Answer]] | None = None
        """Carries out what actors ask of processes outside; None: there is no outside."""
        self._specs: dict[str, ActorSpec] = {}
        self._envs: dict[str, SimEnv | Departed] = {}
        """The latest incarnation of each actor, in the order of their launch."""
        self._disks: dict[str, MemoryDisk] = {}
        """Disks of actors that are not running, for their next incarnation."""
        self._exited: dict[str, None] = {}
        """Actors that have ended themselves and are to be started again."""
        self._armed: dict[str, dict[str, list[asyncio.Future[None]]]] = {}
        """By actor: the steps at which it is to crash, and who waits for that."""
        self._driver_envs: dict[str, SimEnv] = {}
        self._ready_waiters: dict[str, asyncio.Future[None]] = {}
        self.clock = self.env(DRIVER).clock

    def steer(self, steering: Steering) -> None:
        """Have this steer messages: where it has holds, events let them go."""
        sink = self.sink
        steering.attach(self.master, self._log)
        if not steering.holds:
            return

        def see(time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
            sink(time_ns, actor, kind, data)
            if steering.keeps:
                steering.on_event(actor, kind, data)

        self.sink = see

    def fsync_time_of(self, name: str, incarnation: int) -> Callable[[], float] | None:
        """Draws the seconds that an fsync of that actor takes; None: they take no time."""
        if self._fsync_time.constant == 0:
            return None
        return functools.partial(self._draw_fsync_s, (name, incarnation))

    def _draw_fsync_s(self, of: tuple[str, int]) -> float:
        # During set-up the clock stands still: nothing would ever be durable.
        if not self.master.running:
            return 0.0
        stream = self._fsync_streams.get(of)
        if stream is None:
            stream = self._fsync_streams[of] = self.streams.stream("fsync", *of)
        return self._fsync_time.draw(stream)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        guards.install()
        return self.loop.run(main)

    def env(self, name: str) -> SimEnv:
        env = self._driver_envs.get(name)
        if env is None:
            if name in self._specs:
                raise ValueError(f"{name!r} is an actor")
            env = self._driver_envs[name] = SimEnv(self, name, 1, MemoryDisk())
            self.network.join(env.peer)
        return env

    # The life of actors

    async def launch(self, specs: Sequence[ActorSpec]) -> None:
        for spec in specs:
            if spec.name in self._driver_envs or (spec.name in self._specs and self._running(spec.name) is not None):
                raise ValueError(f"an actor named {spec.name!r} is running")
            self._specs[spec.name] = spec
        # All of them may have something to do in one instant: when they stop, say.
        self.loop.max_steps_per_instant = max(self.loop.max_steps_per_instant, STEPS_PER_ACTOR * len(self._specs))
        for number, spec in enumerate(specs, 1):
            if number % GC_ACTORS == 0:
                self.loop.collect_garbage()
            # One that was stopped leaves nothing but its name to the next.
            self._disks.pop(spec.name, None)
            before = self._envs.get(spec.name)
            self._start(spec, before.incarnation + 1 if before is not None else 1, MemoryDisk())
        for spec in specs:
            await self._wait_ready(spec.name)

    def spec_of(self, name: str) -> ActorSpec:
        """With which an actor was launched."""
        return self._specs[name]

    async def begin(self) -> None:
        self.loop.grows = False
        if self._redrawing is not None:
            self._redrawing.begin()
        self.master.begin()

    def _start(self, spec: ActorSpec, incarnation: int, disk: MemoryDisk) -> None:
        env = self._envs[spec.name] = SimEnv(self, spec.name, incarnation, disk)
        self._log(spec.name, ActorStarted(incarnation=incarnation))
        factory = resolve(spec.factory)
        try:
            actor: Actor = env.context.run(factory, env, spec.config)
        except Exception as error:
            raise self._failure(env, f"its factory {spec.factory}", error) from error
        except asyncio.CancelledError:
            if env.condition is not Condition.DEAD:
                raise
            return  # it has ended itself
        self.network.join(env.peer)
        env.main = env.spawn(actor.run(), "run")

    async def _wait_ready(self, name: str) -> None:
        if not self._envs[name].is_ready:
            waiter = self._ready_waiters.get(name)
            if waiter is None:
                waiter = self._ready_waiters[name] = self.loop.create_future()
            await waiter

    def _actor_ready(self, env: SimEnv) -> None:
        waiter = self._ready_waiters.pop(env.name, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def stop(self, name: str) -> None:
        env = self._running(name)
        if env is not None:
            await self._stop([env])

    async def shutdown(self) -> None:
        await self._stop([env for env in reversed(self._envs.values()) if isinstance(env, SimEnv)])

    async def _stop(self, envs: Sequence[SimEnv]) -> None:
        """An actor that crashes meanwhile is not waited for. If the caller is cancelled they end at once."""
        mine = [env for env in envs if env.stopped is None]
        for env in mine:
            env.stopped = self.loop.create_future()
            if env.condition is Condition.PAUSED:
                self._resume(env)
        try:
            for env in mine:
                if env.main is not None:
                    env.main.cancel()
            await self._wait_done({env: [env.main] for env in mine if env.main is not None})
            others = {}
            for env in mine:
                self.network.leave(env.peer)
                others[env] = env.live_tasks()
            for left in others.values():
                for task in left:
                    task.cancel()
            await self._wait_done(others)
        finally:
            for env in mine:
                if self._envs[env.name] is env:
                    self._end(env)
        for env in envs:
            if env.stopped is not None and not env.stopped.done():
                await asyncio.shield(env.stopped)

    def _end(self, env: SimEnv) -> None:
        """It has stopped."""
        self.network.leave(env.peer)
        self._log(env.name, ActorStopped())
        env.peer.gone = True
        self.loop.bury(env)
        self._disks[env.name] = env.disk.hand_over()
        self._depart(env)

    async def _wait_done(self, ending: Mapping[SimEnv, Sequence[asyncio.Task[Any]]]) -> None:
        """Until all tasks are done, or their actors have crashed, but no longer than an actor may take to stop."""
        pending = {task: None for tasks_of in ending.values() for task in tasks_of if not task.done()}
        if not pending:
            return
        over: asyncio.Future[None] = self.loop.create_future()

        def done(task: asyncio.Task[Any]) -> None:
            pending.pop(task, None)
            if not pending:
                tasks.wake(over)

        def crashed(tasks_of: Sequence[asyncio.Task[Any]], _: object) -> None:
            for task in tasks_of:
                done(task)

        for env, tasks_of in ending.items():
            for task in tasks_of:
                if task in pending:
                    task.add_done_callback(done)
            if env.stopped is not None:
                env.stopped.add_done_callback(functools.partial(crashed, tasks_of))
        timer = self.loop.call_later(STOP_TIMEOUT_S, tasks.wake, over)
        try:
            await over
        finally:
            timer.cancel()

    async def crash(self, name: str, step: str | None = None) -> None:
        env = self._running(name)
        if step is not None:
            await self._crash_at(name, step)
        elif env is not None:
            self._crash(env, ActorCrashed())
        else:
            self._exited.pop(name, None)

    def _crash(self, env: SimEnv, event: ActorCrashed) -> None:
        self._log(env.name, event)
        stream = self.streams.stream("disk", env.name, env.incarnation)
        self._disks[env.name] = crashes.crash(self.loop, self.network, env, env.peer, env.disk, stream)
        self._depart(env)

    def armed_steps(self, name: str) -> dict[str, list[asyncio.Future[None]]]:
        return self._armed.setdefault(name, {})

    async def _crash_at(self, name: str, step: str) -> None:
        armed = self.armed_steps(name)
        struck: asyncio.Future[None] = self.loop.create_future()
        armed.setdefault(step, []).append(struck)
        try:
            await struck
        finally:
            waiting = armed.get(step, [])
            if struck in waiting:
                waiting.remove(struck)
                if not waiting:
                    del armed[step]

    def _strike(self, env: SimEnv, step: str) -> NoReturn:
        """The actor has come to a step at which it is to crash. One that is dead only unwinds."""
        if env.condition is not Condition.DEAD:
            struck = env.crash_steps.pop(step, [])
            self._crash(env, ActorCrashed(step=step))
            for waiter in struck:
                tasks.wake(waiter)
        raise asyncio.CancelledError(f"{env.name} has crashed {step}")

    def crash_now(self, name: str, step: str) -> NoReturn:
        """For what the runtime itself does on behalf of the actor's code."""
        env = self._running(name)
        assert env is not None
        self._strike(env, step)

    def _exit(self, env: SimEnv, why: str) -> NoReturn:
        if env.condition is not Condition.DEAD:
            self._log(env.name, ActorExited(why=why))
            self._crash(env, ActorCrashed())
            self._exited[env.name] = None
            when_ns = self.clock.now_ns() + round(SUPERVISOR_DELAY_S * SECOND_NS)
            self.clock.call_at_ns(when_ns, self._start_again, env.name, env.incarnation)
        raise asyncio.CancelledError(f"{env.name} has ended: {why}")

    def _start_again(self, name: str, incarnation: int) -> None:
        env = self._envs[name]
        if name in self._exited and isinstance(env, Departed) and env.incarnation == incarnation:
            del self._exited[name]
            self._start(self._specs[name], incarnation + 1, self._disks.pop(name))

    async def restart(self, name: str, spec: ActorSpec | None = None) -> None:
        env = self._envs[name]
        if isinstance(env, SimEnv):
            raise ValueError(f"{name} is running")
        self._exited.pop(name, None)
        if spec is not None:
            self._specs[name] = spec
        self._start(self._specs[name], env.incarnation + 1, self._disks.pop(name))

    async def pause(self, name: str) -> None:
        self.pause_now(name)

    def pause_now(self, name: str) -> bool:
        env = self._running(name)
        if env is None or env.stopped is not None or env.condition is Condition.PAUSED:
            return False
        self.loop.pause(env)
        if self.cores is not None:
            self.cores.hold(env)
        self.network.pause(env.peer)
        return True

    async def resume(self, name: str) -> None:
        self.resume_now(name)

    def resume_now(self, name: str) -> None:
        env = self._running(name)
        if env is not None and env.condition is Condition.PAUSED:
            self._resume(env)

    def _resume(self, env: SimEnv) -> None:
        self.loop.resume(env)
        if self.cores is not None:
            self.cores.release(env)
        self.network.resume(env.peer)

    def _resumed(self, env: Owner, held: Held) -> None:
        waited = [self.loop.now_ns - since_ns for since_ns in held.since_ns]
        self._log(env.name, ActorResumed(waited=waited, done=held.done))

    def skew_now(self, name: str, skew: Skew, to_ns: Callable[[int], int]) -> None:
        env = self._running(name)
        if env is not None:
            env.use_skew(skew)
            origin_ns = self.master.origin_ns
            self.loop.move_timers(env, lambda when_ns: to_ns(when_ns - origin_ns) + origin_ns)

    def disk_of(self, name: str) -> MemoryDisk:
        """Disk of the incarnation that runs, or of the next one."""
        env = self._envs[name]
        return env.disk if isinstance(env, SimEnv) else self._disks[name]

    def put_disk(self, name: str, disk: MemoryDisk) -> None:
        """In the place of that of an actor that does not run."""
        self._disks[name].close()
        self._disks[name] = disk

    def _running(self, name: str) -> SimEnv | None:
        env = self._envs[name]
        return env if isinstance(env, SimEnv) else None

    def _depart(self, env: SimEnv) -> None:
        self.handlers.remove(env.name)
        if self.cores is not None:
            self.cores.drop(env)
        self._envs[env.name] = Departed(env.incarnation, env.is_ready)
        if env.stopped is not None:
            tasks.wake(env.stopped)

    # Faults

    def processes(self, pattern: str = "*") -> Sequence[str]:
        return ()

    async def inject(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        self.faults.begin(fault, what, parameters)

    async def partition(self, fault: str, a: Sequence[str], b: Sequence[str], one_way: bool = False) -> None:
        await self.inject(fault, "partition", {"between": [list(a), list(b)], "oneWay": one_way})

    async def heal(self, fault: str) -> int:
        self.faults.end(fault)
        return self.hits.of(fault)

    def _connection_lost(self, survivor: str, peer: str) -> None:
        self._log(survivor, ConnectionLost(peer=peer))

    # The end of a run

    async def run_until(
        self, deadline_ns: int, *, stop: asyncio.Event | None = None, until_idle: bool = False
    ) -> Ending:
        if not self.master.running:
            raise RuntimeError("call begin() first: until then the clock stands still")
        if stop is not None and stop.is_set():
            return "stopped"
        if deadline_ns <= self.master.now_ns():
            return "deadline"
        ending: asyncio.Future[Any] = self.loop.wait_idle() if until_idle else self.loop.create_future()

        def finish(how: Ending) -> None:
            if not ending.done():
                ending.set_result(how)

        deadline = self.clock.call_at_ns(deadline_ns, finish, "deadline", background=True)
        watcher: asyncio.Task[None] | None = None
        if stop is not None:
            watcher = self.loop.create_task(_after(stop, finish), name="driver: wait for stop")
        try:
            how: Ending = await ending
            return how
        finally:
            deadline.cancel()
            if watcher is not None:
                watcher.cancel()

    # Failures and logs

    def _log(self, actor: str, event: Event) -> None:
        self.sink(self.master.now_ns(), actor, event.KIND, event)

    def _failure(self, env: Owner, what: str, error: BaseException) -> errors.ActorFailed:
        incarnation = f" (incarnation {env.incarnation})" if isinstance(env, SimEnv) else ""
        text = f"{env.name}{incarnation} failed at {self.master.now_ns() / SECOND_NS:.9f} s:"
        return user_code.failed(f"{text} {what} ended with {type(error).__name__}: {error}", error)

    def _actor_failed(self, env: SimEnv, what: str, error: BaseException) -> None:
        failure = self._failure(env, what, error)
        failure.__cause__ = error
        trace = "".join(traceback.format_exception(error)).rstrip()
        with contextlib.suppress(OSError):  # perhaps it is the run log that cannot be written
            self._log(env.name, ActorFailed(error=f"{failure}\n\n{trace}"))
        self.loop.fail(failure)

    def _explain_stall(self) -> str:
        text = ""
        if not self.master.running:
            text += f"the clock stands at 0 until begin(); {self.master.waiting()} timers wait for it\n"
            unready = [name for name, env in self._envs.items() if not env.is_ready]
            if unready:
                text += f"not ready: {', '.join(unready[:10])}{' …' if len(unready) > 10 else ''}\n"
        return text


async def _after(event: asyncio.Event, finish: Callable[[Ending], None]) -> None:
    await event.wait()
    finish("stopped")
