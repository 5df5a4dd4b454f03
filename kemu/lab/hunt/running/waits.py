"""What the threads of a process wait for: whether it will do anything before something comes from outside.

Linux says of a thread in which call it waits, and with which arguments (``/proc/PID/task/TID/syscall``); so it is known
when its timers end, whatever it is written in. Where that cannot be read, nothing is known.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from kemu.emulated.gateway.limits.connections import Heard

_AT_WORK = ("R", "D")
_IS_KNOWN = platform.machine() == "x86_64"
"""Calls have other numbers elsewhere."""
_EPOLL_WAIT, _EPOLL_PWAIT, _EPOLL_PWAIT2, _POLL, _PPOLL, _SELECT, _PSELECT = 232, 281, 441, 7, 271, 23, 270
_FUTEX, _NANOSLEEP, _CLOCK_NANOSLEEP = 202, 35, 230
_FUTEX_WAIT, _FUTEX_WAIT_BITSET, _FUTEX_CLOCK_REALTIME = 0, 9, 256
_FOREVER = frozenset((0, 17, 19, 45, 47, 34, 43, 61, 128, 130, 247, 288))
"""Calls that wait without a limit: read, pread, readv, recvfrom, recvmsg, pause, accept, wait4, rt_sigtimedwait,
rt_sigsuspend, waitid, accept4."""


class Waits:
    """Of one process and its descendants."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._looked_s = time.monotonic()
        """When it was looked at last: what it waits for since then has not begun before."""
        self._seen: dict[int, tuple[str, float]] = {}
        """By thread: its call and how often it has run, and since when, at the earliest."""
        self._naps: dict[int, _Naps] = {}
        """By thread."""

    def is_busy(self) -> bool:
        """Whether a thread runs, or waits for a core. Where /proc does not tell, never."""
        try:
            return any(_state(task) in _AT_WORK for pid in _family(self._pid) for task in _tasks(pid))
        except OSError:  # it is gone, or there is no /proc
            return False

    def computed_s(self) -> float:
        """CPU time so far; 0: it is gone, or /proc does not tell."""
        try:
            return sum(_computed_s(pid) for pid in _family(self._pid))
        except OSError:
            return 0.0

    def rest_s(self) -> float | None:
        """Real time for which it does nothing by itself, at least; 0: it is at work. None: that is not known."""
        if not _IS_KNOWN:
            return None
        now_s, rest_s = time.monotonic(), math.inf
        seen: dict[int, tuple[str, float]] = {}
        try:
            for pid in _family(self._pid):
                for task in _tasks(pid):
                    try:
                        rest_s = min(rest_s, self._rest_s(pid, task, now_s, seen))
                    except FileNotFoundError:  # a thread that has ended
                        continue
                    if rest_s <= 0:
                        return 0.0
        except (OSError, ValueError, struct.error):
            return None
        self._looked_s, self._seen = now_s, seen
        return rest_s

    def naps(self, at_most_s: float) -> bool:
        """Whether a thread has gone to sleep for at most that time, and is not known to do so for nothing, again and
        again."""
        if not _IS_KNOWN:
            return False
        now_s = time.monotonic()
        soon = []
        with contextlib.suppress(OSError, ValueError, struct.error):
            for pid in _family(self._pid):
                for task in _tasks(pid):
                    with contextlib.suppress(FileNotFoundError):
                        rest_s = self._rest_s(pid, task, now_s, {})
                        if rest_s < math.inf:
                            naps = self._naps.setdefault(int(task.name), _Naps())
                            soon.append(naps.counts(_times(task), now_s, now_s + rest_s, at_most_s))
        return any(soon)

    def _rest_s(self, pid: int, task: Path, now_s: float, seen: dict[int, tuple[str, float]]) -> float:
        call = (task / "syscall").read_text()
        words = call.split()
        if len(words) < 7 or words[0] == "-1":  # it runs, or waits for its memory
            return 0.0
        number, arguments = int(words[0]), [int(word, 16) for word in words[1:7]]
        if number in _FOREVER:
            return 0.0 if _state(task) in _AT_WORK else math.inf
        limit_s, until_s = _limit(pid, number, arguments)
        if until_s is not None:
            return max(0.0, until_s - now_s)
        if limit_s == math.inf:
            return math.inf
        tid = int(task.name)
        identity = f"{call} {_times(task)}"
        before = self._seen.get(tid)
        since_s = before[1] if before is not None and before[0] == identity else self._looked_s
        seen[tid] = identity, since_s
        return max(0.0, since_s + limit_s - now_s)


