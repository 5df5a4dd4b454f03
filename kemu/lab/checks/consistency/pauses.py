"""The check that a pause holds things back and does nothing else to them."""

from __future__ import annotations

import itertools
from typing import ClassVar

from kemu.lab.checks.history import History
from kemu.lab.checks.results import Check, Result, seconds
from kemu.runtime.runlog.events import ActorResumed
from kemu.runtime.words import counted


class PausesKeepTheOrder(Check):
    """What reached an actor while it stood still, or came due, is done when it goes on: all of it, each once, in the
    order in which it came.

    The simulation numbers what it holds back as it comes, and tells in which order that was done. Whoever is paused
    again or ends before all is done is not judged. In real time it cannot be told.
    """

    id: ClassVar[str] = "pauses-keep-the-order"

    def __init__(self) -> None:
        self._judged = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: ActorResumed) -> None:
        waited, done = event.waited, event.done
        self._judged += 1
        who = f"{seconds(time_ns)}: of {counted(len(waited), 'step')} that a pause held back, {actor}"
        known = frozenset(done)
        missing = [place for place in range(len(waited)) if place not in known]
        if missing:
            self._findings.append(f"{who} has not done that of {seconds(time_ns - waited[missing[0]])}")
        elif len(done) > len(waited):
            self._findings.append(f"{who} has done some twice")
        else:
            for one, other in itertools.pairwise(done):
                if other < one or waited[other] > waited[one]:
                    times = seconds(time_ns - waited[one]), seconds(time_ns - waited[other])
                    self._findings.append(f"{who} did that of {times[0]} before that of {times[1]}, which came earlier")
                    break

    def result(self, history: History) -> Result:
        good = f"{counted(self._judged, 'pause')} kept the order"
        return self.concluded(self._findings, self._judged, "no pause held anything back", good)
