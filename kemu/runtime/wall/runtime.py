"""All actors in one process, on the wall clock: the runtime of ``kemu up``, and of runs that need neither virtual time
nor processes.

One :class:`kemu.runtime.host.hosts.Host` holds all actors, with the clock, the disks, the network in memory and the
faults of a cell on Ray; Ray itself is not imported. What is done here is what the driver does there: it starts actors
and starts them again, carries out faults, and says when a run is over. Events go straight to the sink, in the order in
which they happen. Neighbours: ``standstills`` pauses actors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.runtime import runtimes, tasks
from kemu.runtime.env import SECOND_NS, ActorSpec, LogSink
from kemu.runtime.faults import kinds
from kemu.runtime.host import hosts, wall_clocks
from kemu.runtime.host.drivers import QUIET_S, Driver
from kemu.runtime.wall.standstills import Standstills

_LOOK_EVERY_S = 0.05
"""Real time; how often to ask whether the run is idle."""


class WallRuntime(Driver):
    """Implements ``runtimes.Runtime``. One run."""

    place = "on the wall clock"

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
        on_date: Callable[[int], None] | None = None,
    ) -> None:
        """See :class:`kemu.runtime.host.drivers.Driver`. ``on_date`` is told the Unix second that virtual time 0 turns
        out to be: set-up takes its time, and clients compare what objects say with their own clocks. Without it, and
        with ``epoch_unix_s``, that stays."""
        self._sink = sink
        self._on_date = on_date or (_nothing if epoch_unix_s is None else None)
        super().__init__(directory=directory, speed=speed, epoch_unix_s=epoch_unix_s, timing=timing, loop=loop)
        self._host.on_strike = self._struck
        self._host.on_exit = self._exited
        self._host.configure(
            seed=seed,
            directory=self.directory,
            addresses={},
            keepalive_time_s=self._keepalive_time_s,
            keepalive_timeout_s=self._keepalive_timeout_s,
        )
        self._host.clock.configure(epoch_unix_ns=0, speed=speed, epoch_unix_s=self._epoch_unix_s)
        self._standstills = Standstills(self._host)
        self._in_force: dict[str, None] = {}
        """Faults that last."""
        self._armed: dict[tuple[str, str], list[asyncio.Future[None]]] = {}
        """By actor and step: who waits for a crash."""
        self._exiting: dict[str, asyncio.TimerHandle] = {}
        """Actors that have ended themselves and are to be started again."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._busy_at = time.monotonic()
        """When an actor last decided something, or had a timer that keeps the run alive; real (monotonic) time."""

    # Driving

    async def begin(self) -> None:
        if not self._host.clock.stands:
            raise RuntimeError("the clock runs already")
        now_ns = wall_clocks.wall_ns()
        if self._on_date is not None:
            second = now_ns // SECOND_NS
            if self.speed == 1.0:
                now_ns = second * SECOND_NS  # so that both clocks agree to the nanosecond
            self._epoch_unix_s = second
            self._on_date(second)
        self._host.clock.configure(epoch_unix_ns=now_ns, speed=self.speed, epoch_unix_s=self._epoch_unix_s)
        self._ticks.begin()

    @property
    def _has_begun(self) -> bool:
        return not self._host.clock.stands

    def _is_busy_now(self) -> None:
        self._busy_at = time.monotonic()

    def _look(self, until_idle: bool) -> float:
        # A day ahead the loop's timers may be far too large a number.
        return _LOOK_EVERY_S if until_idle else 3600.0

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
        self._crashed(name)
        delay_s = runtimes.SUPERVISOR_DELAY_S / self.speed
        self._exiting[name] = self._loop.call_later(delay_s, self._supervise, name)

    def _supervise(self, name: str) -> None:
        del self._exiting[name]
        self._start(self._specs[name])

    def _forget_exit(self, name: str) -> None:
        if name in self._exiting:
            self._exiting.pop(name).cancel()

    def _is_running(self, name: str) -> bool:
        return self._running(name) is not None

    async def _start_again(self, spec: ActorSpec) -> None:
        self._forget_exit(spec.name)
        self._start(spec)

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
        await self._pause(name)

    async def _pause(self, name: str) -> bool:
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
        if fault in self._in_force:
            raise ValueError(f"a fault {fault!r} is in force already")
        await super().inject(fault, what, parameters)
        if kinds.KINDS[what].lasts:
            self._in_force[fault] = None

    async def _begin_fault(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        self._host.inject(fault, what, parameters)

    async def heal(self, fault: str) -> int:
        if fault not in self._in_force:
            raise ValueError(f"no fault {fault!r} is in force")
        del self._in_force[fault]
        return await super().heal(fault)

    async def _end_fault(self, fault: str) -> int:
        return self._host.heal(fault)


def _nothing(second: int) -> None:
    """Nobody keeps the date."""
