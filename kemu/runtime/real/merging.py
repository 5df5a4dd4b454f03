"""Puts what is heard late, from logs and watches of other processes, into the order of its times."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

from kemu.runtime.env import SECOND_NS, LogSink
from kemu.runtime.runlog.events import LogLate

HOLD_NS = 2 * SECOND_NS
"""How long an event waits for earlier ones. A kube-apiserver writes its audit log at once, and a log is read ten times
a second; a machine that is busy may take a second."""


class Merger:
    """Takes events in any order and passes them on in the order of their times."""

    def __init__(self, sink: LogSink, hold_ns: int = HOLD_NS) -> None:
        self._sink = sink
        self._hold_ns = hold_ns
        self._waiting: list[tuple[int, int, str, str, Mapping[str, Any]]] = []
        self._number = 0
        self._passed_ns = 0
        """The time of the last event that was passed on."""
        self._late = self._late_by_ns = 0

    def add(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Events of one time keep the order in which they come."""
        if time_ns < self._passed_ns:
            self._late += 1
            self._late_by_ns = max(self._late_by_ns, self._passed_ns - time_ns)
            time_ns = self._passed_ns
        self._number += 1
        heapq.heappush(self._waiting, (time_ns, self._number, actor, kind, data))

    def flush(self, now_ns: int) -> None:
        """Pass on what has waited long enough."""
        self._pass_until(now_ns - self._hold_ns)

    def close(self) -> None:
        """Nothing more will come."""
        if self._waiting:
            self._pass_until(max(entry[0] for entry in self._waiting))
        if self._late:
            event = LogLate(events=self._late, by_ns=self._late_by_ns)
            self._sink(self._passed_ns, "driver", event.KIND, event)

    def _pass_until(self, until_ns: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= until_ns:
            time_ns, _, actor, kind, data = heapq.heappop(waiting)
            self._passed_ns = time_ns
            self._sink(time_ns, actor, kind, data)
