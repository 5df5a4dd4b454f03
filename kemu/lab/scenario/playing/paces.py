"""A run at the pace of one who watches it: virtual time that waits for real time, logs that are flushed in time.

Role: :mod:`runner` puts it between a run and its log; the run itself does not notice.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from kemu.runtime.env import SECOND_NS, LogSink

T = TypeVar("T")

LEAST_S = 0.005
"""A shorter wait is put off: sleeping takes longer than that."""


class Paced:
    """Holds events of virtual time back until it is their time in real time. The set-up, before time 0 is over, is not
    held."""

    def __init__(self, append: LogSink, pace: float, flush: Callable[[], None]) -> None:
        """``pace``: virtual seconds for each real one. ``flush`` writes what happened before a wait."""
        self._append, self._pace, self._flush = append, pace, flush
        self._begun: float | None = None
        self._last_ns = 0

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if time_ns > self._last_ns:
            self._last_ns = time_ns
            self._wait(time_ns)
        self._append(time_ns, actor, kind, data)

    def _wait(self, time_ns: int) -> None:
        now = time.monotonic()
        if self._begun is None:
            self._begun = now
        left_s = self._begun + time_ns / SECOND_NS / self._pace - now
        if left_s >= LEAST_S:
            self._flush()
            # An actor's code that logs may not sleep; this is not its own.
            contextvars.Context().run(time.sleep, left_s)


async def flushing(playing: Coroutine[Any, Any, T], flush: Callable[[], None], every_s: float) -> T:
    """In real time: what was logged is flushed although nothing follows."""

    async def again() -> None:
        while True:
            await asyncio.sleep(every_s)
            flush()

    task = asyncio.create_task(again(), name="flush the log")
    try:
        return await playing
    finally:
        task.cancel()