class _Naps:
    """Of one thread."""

    _IN_VAIN = 5

    def __init__(self) -> None:
        self._times = -1
        self._heard = 0
        """What had been heard of clients when its present sleep was seen first."""
        self._seen_s = 0.0
        """When that was."""
        self._is_short = False
        self._in_vain = 0
        """How many naps in a row nothing came of."""

    def counts(self, times: int, now_s: float, until_s: float, at_most_s: float) -> bool:
        """``times``: how often the thread has run. Whether it naps, and something may come of that."""
        if times != self._times:
            if self._is_short and self._in_vain < self._IN_VAIN:
                self._in_vain = self._in_vain + 1 if self._heard == Heard.times else 0
            self._times, self._heard, self._seen_s = times, Heard.times, now_s
        self._is_short = until_s - self._seen_s <= at_most_s
        return self._is_short and self._in_vain < self._IN_VAIN


def _times(task: Path) -> int:
    return int((task / "schedstat").read_text().split()[2])


def _limit(pid: int, number: int, arguments: list[int]) -> tuple[float, float | None]:
    """How long a call waits at most, from its beginning; or until when, by the monotonic clock."""
    if number in (_EPOLL_WAIT, _EPOLL_PWAIT):
        return _milliseconds(arguments[3]), None
    if number == _POLL:
        return _milliseconds(arguments[2]), None
    if number == _FUTEX:
        operation = arguments[1] & 0x7F
        if not arguments[3]:
            return math.inf, None
        if operation == _FUTEX_WAIT:
            return _seconds(pid, arguments[3]), None
        if operation == _FUTEX_WAIT_BITSET:
            return 0.0, _until(pid, arguments[3], not arguments[1] & _FUTEX_CLOCK_REALTIME)
    if number == _NANOSLEEP:
        return _seconds(pid, arguments[0]), None
    if number == _CLOCK_NANOSLEEP:
        if arguments[1] & 1:
            return 0.0, _until(pid, arguments[2], arguments[0] != 0)
        return _seconds(pid, arguments[2]), None
    place = {_PPOLL: 2, _PSELECT: 4, _EPOLL_PWAIT2: 3}.get(number)
    if place is not None:
        return (_seconds(pid, arguments[place]) if arguments[place] else math.inf), None
    if number == _SELECT and not arguments[4]:
        return math.inf, None
    return 0.0, None


def _milliseconds(argument: int) -> float:
    found = argument & 0xFFFFFFFF
    return math.inf if found >= 1 << 31 else found / 1000


def _seconds(pid: int, address: int) -> float:
    """A ``timespec`` of the process."""
    file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    try:
        seconds, ns = struct.unpack("<qq", os.pread(file, 16, address))
    finally:
        os.close(file)
    return float(seconds + ns / 1e9)


def _until(pid: int, address: int, is_monotonic: bool) -> float:
    found = _seconds(pid, address)
    return found if is_monotonic else found - time.time() + time.monotonic()


def _family(pid: int) -> Iterator[int]:
    """A process and its descendants. Raises OSError where the system does not tell."""
    yield pid
    for task in _tasks(pid):
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


def _computed_s(pid: int) -> float:
    """Its own, and that of its children that have ended."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


def _tasks(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").iterdir())


def _state(task: Path) -> str:
    """As ``proc(5)`` has it."""
    return (task / "stat").read_text().rpartition(") ")[2][:1]
