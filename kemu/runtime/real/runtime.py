"""Real programs and actors of this process in one run, on the wall clock.

A spec for which :class:`Programs` has a program becomes a process; every other one an actor of the host, as on
``wall``. Dates are those of the machine: virtual time 0 is a whole second of Unix time. What programs have done is
heard late, from their logs; the run log is in the order of the times at which it happened (:mod:`.merging`).
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from kemu.errors import ActorFailed, KemuError
from kemu.runtime import runtimes
from kemu.runtime.env import SECOND_NS, ActorSpec, LogSink
from kemu.runtime.host import links, wall_clocks
from kemu.runtime.real.merging import Merger
from kemu.runtime.real.programs import Process, Program
from kemu.runtime.runlog.events import ActorExited, ActorStarted, ActorStopped, Event, ProcessUsed
from kemu.runtime.wall.runtime import WallRuntime

QUIET_S = 15.0
"""Real time without a decision after which a run may be called idle: kube-scheduler waits up to 10 s before it tries a
pod again."""
_FLUSH_EVERY_S = 0.1
ON_LINKS = ("partition", "delay", "bandwidth", "reset", "halfOpen")
"""Faults that TCP proxies between programs carry out."""
ON_PROCESSES = ("crash", "terminate", "pause", "kill", "stop")
"""Faults that signals carry out."""

Hear = Callable[[int, str, Event], None]
"""Takes what a program did: Unix time in ns, actor, event."""
Link = Callable[[str, str, str], Any]
"""Awaitable address at which one program reaches another one: caller, called, where that listens."""


class Programs(Protocol):
    """Which actors of a run are programs, and how what they do is heard."""

    def open(self, hear: Hear, link: Link) -> None:
        """The run begins."""
        ...

    async def program(self, spec: ActorSpec) -> Program | None:
        """The program of an actor; None: it is none. Raises KemuError."""
        ...

    async def actor(self, spec: ActorSpec) -> ActorSpec | None:
        """The actor of this process for one that is no program; None: somebody else does its work. Raises
        KemuError."""
        ...

    def stand_in(self, spec: ActorSpec) -> ActorSpec | None:
        """An actor of the same name for clients in this process, which dial a program by its name."""
        ...

    async def started(self, spec: ActorSpec) -> None:
        """Its program is ready for the first time."""
        ...

    async def stopping(self, spec: ActorSpec) -> None:
        """Its program is about to be stopped: hear what it says last."""
        ...

    async def close(self) -> None:
        """All programs have ended: hear what is left to hear."""
        ...

    @property
    def left(self) -> Sequence[str]:
        """What could not be removed at the end."""
        ...


class RealRuntime(WallRuntime):
    """Implements ``runtimes.Runtime``. One run."""

    place = "with real programs"

    def __init__(
        self,
        seed: int,
        sink: LogSink,
        *,
        directory: str | Path,
        programs: Programs,
        on_date: Callable[[int], None] = lambda unix_s: None,
        never_idle: bool = False,
        timing: Mapping[str, Any] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """``on_date``: told the Unix time of virtual time 0, in seconds. ``never_idle``: programs may have timers that
        do not show, so only the deadline or ``stop`` ends the run."""
        self._merger = Merger(sink)
        super().__init__(seed, self._merger.add, directory=directory, timing=timing, loop=loop)
        self._programs = programs
        self._told_date = on_date
        self._never_idle = never_idle
        self._processes: dict[str, Process] = {}
        """By actor; those that run, and those that have ended and are not started again yet."""
        self._used_ns: dict[str, int] = {}
        """What processes had used when the clock started."""
        self._watching: dict[asyncio.Task[None], None] = {}
        self._links = links.Links(1.0, self._struck_link, self._host.stream)
        self._flushing: asyncio.TimerHandle | None = None
        programs.open(self.hear, self._links.address)

    # Driving

    async def begin(self) -> None:
        second = wall_clocks.wall_ns() // SECOND_NS + 1
        await asyncio.sleep(second - wall_clocks.wall_ns() / SECOND_NS)
        self._epoch_unix_s = second
        self._host.clock.configure(epoch_unix_ns=second * SECOND_NS, speed=1.0, epoch_unix_s=second)
        self._told_date(second)
        self._used_ns = {name: process.cpu_ns for name, process in self._processes.items()}
        self._ticks.begin()
        self._flush()

    def _flush(self) -> None:
        self._merger.flush(self._host.clock.now_ns())
        self._flushing = self._loop.call_later(_FLUSH_EVERY_S, self._flush)

    def hear(self, unix_ns: int, actor: str, event: Event) -> None:
        """What a program did; before the clock starts, at 0. Its ``start`` is Unix time, too."""
        self._log(self.time_of(unix_ns), actor, event.KIND, event.by_clock(self.time_of))

    def time_of(self, unix_ns: int) -> int:
        """Virtual time (ns) of a date."""
        return 0 if self._host.clock.stands else max(0, unix_ns - self._epoch_unix_s * SECOND_NS)

    def _is_idle(self) -> bool:
        if self._never_idle:
            return False
        return super()._is_idle() and time.monotonic() - self._busy_at >= QUIET_S

    async def shutdown(self) -> None:
        for name in reversed(self._specs):
            await self.stop(name)
        await self._close()

    async def _close_once(self) -> None:
        ending = [*self._tasks, *self._watching]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._kill()
        for process in self._processes.values():
            await process.gone()
        await self._links.close()
        await self._programs.close()
        if self._flushing is not None:
            self._flushing.cancel()
        await super()._close_once()
        self._merger.close()

    @property
    def left(self) -> Sequence[str]:
        """What could not be removed at the end."""
        return self._programs.left

    def _kill(self) -> None:
        for process in self._processes.values():
            process.send(signal.SIGKILL)

    # The life of programs

    async def launch(self, specs: Sequence[ActorSpec]) -> None:
        clock = self._host.clock
        if clock.stands:
            # Until virtual time is 0 the clock shows when the stage began.
            clock.configure(epoch_unix_ns=0, speed=1.0, epoch_unix_s=wall_clocks.wall_ns() // SECOND_NS)
        found = [(spec, await self._programs.program(spec)) for spec in specs]
        programs = [(spec, program) for spec, program in found if program is not None]
        for spec, _ in programs:
            self._specs[spec.name] = spec
        for spec, program in programs:
            # One after the other: the first of several candidates leads, as in every other runtime.
            await self._run_program(spec, self._enter(spec, program))
            await self._programs.started(spec)
        others = [await self._programs.actor(spec) for spec, program in found if program is None]
        await super().launch([spec for spec in others if spec is not None])

    def _enter(self, spec: ActorSpec, program: Program) -> Process:
        """A new life; from now on it counts as running."""
        self._enlist(spec.name)
        process = self._processes[spec.name] = Process(program)
        return process

    async def _run_program(self, spec: ActorSpec, process: Process) -> None:
        """Raises ActorFailed."""
        stand_in = self._programs.stand_in(spec)
        if stand_in is None:  # one says itself that it has started
            started = ActorStarted(incarnation=self._host.addresses[spec.name][1])
            self._log(self.clock.now_ns(), spec.name, started.KIND, started)
        try:
            await process.start()
        except KemuError as error:
            raise ActorFailed(f"{spec.name}: {error}") from None
        if stand_in is not None:
            await self._host.start([stand_in])
        task = self._loop.create_task(self._watch(spec.name, process), name=f"watching {spec.name}")
        self._watching[task] = None
        task.add_done_callback(lambda done: self._watching.pop(done, None))

    async def _watch(self, name: str, process: Process) -> None:
        code = await asyncio.shield(process.ended)
        if process.is_meant:
            return
        why = f"its process ended with {code}"
        self._log(self.clock.now_ns(), name, ActorExited.KIND, ActorExited(why=why))
        if self._host.clock.stands:
            self._fail(ActorFailed(f"{name}: {why}: {process.last_words()}"))
            return
        self._has_crashed(name)
        self._exiting[name] = self._loop.call_later(runtimes.SUPERVISOR_DELAY_S, self._supervise, name)

    def _has_crashed(self, name: str) -> None:
        """Its stand-in goes with it: clients in this process lose their connections, too."""
        if name in self._host.residents:
            self._host.crash(name)
        else:
            self._crashed(name)

    def _start(self, spec: ActorSpec) -> None:
        if spec.name not in self._processes:
            super()._start(spec)
            return
        process = self._enter(spec, self._processes[spec.name].program)
        task = self._loop.create_task(self._run_program(spec, process), name=f"starting {spec.name}")
        self._tasks[task] = None
        task.add_done_callback(self._started)

    def _program_of(self, name: str) -> Process | None:
        """Its process, if it runs."""
        process = self._processes.get(name)
        return process if process is not None and not process.ended.done() else None

    def _is_running(self, name: str) -> bool:
        return self._program_of(name) is not None if name in self._processes else super()._is_running(name)

    async def stop(self, name: str) -> None:
        if name in self._processes:
            self._forget_exit(name)
            if self._host.residents.get(name) is not None:
                await self._host.stop(name)
            process = self._program_of(name)
            if process is not None:
                used = ProcessUsed(cpu=process.cpu_ns - self._used_ns.pop(name, 0))
                self._log(self.clock.now_ns(), name, used.KIND, used)
                await self._programs.stopping(self._specs[name])
                await process.stop()
                self._log(self.clock.now_ns(), name, ActorStopped.KIND, ActorStopped())
        else:
            await super().stop(name)

    async def crash(self, name: str, step: str | None = None) -> None:
        if name not in self._processes:
            await super().crash(name, step)
            return
        process = self._program_of(name)
        if process is None:
            self._forget_exit(name)
            return
        process.send(signal.SIGKILL)
        self._has_crashed(name)
        await process.ended

    async def _pause(self, name: str) -> bool:
        if name not in self._processes:
            return await super()._pause(name)
        process = self._program_of(name)
        if process is not None:
            process.send(signal.SIGSTOP)
        return process is not None

    async def resume(self, name: str) -> None:
        process = self._program_of(name)
        if process is not None:
            process.send(signal.SIGCONT)
        else:
            await super().resume(name)

    # Faults

    async def _begin_fault(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        if what == "terminate":
            # It may hand over what it leads; a supervisor starts it again, as it does with actors.
            for name in parameters["actor"]:
                if (process := self._program_of(name)) is not None:
                    self._host.hits.strike(fault, name)
                    process.send(signal.SIGTERM, is_meant=False)
            parameters = {**parameters, "actor": [one for one in parameters["actor"] if one not in self._processes]}
        if what in ON_LINKS and self._concerns_links(parameters):
            self._links.begin(fault, what, parameters, lambda name: name)
        await super()._begin_fault(fault, what, parameters)

    def _concerns_links(self, parameters: Mapping[str, Any]) -> bool:
        one, other = parameters["between"] if "between" in parameters else (parameters["from"], parameters["to"])
        return any(a in self._processes and b in self._processes and a != b for a in one for b in other)

    async def _end_fault(self, fault: str) -> int:
        if self._links.are_of(fault):
            self._links.end(fault)
        return await super()._end_fault(fault)

    def _struck_link(self, fault: str, source: str, target: str) -> None:
        self._host.hits.strike(fault, target)
