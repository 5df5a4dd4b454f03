"""The clock of a cell: wall time, dilated, and standing at 0 until the run begins.

All cells of a run are told the same speed and the same instant at which virtual time is 0, so their clocks agree as
well as the wall clocks of their machines do (on one machine: exactly). :class:`DilatedClock` is the clock of a process;
:class:`WallClock` is what one actor sees of it, and drops all of its timers when the actor is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable

from kemu.runtime import tasks
from kemu.runtime.env import SECOND_NS
from kemu.runtime.skews import Skew

_CLOSE_READING_NS = 5_000
"""Three readings of clocks, one after the other, take a microsecond."""

_MOST_READINGS = 100

OFFSET_VARIABLE = "KEMU_WALL_CLOCK_AHEAD_S"
"""In the environment of a cell: it takes its machine's clock to be ahead by so many seconds (tests)."""

_AHEAD_NS = round(float(os.environ.get(OFFSET_VARIABLE, "0")) * SECOND_NS)


def wall_ns() -> int:
    """What the clock of this machine shows."""
    return time.time_ns() + _AHEAD_NS


class DilatedClock:
    """Virtual time of one process: ``speed`` virtual seconds pass in each real one."""

    def __init__(self) -> None:
        self.epoch_unix_s = 0
        """Unix time, in seconds, that virtual time 0 has in timestamps."""
        self.speed = 1.0
        self._origin_ns: int | None = None
        """Monotonic time of virtual time 0; None in set-up."""
        self._started: asyncio.Event = asyncio.Event()
        self._frozen: dict[WallTimer, None] = {}
        """Timers set during set-up, in the order in which they were set."""

    def configure(self, *, epoch_unix_ns: int, speed: float, epoch_unix_s: int) -> None:
        """``epoch_unix_ns``: wall time at which virtual time is 0, mostly a little ahead; 0: not yet known."""
        self.epoch_unix_s = epoch_unix_s
        self.speed = speed
        if epoch_unix_ns == 0 or self._origin_ns is not None:
            return
        # From here on only the monotonic clock counts: corrections of the wall clock do not move a run.
        self._origin_ns = epoch_unix_ns + _monotonic_minus_wall_ns()
        delay_s = max(0.0, (self._origin_ns - time.monotonic_ns()) / SECOND_NS)
        asyncio.get_running_loop().call_later(delay_s, self._started.set)
        frozen, self._frozen = self._frozen, {}
        for timer in frozen:
            timer.arm()

    def now_ns(self) -> int:
        if self._origin_ns is None:
            return 0
        passed_ns = time.monotonic_ns() - self._origin_ns
        return int(passed_ns * self.speed) if passed_ns > 0 else 0

    @property
    def stands(self) -> bool:
        """In set-up, as long as its end is not known."""
        return self._origin_ns is None

    @property
    def begun(self) -> bool:
        return self._started.is_set()

    async def started(self) -> None:
        await self._started.wait()

    def delay_s(self, when_ns: int) -> float | None:
        """Real seconds until ``when_ns``; None: not known yet."""
        if self._origin_ns is None:
            return None if when_ns > 0 else 0.0
        return (self._origin_ns - time.monotonic_ns() + when_ns / self.speed) / SECOND_NS

    def freeze(self, timer: WallTimer) -> None:
        self._frozen[timer] = None

    def thaw(self, timer: WallTimer) -> None:
        self._frozen.pop(timer, None)


def _monotonic_minus_wall_ns() -> int:
    """How far the monotonic clock is ahead of the wall clock, in ns.

    A process that is descheduled between the two readings would have a wrong virtual time for the rest of the run, and
    the order of events of several cells would be wrong. So it reads several pairs, and takes the closest one.
    """
    closest_ns, found_ns = 1 << 62, 0
    for _ in range(_MOST_READINGS):
        before_ns = time.monotonic_ns()
        shown_ns = wall_ns()
        took_ns = time.monotonic_ns() - before_ns
        if took_ns < closest_ns:
            closest_ns, found_ns = took_ns, before_ns + took_ns // 2 - shown_ns
        if took_ns <= _CLOSE_READING_NS:
            break
    return found_ns


