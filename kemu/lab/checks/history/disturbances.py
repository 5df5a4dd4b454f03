"""What happened to the processes of a run on Ray: which died, stood still or lagged, when, how long, and whose doing.

Role: below ``histories``. The runtime tells of the processes that it supervises and of the signals that it sends; a
process itself tells of the times in which it did not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kemu.runtime.runlog import events
from kemu.runtime.runlog.events import handlers

SECOND_NS = 1_000_000_000

DIED = "died"
STOPPED = "stopped"
LAGGED = "lagged"


@dataclass(slots=True)
class Disturbance:
    """One time in which a process did not run."""

    process: str
    """``cell/store``, ``raylet/0``, ``gcs``, ``etcd``, ``driver``."""
    what: str
    """``died stopped lagged``."""
    begin_ns: int
    end_ns: int | None = None
    """When it, or what took its place, went on; None: not before the end of the run."""
    by: str = ""
    """What of the run did it, such as a fault; empty: it came from outside."""

    @property
    def from_outside(self) -> bool:
        return not self.by

    def data(self) -> dict[str, Any]:
        """For verdict.json."""
        lasted_ns = None if self.end_ns is None else self.end_ns - self.begin_ns
        return {
            "process": self.process,
            "what": self.what,
            "at_s": round(self.begin_ns / SECOND_NS, 3),
            "for_s": None if lasted_ns is None else round(lasted_ns / SECOND_NS, 3),
            "from": "outside" if self.from_outside else "inside",
            "by": self.by,
        }


class Disturbances:
    """Folds the events that :attr:`handlers` names."""

    def __init__(self) -> None:
        self.all: list[Disturbance] = []
        """In the order in which they were told of."""
        self.handlers = handlers.of(self)

    def _open(self, process: str, what: str) -> Disturbance | None:
        found = next((one for one in reversed(self.all) if one.process == process and one.what == what), None)
        return found if found is not None and found.end_ns is None else None

    def _on_died(self, time_ns: int, actor: str, event: events.ProcessDied) -> None:
        stopped = self._open(actor, STOPPED)
        if stopped is not None:
            stopped.end_ns = time_ns
        self.all.append(Disturbance(actor, DIED, time_ns, by=event.by))

    def _on_started(self, time_ns: int, actor: str, event: events.ProcessStarted) -> None:
        died = self._open(actor, DIED)
        if died is not None:
            died.end_ns = time_ns

    def _on_stopped(self, time_ns: int, actor: str, event: events.ProcessStopped) -> None:
        self.all.append(Disturbance(actor, STOPPED, time_ns if event.start is None else event.start, by=event.by))

    def _on_continued(self, time_ns: int, actor: str, event: events.ProcessContinued) -> None:
        stopped = self._open(actor, STOPPED)
        if stopped is not None:
            stopped.end_ns = time_ns

    def _on_stalled(self, time_ns: int, actor: str, event: events.ProcessStalled) -> None:
        begin_ns = event.start
        for known in reversed(self.all):
            # The one who stopped it has told of that already.
            overlaps = known.begin_ns <= time_ns and (known.end_ns is None or known.end_ns >= begin_ns)
            if known.process == actor and known.what == STOPPED and overlaps:
                return
        self.all.append(Disturbance(actor, event.what, begin_ns, time_ns))
