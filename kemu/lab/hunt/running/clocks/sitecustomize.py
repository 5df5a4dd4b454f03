"""The virtual time of a cluster as the time of a controller in Python.

``time.time``, ``datetime.now`` and ``time.monotonic`` tell the cluster's time; ``time.sleep``, waits of ``threading``
(``Event``, ``Condition``, ``queue``) and the loop of asyncio longer than 50 ms end when the cluster has come so far.
Timeouts of sockets, of locks by themselves and of joined threads stay those of the machine, as does uvloop.

``KEMU_CLOCK`` is a file with the cluster's time; ``KEMU_TIMERS`` a socket over which this process says when the first
of its timers ends, and hears when the cluster has come there (:mod:`kemu.lab.hunt.running.alarms`). It stands alone:
it runs in the Python of the controller, which need not have kemu.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import heapq
import importlib.machinery
import importlib.util
import itertools
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

LONG_S = 0.05
_SIZE = 8
_SECOND_NS = 1_000_000_000
_real_sleep, _real_datetime = time.sleep, dt.datetime
_real_wait: Any = threading.Condition.wait


class _Timer:
    def __init__(self, end_ns: int, ring: Callable[[], object]) -> None:
        self.end_ns = end_ns
        self.ring = ring
        self.is_over = False
        """It has rung, or is not wanted any more."""
        self.has_rung = False


class _Clock:
    def __init__(self, path: str, timers: int) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._timers = timers
        self._lock = threading.Lock()
        self._heap: list[tuple[int, int, _Timer]] = []
        self._numbers = itertools.count()
        self._told_ns = 0
        self._rung_ns = 0
        self._thread: threading.Thread | None = None
        self.begun_ns = self.now_ns()
        self.begun_s = time.monotonic()

    def now_ns(self) -> int:
        seconds, _, parts = os.pread(self._file, 32, 0).decode().strip().partition(".")
        found = int(seconds) * _SECOND_NS + int(parts.ljust(9, "0")[:9] or 0) if seconds else 0
        return max(found, self._rung_ns)

    def monotonic_ns(self) -> int:
        return round(self.begun_s * _SECOND_NS) + self.now_ns() - self.begun_ns

    def begin(self, seconds: float, ring: Callable[[], object]) -> _Timer:
        timer = _Timer(self.now_ns() + round(seconds * _SECOND_NS), ring)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._hear, name="kemu clock", daemon=True)
                self._thread.start()
            heapq.heappush(self._heap, (timer.end_ns, next(self._numbers), timer))
            self._tell()
        return timer

    def end(self, timer: _Timer) -> None:
        with self._lock:
            if not timer.is_over:
                timer.is_over = True
                self._tell()

    def _tell(self) -> None:
        while self._heap and self._heap[0][2].is_over:
            heapq.heappop(self._heap)
        first_ns = self._heap[0][0] if self._heap else 0
        if first_ns != self._told_ns:
            self._told_ns = first_ns
            os.write(self._timers, first_ns.to_bytes(_SIZE, "little"))

    def _hear(self) -> None:
        rest = b""
        while True:
            found = os.read(self._timers, 4096)
            if not found:
                return
            rest += found
            whole = len(rest) // _SIZE * _SIZE
            if not whole:
                continue
            come_ns = int.from_bytes(rest[whole - _SIZE : whole], "little")
            rest = rest[whole:]
            over = []
            with self._lock:
                self._rung_ns = max(self._rung_ns, come_ns)
                self._told_ns = 0
                while self._heap and self._heap[0][0] <= come_ns:
                    timer = heapq.heappop(self._heap)[2]
                    if not timer.is_over:
                        timer.is_over = timer.has_rung = True
                        over.append(timer)
                for timer in over:
                    timer.ring()
                self._tell()


def _clock_for(seconds: float | None) -> _Clock | None:
    """None: it is a matter of the machine."""
    return _clock if seconds is not None and seconds > LONG_S else None


def _sleep(seconds: float) -> None:
    clock = _clock_for(seconds)
    if clock is None:
        _real_sleep(seconds)
        return
    lock = threading.Lock()
    lock.acquire()
    timer = clock.begin(seconds, lock.release)
    try:
        lock.acquire()
    finally:
        clock.end(timer)


class _Condition(Protocol):
    """Parts of ``threading.Condition``."""

    _waiters: deque[threading.Lock]

    def _is_owned(self) -> bool: ...

    def _release_save(self) -> object: ...

    def _acquire_restore(self, saved: object) -> None: ...


def _wait(self: _Condition, timeout: float | None = None) -> bool:
    """In the place of ``threading.Condition.wait``."""
    clock = _clock_for(timeout)
    if clock is None or timeout is None:
        return bool(_real_wait(self, timeout))
    if not self._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    waiter = threading.Lock()
    waiter.acquire()

    def ring() -> None:
        with contextlib.suppress(RuntimeError):  # it was notified in this very moment
            waiter.release()

    self._waiters.append(waiter)
    saved = self._release_save()
    timer = clock.begin(timeout, ring)
    try:
        waiter.acquire()
        return not timer.has_rung
    finally:
        clock.end(timer)
        self._acquire_restore(saved)
        with contextlib.suppress(ValueError):
            self._waiters.remove(waiter)


class _Epoll:
    """In the place of ``select.epoll``."""

    def __init__(self, sizehint: int = -1, flags: int = 0, real: select.epoll | None = None) -> None:
        self._real = _real_epoll(sizehint, flags) if real is None else real
        self._pipe: tuple[int, int] | None = None

    @classmethod
    def fromfd(cls, fd: int) -> _Epoll:
        return cls(real=_real_epoll.fromfd(fd))

    def __getattr__(self, name: str) -> object:
        found: object = getattr(self._real, name)
        return found

    def __enter__(self) -> _Epoll:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._real.close()
        if self._pipe is not None:
            for end in self._pipe:
                os.close(end)
            self._pipe = None

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        clock = _clock_for(timeout)
        if clock is None or timeout is None:
            return [each for each in self._real.poll(timeout, maxevents) if not self._is_own(each[0])]
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
            self._real.register(self._pipe[0], select.EPOLLIN)
        pipe = self._pipe
        timer = clock.begin(timeout, lambda: os.write(pipe[1], b"."))
        try:
            return [each for each in self._real.poll(-1, maxevents) if not self._is_own(each[0])]
        finally:
            clock.end(timer)

    def _is_own(self, descriptor: int) -> bool:
        if self._pipe is None or descriptor != self._pipe[0]:
            return False
        with contextlib.suppress(BlockingIOError):
            os.read(descriptor, 4096)
        return True


def _in_a_child() -> None:
    """A process that this one forks has a clock of its own: that of the machine."""
    global _clock
    _clock = None


class _AsBefore(type):
    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, _real_datetime)


class _DateTime(dt.datetime, metaclass=_AsBefore):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> _DateTime:
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> _DateTime:
        return cls.fromtimestamp(time.time(), dt.UTC).replace(tzinfo=None)


def _install() -> None:
    global _clock
    try:
        descriptor = int(os.environ.pop("KEMU_TIMERS"))
        os.fstat(descriptor)
        _clock = _Clock(os.environ["KEMU_CLOCK"], descriptor)
    except (KeyError, ValueError, OSError):
        return
    os.register_at_fork(after_in_child=_in_a_child)
    real = {name: getattr(time, name) for name in ("time", "time_ns", "monotonic", "monotonic_ns")}

    def told(name: str, ask: Callable[[_Clock], float]) -> None:
        def tell() -> float:
            return real[name]() if _clock is None else ask(_clock)

        tell.__name__ = name
        setattr(time, name, tell)

    told("time", lambda clock: clock.now_ns() / _SECOND_NS)
    told("time_ns", lambda clock: clock.now_ns())
    told("monotonic", lambda clock: clock.monotonic_ns() / _SECOND_NS)
    told("monotonic_ns", lambda clock: clock.monotonic_ns())
    # By name, as these are not to be replaced for type checkers.
    replaced: list[tuple[Any, str, Any]] = [
        (time, "sleep", _sleep),
        (threading.Condition, "wait", _wait),
        (threading, "_time", time.monotonic),
        (dt, "datetime", _DateTime),
    ]
    if _real_epoll is not None:
        replaced.append((select, "epoll", _Epoll))
    for place, name, new in replaced:
        setattr(place, name, new)


def _next() -> None:
    """The ``sitecustomize`` that would have come without this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [each for each in sys.path if os.path.abspath(each) != here]
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if found is not None and found.loader is not None:
        found.loader.exec_module(importlib.util.module_from_spec(found))


_real_epoll: Any = getattr(select, "epoll", None)
_clock: _Clock | None = None
_install()
_next()
