"""What drives a run in real time, whether its actors share one process or live in cells of their own.

Role: the base of ``WallRuntime`` (:mod:`kemu.runtime.wall.runtime`) and ``RayRuntime``
(:mod:`kemu.runtime.ray.driver.runtime`). Both have a host for actors of this process, a clock, a failure that ends the
run, backups of disks, and paused actors; where the other actors are, and how faults reach them, is each one's own.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import contextvars
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kemu.runtime import loads, runtimes, tasks, user_code
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.faults import kinds
from kemu.runtime.host import backups, hosts, ticks, wall_clocks
from kemu.runtime.rpc.partitions import DEFAULT_KEEPALIVE_TIMEOUT_S
from kemu.runtime.runlog.events import ActorCrashed

T = TypeVar("T")

QUIET_S = 0.5
"""Real time without a decision after which a run may be called idle."""


class Loop(asyncio.SelectorEventLoop):
    """asyncio's, for very many short steps: it does not ask before each of them whether it is to be debugged, or has
    been closed, which is four calls of six."""

    get_debug = staticmethod(bool)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle


class Driver(abc.ABC):
    """Implements ``runtimes.Runtime``, but for what its subclasses add. One run."""

    idle_is_still = False
    place = ""
    """Where actors are, in messages: "on …"."""

    def __init__(
        self,
        *,
        directory: str | Path,
        speed: float,
        epoch_unix_s: int | None,
        timing: Mapping[str, Any] | None,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        """``directory``: for disks. ``speed``: virtual seconds in each real one. ``epoch_unix_s``: what virtual time 0
        is in timestamps; None: now. ``timing``: of the scenario; what counts here is ``keepaliveTime`` and
        ``keepaliveTimeout`` of the connections between actors, in virtual seconds. ``loop``: one that runs already;
        then :meth:`run` is not called, but :meth:`attach` and :meth:`detach`.
        """
        if speed <= 0:
            raise ValueError(f"speed must be positive: {speed}")
        self.speed = speed
        self.directory = Path(directory).resolve()
        self._epoch_unix_s = int(time.time()) if epoch_unix_s is None else epoch_unix_s
        self._keepalive_time_s = float((timing or {}).get("keepaliveTime", 0.0))
        self._keepalive_timeout_s = float((timing or {}).get("keepaliveTimeout", DEFAULT_KEEPALIVE_TIMEOUT_S))
        self._loop = loop or Loop()
        self._host = hosts.Host(self._loop, self._log, self._actor_failed)
        self.clock = wall_clocks.WallClock(self._host.clock, self._fail)
        self._specs: dict[str, ActorSpec] = {}
        """Specs of all actors ever launched, in that order."""
        self._failure: asyncio.Future[None] = self._loop.create_future()
        self._failure.add_done_callback(tasks.retrieve)
        self._ticks = ticks.Ticks(loads.DRIVER, self._host.clock, self._log)
        self._backups = backups.Backups(self.directory)
        self._paused: dict[str, list[str]] = {}
        """By fault, the actors that stand still."""
        self._closing: asyncio.Task[None] | None = None

    # Driving

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """See ``runtimes.Runtime``. No process that was started for the run outlives this call, however it ends."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                return runner.run(self._run(main))
        finally:
            # The orderly way has done this already, unless a second Ctrl-C cut it short.
            self._kill()

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
        """Drop all actors, and end all processes. Raises ActorFailed if an actor failed."""
        try:
            await self._close()
        finally:
            self._kill()
        if self._failure.done():
            self._failure.result()

    def env(self, name: str) -> hosts.Resident:
        return self._host.env(name)

    @property
    @abc.abstractmethod
    def _has_begun(self) -> bool:
        """Whether the clock runs, or is about to."""

    async def run_until(
        self, deadline_ns: int, *, stop: asyncio.Event | None = None, until_idle: bool = False
    ) -> runtimes.Ending:
        """See ``runtimes.Runtime``. Idle: for a while no actor decided anything, and only background timers are set."""
        if not self._has_begun:
            raise RuntimeError("call begin() first: until then the clock stands still")
        stop = stop or asyncio.Event()
        stopped = asyncio.create_task(stop.wait(), name="driver: wait for stop")
        self._is_busy_now()
        try:
            while True:
                if stop.is_set():
                    return "stopped"
                remaining_s = (deadline_ns - self.clock.now_ns()) / SECOND_NS / self.speed
                if remaining_s <= 0:
                    return "deadline"
                if until_idle and self._is_idle():
                    return "idle"
                await asyncio.wait([stopped], timeout=min(remaining_s, self._look(until_idle)))
        finally:
            stopped.cancel()

    @abc.abstractmethod
    def _is_busy_now(self) -> None:
        """What was before does not count as idle."""

    @abc.abstractmethod
    def _is_idle(self) -> bool: ...

    @abc.abstractmethod
    def _look(self, until_idle: bool) -> float:
        """While time passes: see to what has to be looked at. Returns in how many real seconds to look again."""

    async def _close(self) -> None:
        """Drop what still runs. Goes on when the caller is cancelled (an actor failed, Ctrl-C), and is waited for at
        the end of the run."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_once())
        await asyncio.shield(self._closing)

    @abc.abstractmethod
    async def _close_once(self) -> None: ...

    def _kill(self) -> None:  # noqa: B027 (one process: nothing to end)
        """End at once the processes that are still there."""

    # Events and failures

    @abc.abstractmethod
    def _log(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Events of actors in this process, and what the driver finds out about others."""

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    def _actor_failed(self, name: str, text: str) -> None:
        self._fail(user_code.from_text(text))

    def _crashed(self, name: str) -> None:
        self._log(self.clock.now_ns(), name, ActorCrashed.KIND, ActorCrashed())

    # The life of actors

    async def restart(self, name: str, spec: ActorSpec | None = None) -> None:
        if self._is_running(name):
            raise ValueError(f"{name} is running")
        found = self._specs[name] = spec or self._specs[name]
        await self._start_again(found)

    @abc.abstractmethod
    def _is_running(self, name: str) -> bool: ...

    @abc.abstractmethod
    async def _start_again(self, spec: ActorSpec) -> None:
        """A new incarnation. Does not wait for ready."""

    @abc.abstractmethod
    async def resume(self, name: str) -> None: ...

    # Faults

    async def inject(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        if kinds.KINDS[what].not_on_ray:
            raise ValueError(f"{what} is impossible {self.place}: {kinds.KINDS[what].not_on_ray}")
        if what == "pause":
            await self._pause_all(fault, parameters["actor"])
        elif what == "restore":
            self._take_backups(fault, parameters["actor"])
        else:
            await self._begin_fault(fault, what, parameters)

    async def _pause_all(self, fault: str, names: Sequence[str]) -> None:
        paused = self._paused[fault] = []
        for name in names:
            if await self._pause(name):
                paused.append(name)
                self._host.hits.strike(fault, name)

    @abc.abstractmethod
    async def _pause(self, name: str) -> bool:
        """False: it does not run, or stands still already."""

    def _take_backups(self, fault: str, names: Sequence[str]) -> None:
        self._backups.take(fault, names)

    @abc.abstractmethod
    async def _begin_fault(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None: ...

    async def partition(self, fault: str, a: Sequence[str], b: Sequence[str], one_way: bool = False) -> None:
        await self.inject(fault, "partition", {"between": [list(a), list(b)], "oneWay": one_way})

    async def heal(self, fault: str) -> int:
        if not self._backups.are_of(fault):
            for name in self._paused.pop(fault, ()):
                await self.resume(name)
            return await self._end_fault(fault)
        restored = self._backups.put_back(fault)
        for name in restored:
            self._host.hits.strike(fault, name)
        return len(restored)

    @abc.abstractmethod
    async def _end_fault(self, fault: str) -> int:
        """Returns how often it has struck. Raises ValueError for one that is not in force."""
