"""Tells when a process has not run for a while: it was stopped, or it lagged.

The event loop of a process looks at the clock ten times a second. Where it comes late, the kernel's account of its
thread says why: a thread that lags has used a CPU or has waited in line for one; one that was stopped (SIGSTOP, a
debugger, a disk that blocks it) has done neither. Both are events of the run log, by the process itself, so that the
driver need not be on its machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass

from kemu.runtime.env import SECOND_NS, LogSink
from kemu.runtime.host.wall_clocks import DilatedClock
from kemu.runtime.runlog.events import ProcessStalled

TICK_S = 0.1
STOPPED_NS = SECOND_NS // 2
"""Real time from which on a process counts as stopped."""
LAGGED_NS = 2 * SECOND_NS
"""The same for one that lagged: on a busy machine shorter lags are usual."""


@dataclass(frozen=True)
class Account:
    """Account of a thread, in real ns since any time."""

    now_ns: int
    ran_ns: int
    queued_ns: int
    """It waited for a CPU."""

    def since(self, before: Account) -> Account:
        return Account(self.now_ns - before.now_ns, self.ran_ns - before.ran_ns, self.queued_ns - before.queued_ns)


def judged(passed: Account) -> str:
    """``stopped``, ``lagged``, or "" for a time that is not worth a word. ``passed``: since the last tick."""
    late_ns = passed.now_ns - round(TICK_S * SECOND_NS)
    idle_ns = late_ns - passed.ran_ns - passed.queued_ns
    if idle_ns >= STOPPED_NS and 2 * idle_ns >= late_ns:
        return "stopped"
    return "lagged" if late_ns >= LAGGED_NS else ""


class Ticks:
    """Ticks of the thread that calls :meth:`begin`."""

    def __init__(self, process: str, clock: DilatedClock, log: LogSink) -> None:
        """``process``: the name under which it stands in the run log, ``cell/store``."""
        self._process = process
        self._clock = clock
        self._log = log
        self._account = -1
        self._last = Account(0, 0, 0)
        self._timer: asyncio.TimerHandle | None = None
        self._longest_late_ns = 0

    def begin(self) -> None:
        with contextlib.suppress(OSError):  # not Linux: what is late counts as stopped unless it used a CPU
            self._account = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._last = self._now()
        self._set()

    def account(self) -> Account:
        """So far. To be asked for in the thread that began."""
        return self._now()

    def take_longest_late_ns(self) -> int:
        """How late the event loop was at most since this was last asked."""
        longest, self._longest_late_ns = self._longest_late_ns, 0
        return longest

    def _set(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        last, self._last = self._last, self._now()
        self._set()
        passed = self._last.since(last)
        self._longest_late_ns = max(self._longest_late_ns, passed.now_ns - round(TICK_S * SECOND_NS))
        what = judged(passed)
        if what and self._clock.begun:
            now_ns = self._clock.now_ns()
            start_ns = max(0, now_ns - round(passed.now_ns * self._clock.speed))
            event = ProcessStalled(
                what=what, start=start_ns, real_ns=passed.now_ns, ran_ns=passed.ran_ns, queued_ns=passed.queued_ns
            )
            self._log(now_ns, self._process, event.KIND, event)

    def _now(self) -> Account:
        now_ns = time.monotonic_ns()
        if self._account < 0:
            return Account(now_ns, time.thread_time_ns(), 0)
        ran, queued, _ = os.pread(self._account, 100, 0).split()
        return Account(now_ns, int(ran), int(queued))

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._account >= 0:
            os.close(self._account)
            self._account = -1
