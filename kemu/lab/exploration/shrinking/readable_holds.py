"""Holds that people can read: until something happens rather than for 13.482 ms, one rather than two.

What a hold waits for is looked for in the run that fails, between the time when the message would have come and when it
came: until then the run with the new hold is the same run, so its event happens in it, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from kemu.lab.exploration.shrinking import subsets
from kemu.lab.exploration.shrinking.candidates import Candidate
from kemu.lab.exploration.shrinking.steps import Steps
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime import holds
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS
from kemu.runtime.holds import EventPattern, Hold
from kemu.runtime.runlog.events import HoldKept, HoldReleased
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.words import short

MOST_EVENTS = 8
"""More events are not tried in the place of one time."""

_BEST_WORDS = (
    "attempted",
    "admitted",
    "bound",
    "rejected",
    "bindRefused",
    "nominated",
    "preempting",
    "preempted",
    "terminating",
    "terminated",
    "evicting",
    "finished",
    "running",
    "created",
    "tainted",
    "crashed",
    "started",
)
"""Decisions first."""
ROUND_NS = tuple(
    digit * unit
    for unit in (MILLISECOND_NS, 10 * MILLISECOND_NS, 100 * MILLISECOND_NS, SECOND_NS)
    for digit in (1, 2, 5)
)
"""Times that read well."""


class Readable:
    """Makes the holds readable from where shrinking is."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def improve(self) -> None:
        if not self._steps.best.holds or len(self._steps.best.holds) > 12:
            return
        index = 0
        while index < len(self._steps.best.holds):
            hold = self._steps.best.holds[index]
            if hold.until is None:
                events = self._steps.events()
                found = by_events(hold, index, events, _latency_ns(self._steps.best.scenario))
                if self._steps.take(self._with_hold(index, other) for other in found) is None:
                    self._shorten(index, hold)
            index += 1
        if len(self._steps.best.holds) > 1:
            self._steps.take(
                self._steps.best.with_holds(each) for each in merged(self._steps.best.holds, self._steps.events())
            )

    def _shorten(self, index: int, hold: Hold) -> None:
        """The shortest round time, or one that is about as long."""
        times = round_times(hold)
        if len(str(hold.for_ns).rstrip("0")) <= 2:
            return
        before = self._steps.best.key
        subsets.least(len(times), lambda asked: self._steps.take(self._lasting(index, hold, times[at]) for at in asked))
        if self._steps.best.key == before:
            self._steps.take(self._lasting(index, hold, time_ns) for time_ns in rounder_times(hold))

    def _lasting(self, index: int, hold: Hold, for_ns: int) -> Candidate:
        return self._with_hold(index, dataclasses.replace(hold, for_ns=for_ns))

    def _with_hold(self, index: int, hold: Hold) -> Candidate:
        return self._steps.best.with_holds(
            [hold if at == index else other for at, other in enumerate(self._steps.best.holds)]
        )


def kept_ns(events: Sequence[Entry], index: int) -> tuple[int, int] | None:
    """When the message of a hold was sent, and when it was let go (``until``) or would be (``for``), without what it
    takes anyway; None where it never was."""
    sent_ns = None
    for event in events:
        data = event.data
        if isinstance(data, HoldKept) and data.hold == index:
            sent_ns = event.time_ns
            if data.for_ns is not None:
                return sent_ns, sent_ns + data.for_ns
        elif isinstance(data, HoldReleased) and data.hold == index and sent_ns is not None:
            return sent_ns, event.time_ns
    return None


def by_events(hold: Hold, index: int, events: Sequence[Entry], latency_ns: int) -> list[Hold]:
    """The hold with events in the place of its time, the best first."""
    span = kept_ns(events, index)
    if span is None or hold.until is not None:
        return []
    begin_ns, end_ns = span[0], span[1] + latency_ns
    found: dict[EventPattern, tuple[int, int, int]] = {}
    counts: dict[EventPattern, int] = {}
    for event in events:
        if not begin_ns <= event.time_ns <= end_ns:
            continue
        pattern = _pattern(event)
        if pattern is None:
            continue
        counts[pattern] = count = counts.get(pattern, 0) + 1
        is_others = event.actor != hold.message.target
        is_ahead = event.time_ns < begin_ns + latency_ns  # before the message would have come
        rank = (2 * is_ahead + is_others, count, -event.time_ns)
        found[dataclasses.replace(pattern, count=count)] = rank
    best = sorted(found, key=lambda pattern: found[pattern])[:MOST_EVENTS]
    return [Hold(hold.message, pattern) for pattern in best]


def _pattern(event: Entry) -> EventPattern | None:
    for word in _BEST_WORDS:
        happening = holds.HAPPENINGS[word]
        if event.kind in happening.kinds and happening.is_so(event.data):
            pod = short(str(event.data.get("pod", "")))
            node = "" if pod else str(event.data.get("node", ""))
            return EventPattern(event.actor, word, pod, node)
    return None


def round_times(hold: Hold) -> list[int]:
    """Round times up to the first that is no shorter than the hold's, ascending."""
    for index, time_ns in enumerate(ROUND_NS):
        if time_ns >= hold.for_ns:
            return list(ROUND_NS[: index + 1])
    return list(ROUND_NS)


def rounder_times(hold: Hold) -> list[int]:
    """Times about as long as the hold's, the fewest digits first."""
    digits = len(str(hold.for_ns))
    found = []
    for kept in (2, 3):
        step = 10 ** max(0, digits - kept)
        found += [-(-hold.for_ns // step) * step, hold.for_ns // step * step]
    return [time_ns for time_ns in dict.fromkeys(found) if time_ns not in (0, hold.for_ns)]


def merged(found: Sequence[Hold], events: Sequence[Entry]) -> Iterator[list[Hold]]:
    """The holds with two of one link as one: the first message, kept until the second would have been let go."""
    spans = [kept_ns(events, index) for index in range(len(found))]
    for first, one in enumerate(found):
        for second, other in enumerate(found):
            span, later = spans[first], spans[second]
            if first == second or span is None or later is None or span[0] > later[0]:
                continue
            if (one.message.source, one.message.target) != (other.message.source, other.message.target):
                continue
            hold = (
                Hold(one.message, other.until)
                if other.until is not None
                else Hold(one.message, None, max(later[1] - span[0], one.for_ns))
            )
            yield [hold if index == first else each for index, each in enumerate(found) if index != second]


def _latency_ns(scenario: Scenario) -> int:
    """How long a message takes at most, about."""
    longest = MILLISECOND_NS
    for name in ("apiLatency", "watchLatency", "storeLatency"):
        value = scenario.timing.get(name)
        if isinstance(value, int | float):
            longest = max(longest, round(value * SECOND_NS))
    return longest
