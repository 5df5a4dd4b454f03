"""Brings the event streams of all cells into one order, as they come in.

Each cell sends its events in order of time and regularly says how far it has come. Events before the time that *every*
cell has reached are handed on: the sink sees all events ordered by time, then by cell, then by order within the cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgpack

from kemu.runtime.env import LogSink

_END_OF_TIME_NS = 1 << 62

Source = tuple[int, int]
"""Number of a cell in the plan, and its incarnation."""


class LogMerger:
    def __init__(self, sink: LogSink) -> None:
        self._sink = sink
        self._reached_ns: dict[Source, int] = {}
        self._received: dict[Source, int] = {}
        self._waiting: list[tuple[int, Source, int, str, str, Any]] = []
        self._limit_ns = 0
        """Events before that time have been handed on."""
        self.late: dict[Source, tuple[int, int]] = {}
        """Of which sources events came after later ones had been handed on, as when the clocks of two machines
        disagree: how many, and by how many ns at most."""

    @property
    def waiting(self) -> int:
        """How many events wait for slower cells."""
        return len(self._waiting)

    def open(self, source: Source) -> None:
        self._reached_ns[source] = self._limit_ns
        self._received[source] = 0

    def is_open(self, source: Source) -> bool:
        return source in self._reached_ns

    def received(self, source: Source) -> int:
        """Number of events received from it."""
        return self._received[source]

    def add(self, source: Source, payloads: Iterable[bytes], reached_ns: int) -> list[tuple[str, str, Any]]:
        """Returns actor, kind and data of the events added. ``reached_ns``: none before that time is still to come."""
        sequence = self._received[source]
        added = []
        for payload in payloads:
            time_ns, actor, kind, data = msgpack.unpackb(payload, raw=False, strict_map_key=False)
            self._waiting.append((time_ns, source, sequence, actor, kind, data))
            added.append((actor, kind, data))
            sequence += 1
        self._received[source] = sequence
        if reached_ns > self._reached_ns[source]:
            self._reached_ns[source] = reached_ns
            self._emit()
        return added

    def append(self, source: Source, time_ns: int, actor: str, kind: str, data: Any) -> None:
        """One event of this process."""
        sequence = self._received[source]
        self._waiting.append((time_ns, source, sequence, actor, kind, data))
        self._received[source] = sequence + 1

    def reach(self, source: Source, reached_ns: int) -> None:
        """No event of this source before that time is still to come."""
        self._reached_ns[source] = reached_ns

    def close(self, source: Source) -> None:
        """No more events from it."""
        self._received.pop(source, None)
        if self._reached_ns.pop(source, None) is not None:
            self._emit()

    def flush(self) -> None:
        """Hand on everything that waits."""
        self._emit(_END_OF_TIME_NS)

    def _emit(self, limit_ns: int | None = None) -> None:
        if limit_ns is None:
            limit_ns = min(self._reached_ns.values(), default=0)
        if limit_ns <= self._limit_ns:
            return
        before_ns, self._limit_ns = self._limit_ns, limit_ns
        self._waiting.sort(key=_order)
        end = len(self._waiting)
        while end and self._waiting[end - 1][0] >= limit_ns:
            end -= 1
        ready = self._waiting[:end]
        del self._waiting[:end]
        for time_ns, source, _, actor, kind, data in ready:
            if time_ns < before_ns:
                count, most_ns = self.late.get(source, (0, 0))
                self.late[source] = (count + 1, max(most_ns, before_ns - time_ns))
            self._sink(time_ns, actor, kind, data)


def _order(item: tuple[int, Source, int, str, str, Any]) -> tuple[int, Source, int]:
    return item[:3]
