"""Brings the event streams of all cells into one order, as they come in.

Each cell sends its events in the order in which they happened and regularly says how far it has come. Events before the
time that *every* cell has reached are handed on. What decides their order is, first, what caused what:

* the events of a cell keep their order, whatever its clock did;
* an event that knows of a revision of the store comes after the event with which the store made it (``causes``).

Then time, and among events of one instant the numbers of the cells. Where clocks disagree, an event that had to wait
for its cause gets the time of that. A cause that does not come (an API server that records a real etcd may learn of a
revision late, or never) is waited for ``patience_ns`` beyond what every cell has reached.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgpack

from kemu.runtime.env import SECOND_NS, LogSink
from kemu.runtime.ray.driver.logs import causes
from kemu.runtime.runlog.events import (
    Transaction,
    typed,
)

PATIENCE_S = 5.0
"""Real time: more than the clocks of machines are apart."""
_END_OF_TIME_NS = 1 << 62

Source = tuple[int, int]
"""Number of a cell in the plan, and its incarnation."""

Waiting = tuple[int, str, str, Any, int]
"""Time, actor, kind, data, and the revision of which it knows."""


class Stream:
    """The events of one process that wait."""

    __slots__ = ("queue", "reached_ns", "received", "told_ns", "writes")

    def __init__(self, reached_ns: int) -> None:
        self.queue: deque[Waiting] = deque()
        self.reached_ns = reached_ns
        """No event before that time is still to come."""
        self.received = 0
        self.told_ns = 0
        """Time of the last event that was handed on."""
        self.writes = False
        """It tells of the store's revisions itself: where it does so later than it knows of them, it is not to wait for
        itself."""


class LogMerger:
    def __init__(self, sink: LogSink, patience_ns: int = int(PATIENCE_S * SECOND_NS)) -> None:
        self._sink = sink
        self._patience_ns = patience_ns
        self._open: dict[Source, Stream] = {}
        self._streams: dict[Source, Stream] = {}
        """Also those that are closed and have events that wait."""
        self._revision = 1
        """The latest one that the store is known to have made; a new store begins with this one."""
        self._recorded = 0
        """The latest revision of a real etcd that was handed on. An API server that begins again to record it tells
        once more of what it knows."""
        self._limit_ns = 0
        """Events before that time have been handed on, but for those whose causes are missing."""
        self._told_ns = 0
        """Time of the last event that was handed on."""
        self.late: dict[Source, tuple[int, int]] = {}
        """Sources whose events came after later ones had been handed on, as when the clocks of two machines
        disagree: how many, and by how many ns at most."""

    @property
    def waiting(self) -> int:
        """How many events wait for slower cells."""
        return sum(len(stream.queue) for stream in self._streams.values())

    def open(self, source: Source) -> None:
        self._open[source] = self._streams[source] = Stream(self._limit_ns)

    def is_open(self, source: Source) -> bool:
        return source in self._open

    def received(self, source: Source) -> int:
        """Number of events received from it."""
        return self._open[source].received

    def counts(self) -> dict[Source, int]:
        """Number of events received from those that are open."""
        return {source: stream.received for source, stream in self._open.items()}

    def add(self, source: Source, payloads: Iterable[bytes], reached_ns: int) -> list[tuple[str, str, Any]]:
        """Returns actor, kind and data of the events added. ``reached_ns``: none before that time is still to come."""
        stream = self._open[source]
        added = []
        for payload in payloads:
            time_ns, actor, kind, data = msgpack.unpackb(payload, raw=False, strict_map_key=False)
            event = typed(kind, data)
            self._wait(source, stream, time_ns, actor, kind, event)
            added.append((actor, kind, event))
        if reached_ns > stream.reached_ns:
            stream.reached_ns = reached_ns
            self._emit()
        return added

    def append(self, source: Source, time_ns: int, actor: str, kind: str, data: object) -> None:
        """One event of this process."""
        self._wait(source, self._open[source], time_ns, actor, kind, data)

    def reach(self, source: Source, reached_ns: int) -> None:
        """No event of this source before that time is still to come."""
        self._open[source].reached_ns = reached_ns

    def close(self, source: Source) -> None:
        """No more events from it."""
        if self._open.pop(source, None) is not None:
            self._emit()

    def flush(self) -> None:
        """Hand on everything that waits."""
        self._emit(_END_OF_TIME_NS)

    def _wait(self, source: Source, stream: Stream, time_ns: int, actor: str, kind: str, data: Any) -> None:
        if time_ns < self._limit_ns:
            count, most_ns = self.late.get(source, (0, 0))
            self.late[source] = (count + 1, max(most_ns, self._limit_ns - time_ns))
        known = causes.KNOWING.get(kind)
        stream.queue.append((time_ns, actor, kind, data, known(data) if known is not None else 0))
        stream.received += 1
        if kind == causes.WRITE:
            stream.writes = True

    def _emit(self, limit_ns: int | None = None) -> None:
        if limit_ns is None:
            limit_ns = min((stream.reached_ns for stream in self._open.values()), default=0)
        if limit_ns <= self._limit_ns:
            return
        self._limit_ns = limit_ns
        streams = self._streams
        ready = [
            (max(stream.queue[0][0], stream.told_ns), source)
            for source, stream in streams.items()
            if stream.queue and stream.queue[0][0] < limit_ns
        ]
        heapq.heapify(ready)
        held: list[tuple[int, int, Source]] = []
        """Revision for which the first event of a source waits, its time, and the source."""
        self._emit_ready(ready, held)
        overdue_ns = limit_ns if limit_ns == _END_OF_TIME_NS else limit_ns - self._patience_ns
        while held:
            # The one that has waited longest, and those that are content with its revision.
            revision, time_ns, _ = min(held, key=lambda one: one[1:])
            if time_ns >= overdue_ns:
                break
            self._revision = revision
            ready = [(max(one[1], self._told_ns), one[2]) for one in held if one[0] <= revision]
            held = [one for one in held if one[0] > revision]
            heapq.heapify(ready)
            heapq.heapify(held)
            self._emit_ready(ready, held)
        if len(streams) > len(self._open):
            for source in [source for source, stream in streams.items() if not stream.queue]:
                if source not in self._open:
                    del streams[source]

    def _emit_ready(self, ready: list[tuple[int, Source]], held: list[tuple[int, int, Source]]) -> None:
        """Hand on events before the limit of the sources in ``ready``, a heap; those that wait go to ``held``."""
        streams, limit_ns, sink = self._streams, self._limit_ns, self._sink
        while ready and ready[0][0] < limit_ns:
            time_ns, source = ready[0]
            stream = streams[source]
            _, actor, kind, data, revision = stream.queue[0]
            if revision > self._revision and not stream.writes:
                heapq.heappop(ready)
                heapq.heappush(held, (revision, time_ns, source))
                continue
            stream.queue.popleft()
            stream.told_ns = self._told_ns = time_ns
            if stream.queue:
                heapq.heapreplace(ready, (max(stream.queue[0][0], time_ns), source))
            else:
                heapq.heappop(ready)
            if isinstance(data, Transaction) and data.rev > self._revision:
                self._revision = data.rev
                while held and held[0][0] <= self._revision:
                    _, waited_ns, released = heapq.heappop(held)
                    heapq.heappush(ready, (max(waited_ns, time_ns), released))
            if not isinstance(data, Transaction) or self._is_new(actor, data.rev):
                sink(time_ns, actor, kind, data)

    def _is_new(self, actor: str, revision: int) -> bool:
        if not actor.startswith(causes.RECORDER):
            return True  # kemu's own store tells of each transaction once, though of some revisions twice
        self._recorded, before = max(self._recorded, revision), self._recorded
        return revision > before
