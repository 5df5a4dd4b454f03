"""The checks that watches deliver every event once, in order and in time, and that what they deliver is true.

Neighbours: ``deliveries`` computes what should have come, ``outages`` what may have held it back.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from typing import ClassVar, Self

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import WatchSession
from kemu.lab.checks.history.outages import Outages
from kemu.lab.checks.limits import MAX_WATCH_DELAY_NS, Limits
from kemu.lab.checks.results import Check, Result, seconds, several
from kemu.lab.checks.watches import deliveries
from kemu.lab.checks.watches.deliveries import Deliveries, Line
from kemu.runtime.runlog.events import (
    ActorCrashed,
    ActorFailed,
    ActorStarted,
    ActorStopped,
    ConnectionLost,
    FaultBegun,
    FaultEnded,
    RunEnded,
    WatchClosed,
    WatchListed,
)
from kemu.runtime.words import counted

_Events = (
    FaultBegun | FaultEnded | ActorStarted | ActorStopped | ActorCrashed | ConnectionLost | ActorFailed
    | WatchListed | WatchClosed | RunEnded
)  # fmt: skip

_WORDS = {"A": "ADDED", "M": "MODIFIED", "D": "DELETED"}


class WatchHasNoGaps(Check):
    """A watch delivers what happened after the list that it began with: nothing is missing, doubled, out of order or
    outside its selectors, and nothing takes longer than ``max_delay_ns``.

    The time of a fault that may hold events back does not count. When a run ends because nothing can happen any more,
    every live watch must have reached the last change that concerns it. An informer whose watch the server has ended
    must list again, within the same time.
    """

    id: ClassVar[str] = "watch-has-no-gaps"

    @classmethod
    def within(cls, limits: Limits) -> Self:
        return cls(limits.max_watch_delay_ns)

    def __init__(self, max_delay_ns: int = MAX_WATCH_DELAY_NS) -> None:
        self._max_delay_ns = max_delay_ns
        self._outages = Outages()
        self._relisting: dict[tuple[str, str, str, str, str], int] = {}
        """Since when informers have had no watch, by client and selection."""
        self._selections: dict[tuple[str, str], tuple[str, str, str, str]] = {}
        """By client and watch."""
        self._end_ns: int | None = None
        self._idle = False

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if self._end_ns is not None:
            return  # the shutdown
        if isinstance(event, WatchListed):
            selection = (event.resource, event.namespace, event.label_selector, event.field_selector)
            self._selections[actor, event.watch] = selection
            self._relisting.pop((actor, *selection), None)
        elif isinstance(event, WatchClosed):
            closed = self._selections.pop((actor, event.watch), None)
            if closed is not None and event.reason != "stopped":
                self._relisting[actor, *closed] = time_ns
        elif isinstance(event, RunEnded):
            self._end_ns, self._idle = time_ns, event.reason == "idle" and event.still
        else:
            if isinstance(event, (ActorStarted, ActorStopped, ActorCrashed, ActorFailed)):
                for key in [key for key in self._relisting if key[0] == actor]:
                    del self._relisting[key]
            if isinstance(event, (FaultBegun, FaultEnded, ActorStarted, ActorStopped, ActorCrashed, ConnectionLost)):
                self._outages.on_event(time_ns, actor, event)

    def result(self, history: History) -> Result:
        end_ns = history.now_ns if self._end_ns is None else self._end_ns
        findings: list[str] = []
        delivered = 0
        lines = deliveries.lines(history)
        for session in history.watches:
            delivered += len(session.revisions)
            found = _gaps(session, lines[0].of(session.selection))
            if not found:
                found = self._late(session, lines[0].of(session.selection), end_ns)
            elif _follows_another(session, lines):
                continue
            findings += [f"{session.actor} ({session.watch}): {text}" for text in found]
        for (actor, resource, *_), since_ns in self._relisting.items():
            if self._is_late(actor, since_ns, end_ns):
                findings.append(f"{actor}: its watch of {resource} ended at {seconds(since_ns)}: it did not list again")
        if findings:
            return Result(self.id, False, several(findings))
        if not history.watches:
            return Result(self.id, None, "there were no watches")
        return Result(
            self.id, True, f"{counted(len(history.watches), 'watch', 'watches')}, {counted(delivered, 'event')}"
        )

    def _late(self, session: WatchSession, expected: Deliveries, end_ns: int) -> list[str]:
        """What came too late, or had not come at the end; of a watch without gaps."""
        first = bisect_right(expected.revisions, session.since)
        made = expected.times_ns
        for time_ns, index in session.batches:
            since_ns = made[first + index]
            if time_ns - since_ns > self._max_delay_ns and self._is_late(session.actor, since_ns, time_ns):
                revision = session.revisions[index]
                return [f"revision {revision} of {seconds(since_ns)} came only at {seconds(time_ns)}"]
        missing = first + len(session.revisions)
        if missing == len(made):
            return []
        what = f"revision {expected.revisions[missing]} of {seconds(made[missing])} never came"
        since_ns = max(made[missing], session.listed_ns)
        if session.ended_ns is not None:
            late = self._is_late(session.actor, since_ns, session.ended_ns)
            return [f"{what}, until the watch ended at {seconds(session.ended_ns)}"] if late else []
        if self._idle and not self._outages.last_still(session.actor):
            return [f"{what}, and nothing could happen any more"]
        return [what] if self._is_late(session.actor, since_ns, end_ns) else []

    def _is_late(self, client: str, since_ns: int, until_ns: int) -> bool:
        return (
            until_ns - since_ns > self._max_delay_ns
            and self._outages.without(client, since_ns, until_ns) > self._max_delay_ns
        )


_OTHERWISE = "other contents"


class WatchEventsAreTrue(Check):
    """Every event of a watch has the type and the bytes that the store's history gives it, and so have the objects of
    the list that the watch began with."""

    id: ClassVar[str] = "watch-events-are-true"

    def result(self, history: History) -> Result:
        findings: list[str] = []
        events = objects = 0
        lines = deliveries.lines(history)
        for session in history.watches:
            events += len(session.revisions)
            objects += session.objects if session.digest is not None else 0
            found = _untruths(session, lines[0].of(session.selection))
            if found and session.watch.partition("#")[0] in history.read_anew:
                found = [text for text in found if _OTHERWISE not in text]
            if found and not _follows_another(session, lines):
                findings += [f"{session.actor} ({session.watch}): {text}" for text in found]
        if findings:
            return Result(self.id, False, several(findings))
        if not events and not objects:
            return Result(self.id, None, "no watch delivered anything")
        return Result(self.id, True, f"{counted(events, 'event')}, {counted(objects, 'object')} in lists")


def _follows_another(session: WatchSession, lines: list[Line]) -> bool:
    """Whether the watch is in order on a line of history that the store lost while the watch went on."""
    others = (line for line in lines[1:] if line.ended_ns is not None and line.ended_ns >= session.listed_ns)
    expected = (line.of(session.selection) for line in others)
    return any(not _gaps(session, each) and not _untruths(session, each) for each in expected)


def _gaps(session: WatchSession, expected: Deliveries) -> list[str]:
    """Between the list and the last event that was delivered."""
    got = session.revisions
    first = bisect_right(expected.revisions, session.since)
    found = []
    if expected.revisions[first : first + len(got)] != got:
        for earlier, later in itertools.pairwise(got):
            if later <= earlier:
                found.append(f"revision {later} came after {earlier}")
        last = bisect_right(expected.revisions, got[-1])
        wrong = set(expected.revisions[first:last]).symmetric_difference(got)
        if wrong:
            revision = min(wrong)
            found.append(f"revision {revision} {'was missed' if revision not in got else 'should not have come'}")
        return found
    for revision, count in session.bookmarks:
        told = bisect_right(expected.revisions, revision) - first
        if told > count:
            missed = expected.revisions[first + count]
            found.append(f"a bookmark says revision {revision}, but {missed} had not come")
    return found


def _untruths(session: WatchSession, expected: Deliveries) -> list[str]:
    found = []
    if session.digest is not None:
        objects, digest = expected.listed(session.since)
        if session.objects != objects:
            listed = counted(session.objects, "object")
            found.append(f"the list at revision {session.since} has {listed}, the store had {objects}")
        elif session.digest != digest:
            found.append(f"the list at revision {session.since} has {_OTHERWISE} than the store had then")
    got = session.revisions
    first = bisect_right(expected.revisions, session.since)
    here = slice(first, first + len(got))
    if (
        expected.types[here] == session.types
        and expected.digests[here] == session.digests
        and expected.revisions[here] == got
    ):
        return found
    places = {revision: index for index, revision in enumerate(expected.revisions)}
    for revision, kind, digest in zip(got, session.types, session.digests, strict=True):
        index = places.get(revision)
        if index is None:
            continue  # watch-has-no-gaps tells of it
        if kind != expected.types[index]:
            found.append(f"revision {revision} came as {_WORDS[kind]}, but is {_WORDS[expected.types[index]]}")
        elif digest != expected.digests[index]:
            found.append(f"revision {revision} came with {_OTHERWISE} than the store had")
    return found
