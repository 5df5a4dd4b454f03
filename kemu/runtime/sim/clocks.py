"""Virtual time as actors see it. Neighbours: ``loops`` advances time, ``env`` says what a clock is."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

from kemu.runtime import tasks
from kemu.runtime.env import EPOCH_UNIX_S, SECOND_NS
from kemu.runtime.sim.agendas import LoopTimer
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.skews import Skew


class MasterClock:
    """The clock of a run. It stands at 0 until ``begin()``, while the loop's own time passes."""

    __slots__ = ("_early", "_started", "epoch_unix_ns", "loop", "origin_ns", "running")

    def __init__(self, loop: VirtualLoop, epoch_unix_s: int = EPOCH_UNIX_S) -> None:
        self.loop = loop
        self.epoch_unix_ns = epoch_unix_s * SECOND_NS
        """Unix time of virtual time 0."""
        self.running = False
        self.origin_ns = 0
        """The loop's time at which the run began."""
        self._early: list[EarlyTimer] = []
        self._started: list[asyncio.Future[None]] = []

    def now_ns(self) -> int:
        return self.loop.now_ns - self.origin_ns if self.running else 0

    def begin(self) -> None:
        if self.running:
            raise RuntimeError("the clock runs already")
        self.origin_ns = self.loop.now_ns
        self.running = True
        for timer in self._early:
            timer.arm()
        self._early.clear()
        for waiter in self._started:
            if not waiter.done():
                waiter.set_result(None)
        self._started.clear()

    async def started(self) -> None:
        if not self.running:
            waiter: asyncio.Future[None] = self.loop.create_future()
            self._started.append(waiter)
            await waiter

    def call_at_ns(
        self,
        when_ns: int,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context,
        background: bool,
    ) -> LoopTimer | EarlyTimer:
        if self.running or when_ns <= 0:
            return self.loop.set_timer(when_ns + self.origin_ns, callback, args, context, background)
        timer = EarlyTimer(self, when_ns, callback, args, context, background)
        self._early.append(timer)
        return timer

    def waiting(self) -> int:
        """How many timers wait for the clock to start."""
        return sum(not timer.cancelled for timer in self._early)


class EarlyTimer:
    """A timer that was set before the clock started."""

    __slots__ = ("_arguments", "_master", "_timer", "cancelled")

    def __init__(self, master: MasterClock, *arguments: Any) -> None:
        self._master = master
        self._arguments = arguments
        self._timer: LoopTimer | EarlyTimer | None = None
        self.cancelled = False

    def arm(self) -> None:
        if not self.cancelled:
            self._timer = self._master.call_at_ns(*self._arguments)

    def cancel(self) -> None:
        self.cancelled = True
        if self._timer is not None:
            self._timer.cancel()


class VirtualClock:
    """``env.clock``. Its timers belong to one actor and die with it."""

    __slots__ = ("_context", "_master", "_skew")

    def __init__(self, master: MasterClock, context: contextvars.Context) -> None:
        self._master = master
        self._context = context
        self._skew: Skew | None = None
        """Skew of a :class:`SkewedClock`."""

    def use(self, skew: Skew) -> None:
        """The clock is wrong from now on, as this says."""
        if self._skew is None:
            self._skew = skew
            # Actors hold this very object; that its class changes costs nothing while clocks are right.
            self.__class__ = SkewedClock  # type: ignore[assignment]

    @property
    def epoch_unix_s(self) -> int:
        return self._master.epoch_unix_ns // SECOND_NS

    def now_ns(self) -> int:
        master = self._master
        return master.loop.now_ns - master.origin_ns if master.running else 0

    def unix_ns(self) -> int:
        master = self._master
        return master.epoch_unix_ns + (master.loop.now_ns - master.origin_ns if master.running else 0)

    @property
    def unix_offset_ns(self) -> int:
        return self._master.epoch_unix_ns

    async def started(self) -> None:
        await self._master.started()

    def sleep(self, seconds: float, *, background: bool = False) -> Coroutine[Any, Any, None]:
        master = self._master
        now_ns = master.loop.now_ns - master.origin_ns if master.running else 0
        return self.sleep_until_ns(now_ns + round(seconds * SECOND_NS), background=background)

    async def sleep_until_ns(self, when_ns: int, *, background: bool = False) -> None:
        master = self._master
        loop = master.loop
        waiter: asyncio.Future[None] = loop.create_future()
        timer: LoopTimer | EarlyTimer
        if master.running:  # MasterClock.call_at_ns, inlined
            timer = loop.set_timer(when_ns + master.origin_ns, tasks.wake, (waiter,), self._context, background)
        else:
            timer = master.call_at_ns(when_ns, tasks.wake, (waiter,), self._context, background)
        try:
            await waiter
        except asyncio.CancelledError:
            timer.cancel()
            raise

    async def pause(self, seconds: float) -> None:
        await self.sleep(seconds)

    def call_at_ns(
        self, when_ns: int, callback: Callable[..., object], *args: object, background: bool = False
    ) -> LoopTimer | EarlyTimer:
        return self._master.call_at_ns(when_ns, callback, args, self._context, background)


class SkewedClock(VirtualClock):
    """The clock of an actor whose machine has, or had, a wrong one."""

    __slots__ = ()

    def now_ns(self) -> int:
        assert self._skew is not None
        return self._skew.own_ns(self._master.now_ns())

    def unix_ns(self) -> int:
        return self.unix_offset_ns + self.now_ns()

    @property
    def unix_offset_ns(self) -> int:
        assert self._skew is not None
        return self._master.epoch_unix_ns + self._skew.wall_ahead_ns

    def sleep(self, seconds: float, *, background: bool = False) -> Coroutine[Any, Any, None]:
        return self.sleep_until_ns(self.now_ns() + round(seconds * SECOND_NS), background=background)

    async def sleep_until_ns(self, when_ns: int, *, background: bool = False) -> None:
        assert self._skew is not None
        await super().sleep_until_ns(self._skew.true_ns(when_ns), background=background)

    def call_at_ns(
        self, when_ns: int, callback: Callable[..., object], *args: object, background: bool = False
    ) -> LoopTimer | EarlyTimer:
        assert self._skew is not None
        return super().call_at_ns(self._skew.true_ns(when_ns), callback, *args, background=background)
