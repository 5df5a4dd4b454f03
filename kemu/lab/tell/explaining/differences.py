"""The first event that differs between a failing run and its passing sibling, in words."""

from __future__ import annotations

from dataclasses import dataclass

from kemu.emulated.objects.plain import Json
from kemu.lab.tell.explaining.names import at
from kemu.lab.tell.explaining.tellings import Telling
from kemu.runtime.runlog.events import RunEnded, Transaction
from kemu.runtime.runlog.frames import Entry


@dataclass(frozen=True)
class Difference:
    """What one run has and the other has later, or never."""

    text: str
    """A clause: what it is."""
    event: int
    """Its place in the log of the run that has it."""
    time_ns: int
    actor: str
    is_of_passing: bool
    """The passing run has it."""
    later_ns: int | None
    """When the other run has it, too."""

    def __str__(self) -> str:
        where = "the passing run" if self.is_of_passing else "this run"
        other = "in this run" if self.is_of_passing else "in the passing run"
        late = f"only at {at(self.later_ns)}" if self.later_ns is not None else "it does not happen"
        return f"First difference, at {at(self.time_ns)} (event {self.event} of {where}): {self.text}; {other} {late}."


def first(failing: Telling, passing: Telling) -> Difference | None:
    """The first one that can be told in words: steps, and what actors hear."""
    ours, theirs = _telling(failing), _telling(passing)
    for one, other in zip([*ours, None], [*theirs, None], strict=False):
        if one is None or other is None or _content(failing.events[one]) != _content(passing.events[other]):
            if one is None and other is None:
                break
            return _of(one, other, failing, passing)
    for one, other in zip(ours, theirs, strict=False):
        mine, their = failing.events[one], passing.events[other]
        if mine[0] != their[0]:  # The same, only later.
            return Difference(passing.told(other), other, their[0], their[1], True, mine[0])
    return None


def _telling(telling: Telling) -> list[int]:
    """The places of the events that have words."""
    own = {step.at.place for step in telling.steps}
    ended = next((i for i, event in enumerate(telling.events) if event[2] == RunEnded.KIND), len(telling.events))
    return [i for i, event in enumerate(telling.events[:ended]) if i in own or telling.hears(event) != ""]


def _of(one: int | None, other: int | None, failing: Telling, passing: Telling) -> Difference | None:
    ours = failing.events[one] if one is not None else None
    theirs = passing.events[other] if other is not None else None
    # One of the two has the other event later, or not at all: what one run has first is what differs.
    theirs_later = _later(theirs, failing, theirs[0]) if theirs is not None else None
    ours_later = _later(ours, passing, ours[0]) if ours is not None else None
    if theirs is not None and other is not None and (ours is None or _comes(theirs_later) >= _comes(ours_later)):
        text = passing.told(other)
        return Difference(text, other, theirs[0], theirs[1], True, theirs_later[0] if theirs_later else None)
    if ours is not None and one is not None:
        return Difference(failing.told(one), one, ours[0], ours[1], False, ours_later[0] if ours_later else None)
    return None


def _later(event: Entry, telling: Telling, since_ns: int) -> Entry | None:
    """The same event in the other run, at its own time there."""
    wanted = _content(event)
    same = (one for one in telling.events if one[0] >= since_ns and one[1:3] == event[1:3])
    return next((one for one in same if _content(one) == wanted), None)


def _content(event: Entry) -> Json:
    """Without times, and without what follows from them."""
    data = {key: value for key, value in event.data.items() if key not in _TIMES}
    if isinstance(event.data, Transaction):
        # The values hold times.
        data = {"keys": [(op, key) for op, key, *_ in event.data.changes]}
    return event[1], event[2], data


_TIMES = ("start", "took", "sent", "digests", "acks", "rev", "bases", "revs", "n")


def _comes(event: Entry | None) -> int:
    return event[0] if event is not None else 1 << 62
