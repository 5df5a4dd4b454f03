"""The first event that differs between a failing run and its passing sibling, in words."""

from __future__ import annotations

from typing import Any

from kemu.exploration.explaining.names import at, sentence
from kemu.exploration.explaining.tellings import Telling
from kemu.runlog.frames import Event


def told(differs: tuple[int, int], failing: Telling, passing: Telling) -> str:
    """``First difference, at 5.308 s: scheduler red hears that …; in this run only at 6.004 s.``"""
    ours, theirs = _event(failing, differs[0]), _event(passing, differs[1])
    # One of the two has the other event later, or not at all: what one run has first is what differs.
    theirs_later = _later(theirs, failing, differs[0]) if theirs is not None else None
    ours_later = _later(ours, passing, differs[1]) if ours is not None else None
    if theirs is not None and (ours is None or _comes(theirs_later) >= _comes(ours_later)):
        what, index, where = _words(theirs, passing), differs[1], "the passing run"
        late = f"; in this run {_when(theirs_later)}"
        time_ns = theirs[0]
    elif ours is not None:
        what, index, where = _words(ours, failing), differs[0], "this run"
        late = f"; in the passing run {_when(ours_later)}"
        time_ns = ours[0]
    else:
        return ""
    return f"First difference, at {at(time_ns)} (event {index} of {where}): {what}{late}."


def _event(telling: Telling, index: int) -> Event | None:
    return telling.events[index] if index < len(telling.events) else None


def _later(event: Event, telling: Telling, since: int) -> Event | None:
    """The same event in the other run, at its own time there."""
    wanted = _content(event)
    return next((one for one in telling.events[since:] if one[1:3] == event[1:3] and _content(one) == wanted), None)


def _content(event: Event) -> Any:
    data = dict(event[3])
    for key in ("start", "took", "sent", "digests", "acks"):
        data.pop(key, None)
    return event[2], data


def _comes(event: Event | None) -> int:
    return event[0] if event is not None else 1 << 62


def _when(event: Event | None) -> str:
    return f"only at {at(event[0])}" if event is not None else "it does not"


def _words(event: Event, telling: Telling) -> str:
    _, actor, kind, data = event
    who = telling.names.actor(actor)
    if kind == "watch.events":
        changes = [change for revision in data["revs"] for change in telling.known.by_revision.get(revision, ())]
        clauses = [telling.changed(change) for change in changes]
        return f"{who} hears that {' and '.join(dict.fromkeys(clauses)) or 'something has changed'}"
    for step in telling.steps:
        if telling.events[step.at.index] is event:
            return step.text
    about = data.get("pod") or data.get("name") or ""
    return f"{who} logs {kind}{f' of {about}' if about else ''}"


__all__ = ["sentence", "told"]
