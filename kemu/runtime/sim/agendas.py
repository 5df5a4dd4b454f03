"""Future events: timers, and the agenda in which the event loop keeps them and all messages in flight."""

from __future__ import annotations

import contextvars
import heapq
from collections.abc import Callable
from typing import Any

from kemu.runtime.sim.owners import OWNER, Condition, Owner

Callback = Callable[..., object]

Entry = tuple[Callback, tuple[Any, ...], contextvars.Context | None]
"""What to call, and in which context; None for steps of the runtime itself, which run no actor code."""

_SWEEP_AT_LEAST = 1_000


class LoopTimer:
    """A callback at a time, until it is cancelled. Its entry in an agenda is ``entry()``."""

    __slots__ = ("_agenda", "args", "callback", "when_ns")

    def __init__(self, agenda: Agenda | None, when_ns: int, callback: Callback, args: tuple[Any, ...]) -> None:
        self._agenda = agenda
        self.when_ns = when_ns
        self.callback: Callback | None = callback
        self.args = args

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self.args = ()
            if self._agenda is not None:
                self._agenda.note_cancelled()

    def cancelled(self) -> bool:
        """True also for one that has fired."""
        return self.callback is None

    def when(self) -> float:
        """In seconds, as ``asyncio.TimerHandle`` says it."""
        return self.when_ns / 1e9


def fire(timer: LoopTimer) -> None:
    """The callback of a timer's entry."""
    callback = timer.callback
    if callback is not None:
        args = timer.args
        timer.callback = None
        timer.args = ()
        callback(*args)


def _is_wanted(entry: Entry) -> bool:
    callback, args, context = entry
    if callback is fire and args[0].callback is None:
        return False
    owner = context.get(OWNER) if context is not None else None
    return owner is None or owner.condition is not Condition.DEAD


class Agenda:
    """Entries by time. Those of one instant keep the order in which they were added.

    Many entries share their instant, as latencies are often constant, so a heap of distinct times with a list for each
    is cheaper than a heap of entries, and needs no sequence numbers.
    """

    __slots__ = ("_cancelled", "_sweep_at", "buckets", "has_dead", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        """A heap of the keys of ``buckets``."""
        self.buckets: dict[int, list[Entry]] = {}
        self.has_dead = False
        """An owner has died, and its entries may still be there."""
        self._cancelled = 0
        self._sweep_at = _SWEEP_AT_LEAST

    def push(self, when_ns: int, entry: Entry) -> None:
        bucket = self.buckets.get(when_ns)
        if bucket is None:
            self.buckets[when_ns] = [entry]
            heapq.heappush(self.times, when_ns)
        else:
            bucket.append(entry)

    def next_ns(self) -> int | None:
        """The time of the first entry that was not cancelled."""
        if self.has_dead:
            self._sweep()
        while self.times:
            when_ns = self.times[0]
            for callback, args, _ in self.buckets[when_ns]:
                if callback is not fire or args[0].callback is not None:
                    return when_ns
            heapq.heappop(self.times)
            del self.buckets[when_ns]
        return None

    def pop(self) -> list[Entry]:
        """Take out all entries of the first instant."""
        return self.buckets.pop(heapq.heappop(self.times))

    def move(self, owner: Owner, to_ns: Callable[[int], int]) -> None:
        """Move the timers of an owner to other times."""
        moved: list[Entry] = []
        for when_ns in list(self.buckets):
            stay = []
            for entry in self.buckets[when_ns]:
                callback, args, context = entry
                if callback is fire and context is not None and context.get(OWNER) is owner and not args[0].cancelled():
                    moved.append(entry)
                else:
                    stay.append(entry)
            self.buckets[when_ns] = stay
        for entry in moved:
            timer = entry[1][0]
            timer.when_ns = to_ns(timer.when_ns)
            self.push(timer.when_ns, entry)

    def note_cancelled(self) -> None:
        """A timer in this agenda was cancelled."""
        self._cancelled += 1
        if self._cancelled >= self._sweep_at:
            self._sweep()

    def note_dead(self) -> None:
        """An owner has died."""
        self.has_dead = True

    def _sweep(self) -> None:
        kept = 0
        for when_ns in list(self.buckets):
            bucket = [entry for entry in self.buckets[when_ns] if _is_wanted(entry)]
            if bucket:
                self.buckets[when_ns] = bucket
                kept += len(bucket)
            else:
                del self.buckets[when_ns]
        self.times = list(self.buckets)
        heapq.heapify(self.times)
        self.has_dead = False
        self._cancelled = 0
        self._sweep_at = max(_SWEEP_AT_LEAST, kept)
