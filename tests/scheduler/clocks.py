"""A clock in the hand of a test."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from kemu.runtime.env import SECOND_NS


class HandClock:
    """Implements what the queue needs of ``kemu.runtime.env.Clock``; time passes by :meth:`advance_to`."""

    epoch_unix_s = 0

    def __init__(self) -> None:
        self._now_ns = 0
        self._timers: list[tuple[int, int, list[Any]]] = []
        self._set = 0

    def now_ns(self) -> int:
        return self._now_ns

    def call_at_ns(
        self, when_ns: int, callback: Callable[..., object], *args: object, background: bool = False
    ) -> HandTimer:
        self._set += 1
        entry = [callback, args, background]
        heapq.heappush(self._timers, (when_ns, self._set, entry))
        return HandTimer(entry)

    def foreground(self) -> list[int]:
        """When timers that keep a run alive are due."""
        return sorted(when for when, _, entry in self._timers if entry[0] is not None and not entry[2])

    def advance_to(self, seconds: float) -> None:
        until_ns = round(seconds * SECOND_NS)
        while self._timers and self._timers[0][0] <= until_ns:
            when_ns, _, entry = heapq.heappop(self._timers)
            self._now_ns = max(self._now_ns, when_ns)
            if entry[0] is not None:
                entry[0](*entry[1])
        self._now_ns = until_ns

    async def started(self) -> None: ...

    async def sleep(self, seconds: float, *, background: bool = False) -> None:
        raise AssertionError("nobody sleeps here")

    async def pause(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")

    async def sleep_until_ns(self, when_ns: int, *, background: bool = False) -> None:
        raise AssertionError("nobody sleeps here")


class HandTimer:
    def __init__(self, entry: list[Any]) -> None:
        self._entry = entry

    def cancel(self) -> None:
        self._entry[0] = None
