"""All actors in one process, on the wall clock: the runtime of ``kemu up``, and of runs that need neither virtual time
nor processes.

One :class:`kemu.runtime.host.hosts.Host` holds all actors, with the clock, the disks, the network in memory and the
faults of a cell on Ray; Ray itself is not imported. What is done here is what the driver does there: it starts actors
and starts them again, carries out faults, and says when a run is over. Events go straight to the sink, in the order in
which they happen. Neighbours: ``standstills`` pauses actors.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kemu.runtime import loads, runtimes, tasks, user_code
from kemu.runtime.env import SECOND_NS, ActorSpec, LogSink
from kemu.runtime.faults import kinds
from kemu.runtime.host import hosts, ticks, wall_clocks
from kemu.runtime.ray.driver import backups
from kemu.runtime.rpc.partitions import DEFAULT_KEEPALIVE_TIMEOUT_S
from kemu.runtime.runlog.events import ActorCrashed
from kemu.runtime.wall.standstills import Standstills

T = TypeVar("T")

QUIET_S = 0.5
"""Real time without a decision after which a run may be called idle."""

_LOOK_EVERY_S = 0.05
"""Real time; how often to ask whether the run is idle."""


class WallRuntime:
    """Implements ``runtimes.Runtime``. One run."""

    idle_is_still = False

    def __init__(
        self,
        seed: int,
        sink: LogSink,
        *,
        directory: str | Path,
        speed: float = 1.0,
        epoch_unix_s: int | None = None,
        timing: Mapping[str, Any] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """``directory``: for disks. ``speed``: virtual seconds in each real one. ``epoch_unix_s``: what virtual time 0
        is in timestamps; None: now. ``timing``: of the scenario; what counts here is ``keepaliveTime`` and
        ``keepaliveTimeout`` of the connections between actors. ``loop``: one that runs already; then :meth:`run` is not
        called, but :meth:`attach` and :meth:`detach`.
        """
        if speed <= 0:
            raise ValueError(f"speed must be positive: {speed}")
        self.speed = speed
        self._sink = sink
        self._loop = loop or asyncio.new_event_loop()
        self._host = hosts.Host(self._loop, self._log, self._actor_failed)
        self._host.on_strike = self._struck
        self._host.on_exit = self._exited
        self._host.configure(
            seed=seed,
            directory=Path(directory).resolve(),
            addresses={},
            keepalive_time_s=float((timing or {}).get("keepaliveTime", 0.0)),
            keepalive_timeout_s=float((timing or {}).get("keepaliveTimeout", DEFAULT_KEEPALIVE_TIMEOUT_S)),
        )
        self._epoch_unix_s = int(time.time()) if epoch_unix_s is None else epoch_unix_s
        self._host.clock.configure(epoch_unix_ns=0, speed=speed, epoch_unix_s=self._epoch_unix_s)
        self.clock = wall_clocks.WallClock(self._host.clock, self._fail)
        self._specs: dict[str, ActorSpec] = {}
        """Of all actors ever launched, in that order."""
        self._failure: asyncio.Future[None] = self._loop.create_future()
        self._failure.add_done_callback(tasks.retrieve)
        self._ticks = ticks.Ticks(loads.DRIVER, self._host.clock, self._log)
        self._backups = backups.Backups(self._host.directory)
        self._standstills = Standstills(self._host)
        self._paused: dict[str, list[str]] = {}
        """By fault, the actors that stand still."""
        self._in_force: dict[str, None] = {}
        """Faults that last."""
        self._armed: dict[tuple[str, str], list[asyncio.Future[None]]] = {}
        """By actor and step: who waits for a crash."""
        self._exiting: dict[str, asyncio.TimerHandle] = {}
        """Actors that have ended themselves and are to be started again."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._busy_at = time.monotonic()
        """When an actor last decided something, or had a timer that keeps the run alive; real (monotonic) time."""
        self._closing: asyncio.Task[None] | None = None

    # Driving

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            return runner.run(self._run(main))

    async def _run(self, main: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(main, name="main")
        either: list[asyncio.Future[Any]] = [task, self._failure]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
            result = task.result()
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
            await self._close()
        if self._failure.done():
            self._failure.result()  # an actor failed while it was stopped
        return result

    def attach(self, task: asyncio.Task[Any]) -> None:
        """On a loop that runs already: cancel this task when an actor fails; :meth:`detach` then raises why."""

        def failed(failure: asyncio.Future[None]) -> None:
            if not failure.cancelled() and failure.exception() is not None:
                task.cancel()

        self._failure.add_done_callback(failed)

    async def detach(self) -> None:
        """Drop all actors. Raises ActorFailed if one of them failed."""
        await self._close()
        if self._failure.done():
            self._failure.result()

    def env(self, name: str) -> hosts.Resident:
        return self._host.env(name)

    async def begin(self) -> None:
        if not self._host.clock.stands:
            raise RuntimeError("the clock runs already")
        now_ns = wall_clocks.wall_ns()
        self._host.clock.configure(epoch_unix_ns=now_ns, speed=self.speed, epoch_unix_s=self._epoch_unix_s)
        self._ticks.begin()

    async def run_until(
        self, deadline_ns: int, *, stop: asyncio.Event | None = None, until_idle: bool = False
    ) -> runtimes.Ending:
        """See ``runtimes.Runtime``. Idle: for a while nobody decided anything, and only background timers are set."""
        if self._host.clock.stands:
            raise RuntimeError("call begin() first: until then the clock stands still")
        stop = stop or asyncio.Event()
        stopped = asyncio.create_task(stop.wait(), name="driver: wait for stop")
        self._busy_at = time.monotonic()
        try:
            while True:
                if stop.is_set():
                    return "stopped"
                remaining_s = (deadline_ns - self.clock.now_ns()) / SECOND_NS / self.speed
                if remaining_s <= 0:
                    return "deadline"
                if until_idle and self._is_idle():
                    return "idle"
                # A day ahead the loop's timers may be far too large a number: nobody lives that long.
                await asyncio.wait([stopped], timeout=min(remaining_s, _LOOK_EVERY_S if until_idle else 3600.0))
        finally:
            stopped.cancel()

    def _is_idle(self) -> bool:
        now = time.monotonic()
        if self._host.pending or self._exiting or not self._host.clock.begun:
            self._busy_at = now
        if now - self._busy_at < QUIET_S:
            return False
        return all(one.is_ready.done() for name, one in self._host.residents.items() if name in self._specs)

    async def shutdown(self) -> None:
        for name in reversed(self._specs):
            await self.stop(name)
        await self._close()

    async def _close(self) -> None:
        """Drop what still runs. Goes on when the caller is cancelled (an actor failed, Ctrl-C)."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_once())
        await asyncio.shield(self._closing)

    async def _close_once(self) -> None:
        self._ticks.end()
        for handle in self._exiting.values():
            handle.cancel()
        for task in list(self._tasks):
            task.cancel()
        for resident in list(self._host.residents.values()):
            self._standstills.end(resident)
        await self._host.close()
        self._backups.end()

    # Events and failures

    def _log(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._sink(time_ns, actor, kind, data)
        if not kind.startswith(runtimes.HOUSEKEEPING):
            self._busy_at = time.monotonic()

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    def _actor_failed(self, name: str, text: str) -> None:
        self._fail(user_code.from_text(text))

    # The life of actors

    async def launch(self, specs: Sequence[ActorSpec]) -> None:
        for spec in specs:
            if spec.name in self._host.residents:
                raise ValueError(f"an actor named {spec.name!r} is running")
            self._specs[spec.name] = spec
            self._enlist(spec.name)
        await self._host.start(specs)

    def _enlist(self, name: str) -> None:
        """It is about to start as a new incarnation."""
        incarnations = self._host.addresses
        incarnations[name] = ("", incarnations.get(name, ("", 0))[1] + 1)

    async def stop(self, name: str) -> None:
        self._forget_exit(name)
        resident = self._running(name)
        if resident is not None:
            self._standstills.end(resident)
            await self._host.stop(name)

    async def crash(self, name: str, step: str | None = None) -> None:
        if step is not None:
            await self._crash_at(name, step)
            return
        resident = self._running(name)
        if resident is None:
            self._forget_exit(name)
            return
        self._host.crash(name)
        self._standstills.end(resident)

    async def _crash_at(self, name: str, step: str) -> None:
        fault = f"{name} {step}"
        waiting = self._armed.setdefault((name, step), [])
        struck = self._loop.create_future()
        waiting.append(struck)
        self._host.arm(fault, name, step)
        try:
            await struck
        finally:
            if not struck.done() or struck.cancelled():
                waiting.remove(struck)
                if not waiting:
                    del self._armed[name, step]
                    self._host.heal(fault)

    def _struck(self, name: str) -> None:
        """It has come to a step at which it was to crash, and has logged that."""
        self._host.crash(name)
        for key in [key for key in self._armed if key[0] == name and key[1] not in self._host.armed_steps(name)]:
            for waiter in self._armed.pop(key):
                tasks.wake(waiter)

    def _exited(self, name: str) -> None:
        """An actor has ended itself: a supervisor starts it again."""
        self._log(self._host.clock.now_ns(), name, ActorCrashed.KIND, ActorCrashed())
        delay_s = runtimes.SUPERVISOR_DELAY_S / self.speed
        self._exiting[name] = self._loop.call_later(delay_s, self._start_again, name)

    def _start_again(self, name: str) -> None:
        del self._exiting[name]
        self._start(self._specs[name])

    def _forget_exit(self, name: str) -> None:
        if name in self._exiting:
            self._exiting.pop(name).cancel()

    async def restart(self, name: str, spec: ActorSpec | None = None) -> None:
        if self._running(name) is not None:
            raise ValueError(f"{name} is running")
        self._forget_exit(name)
        self._specs[name] = spec or self._specs[name]
        self._start(self._specs[name])

    def _start(self, spec: ActorSpec) -> None:
        self._enlist(spec.name)
        task = self._loop.create_task(self._host.start([spec]), name=f"starting {spec.name}")
        self._tasks[task] = None
        task.add_done_callback(self._started)

    def _started(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _running(self, name: str) -> hosts.Resident | None:
        """Raises KeyError for one that was never launched."""
        self._specs[name]
        return self._host.residents.get(name)

    async def pause(self, name: str) -> None:
        self._pause(name)

    def _pause(self, name: str) -> bool:
        resident = self._running(name)
        return resident is not None and self._standstills.begin(resident)

    async def resume(self, name: str) -> None:
        resident = self._running(name)
        if resident is not None:
            self._standstills.end(resident)

    # Faults

    def processes(self, pattern: str = "*") -> Sequence[str]:
        """There is one process; what happens to a cell happens to its actors, as in virtual time."""
        return ()

    async def inject(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        kind = kinds.KINDS[what]
        if kind.not_on_ray:
            raise ValueError(f"{what} is impossible on the wall clock: {kind.not_on_ray}")
        if fault in self._in_force:
            raise ValueError(f"a fault {fault!r} is in force already")
        if what == "pause":
            paused = self._paused[fault] = [name for name in parameters["actor"] if self._pause(name)]
            for name in paused:
                self._host.hits.strike(fault, name)
        elif what == "restore":
            self._backups.take(fault, parameters["actor"])
        else:
            self._host.inject(fault, what, parameters)
        if kind.lasts:
            self._in_force[fault] = None

    async def partition(self, fault: str, a: Sequence[str], b: Sequence[str], one_way: bool = False) -> None:
        await self.inject(fault, "partition", {"between": [list(a), list(b)], "oneWay": one_way})

    async def heal(self, fault: str) -> int:
        if self._backups.are_of(fault):
            self._in_force.pop(fault, None)
            restored = self._backups.put_back(fault)
            for name in restored:
                self._host.hits.strike(fault, name)
            return len(restored)
        if fault not in self._in_force:
            raise ValueError(f"no fault {fault!r} is in force")
        del self._in_force[fault]
        for name in self._paused.pop(fault, ()):
            await self.resume(name)
        return self._host.heal(fault)