class WallTimer:
    __slots__ = ("_args", "_callback", "_clock", "_handle", "_when_ns", "background")

    def __init__(
        self,
        clock: WallClock,
        when_ns: int,
        callback: Callable[..., object],
        args: tuple[object, ...],
        background: bool,
    ) -> None:
        self._clock = clock
        self._when_ns = when_ns
        self._callback = callback
        self._args = args
        self.background = background
        self._handle: asyncio.TimerHandle | None = None

    def arm(self) -> None:
        delay_s = self._clock.delay_s(self._when_ns)
        if delay_s is None:
            self._clock.shared.freeze(self)
        else:
            self._handle = asyncio.get_running_loop().call_later(delay_s, self._fire)

    def _fire(self) -> None:
        if self._clock.now_ns() < self._when_ns:
            # The loop rounds to its own resolution, but no actor may see a time before the one it waited for.
            self.arm()
            return
        if self._clock.keeps(self):
            return
        self._clock.forget(self)
        try:
            self._callback(*self._args)
        except asyncio.CancelledError:
            if not self._clock.dropped:
                raise
            # The actor has crashed at a step.
        except Exception as error:
            self._clock.fail(error)

    def rearm(self) -> None:
        """The clock has changed."""
        if self._handle is not None:
            self._handle.cancel()
            self.arm()

    def cancel(self) -> None:
        self._clock.forget(self)
        if self._handle is not None:
            self._handle.cancel()
        else:
            self._clock.shared.thaw(self)


class WallClock:
    """The :class:`kemu.runtime.env.Clock` of one actor."""

    def __init__(self, shared: DilatedClock, fail: Callable[[BaseException], None]) -> None:
        """``fail`` is called with what a timer's callback raised."""
        self.shared = shared
        self.fail = fail
        self.pending = 0
        """Timers set that are not background ones."""
        self.dropped = False
        self._timers: dict[WallTimer, None] = {}
        self._held: list[WallTimer] | None = None
        """Timers that fell due while the actor stands still; None: it does not."""
        self._skew: Skew | None = None
        """None: the clock is right."""
        self.now_ns = shared.now_ns
        self.started = shared.started

    def use(self, skew: Skew) -> None:
        """The clock is wrong from now on, as this says."""
        self._skew = skew
        self.now_ns = self._wrong_ns
        for timer in list(self._timers):
            timer.rearm()

    def _wrong_ns(self) -> int:
        assert self._skew is not None
        return self._skew.own_ns(self.shared.now_ns())

    def true_ns(self, own_ns: int) -> int:
        """When this clock showed that, or will show it."""
        return own_ns if self._skew is None else self._skew.true_ns(own_ns)

    def unix_ns(self) -> int:
        return self.unix_offset_ns + self.now_ns()

    @property
    def unix_offset_ns(self) -> int:
        right_ns = self.shared.epoch_unix_s * SECOND_NS
        return right_ns if self._skew is None else right_ns + self._skew.wall_ahead_ns

    def delay_s(self, when_ns: int) -> float | None:
        """Real seconds until this clock shows ``when_ns``; None: not known yet."""
        return self.shared.delay_s(self.true_ns(when_ns))

    @property
    def epoch_unix_s(self) -> int:
        return self.shared.epoch_unix_s

    async def sleep(self, seconds: float, *, background: bool = False) -> None:
        await self.sleep_until_ns(self.now_ns() + round(seconds * SECOND_NS), background=background)

    async def pause(self, seconds: float) -> None:
        if not self.shared.stands:
            await self.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.started()

    async def sleep_until_ns(self, when_ns: int, *, background: bool = False) -> None:
        if when_ns <= self.now_ns():
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        timer = self.call_at_ns(when_ns, tasks.wake, woken, background=background)
        try:
            await woken
        finally:
            timer.cancel()

    def call_at_ns(
        self, when_ns: int, callback: Callable[..., object], *args: object, background: bool = False
    ) -> WallTimer:
        if self.dropped:
            raise asyncio.CancelledError("the actor of this clock is no more")
        timer = WallTimer(self, when_ns, callback, args, background)
        self._timers[timer] = None
        if not background:
            self.pending += 1
        timer.arm()
        return timer

    def hold(self) -> None:
        """Its actor stands still: what falls due waits for :meth:`release`."""
        self._held = []

    def release(self) -> None:
        held, self._held = self._held or [], None
        for timer in held:
            if timer in self._timers:
                timer.rearm()

    def keeps(self, timer: WallTimer) -> bool:
        """Whether a timer that is due has to wait."""
        if self._held is None:
            return False
        self._held.append(timer)
        return True

    def forget(self, timer: WallTimer) -> None:
        if timer in self._timers:
            del self._timers[timer]
            if not timer.background:
                self.pending -= 1

    def drop(self) -> None:
        """The actor is gone: none of its timers fires, and it can set no other."""
        self.dropped = True
        for timer in list(self._timers):
            timer.cancel()
