"""Which of what a controller was told made it write: told from one run in which nothing is perturbed.

A controller works in spells: it is told something, reads, writes, is told of its own writes, and falls silent. Time
waits for it meanwhile, so that little of it passes within a spell. All that it was told in a spell before a write may
be why it wrote. What it writes later (after a timer) follows from a notice only if the two have to do with each other.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kemu.lab.hunt.courses import Change, Course, Notice, Write, manifest
from kemu.lab.hunt.judging import states
from kemu.lab.hunt.projects import SECOND
from kemu.lab.hunt.running.trials import Outcome

SPELL_NS = 250_000_000
"""Virtual time without a word after which a spell is over."""
LATER_NS = 10_000_000_000
"""Virtual time within which a timer may lead to a write."""
_NODES = "kube-node-lease"
NOT_POINTS = frozenset(("Event", "Lease"))
_ORDINAL = re.compile(r"\d+")
_NOISE = frozenset(("resourceVersion", "managedFields", "generation", "observedGeneration", "lastHeartbeatTime"))
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_GOING = "metadata.deletionTimestamp"


@dataclass(frozen=True)
class Impact:
    """What a controller was told of, with the writes that followed."""

    notice: Notice
    change: Change
    writes: tuple[Write, ...]
    paths: frozenset[str]
    """Of the fields that have changed; empty where the object is new or gone."""
    shrinks: bool
    """A number in the spec became smaller."""

    @property
    def is_end(self) -> bool:
        """The object is gone, or going, or scaled down: where what is old does most harm."""
        return self.change.value is None or _GOING in self.paths or self.shrinks


@dataclass
class Analysis:
    """Of the course of one run from its first step on."""

    outcome: Outcome
    _manifests: dict[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)

    @property
    def course(self) -> Course:
        return self.outcome.course

    @cached_property
    def writes(self) -> list[Write]:
        """Those that happened."""
        return [
            one
            for one in self.course.writes
            if one.time_ns >= self.outcome.begun_ns and one.status < 300 and self.kind(one.key) not in NOT_POINTS
        ]

    @cached_property
    def changes(self) -> dict[str, list[Change]]:
        """By key, in order, since the first step."""
        found: dict[str, list[Change]] = defaultdict(list)
        for change in self.course.changes:
            if change.time_ns >= self.outcome.begun_ns:
                found[change.key].append(change)
        return found

    @cached_property
    def notices(self) -> list[Notice]:
        return [
            one
            for one in self.course.notices
            if one.time_ns >= self.outcome.begun_ns and self.kind(one.key) not in NOT_POINTS
        ]

    @cached_property
    def impacts(self) -> list[Impact]:
        """In the order of the notices; of several watches of one thing the first one."""
        found: dict[tuple[str, str, int], Impact] = {}
        by_controller: dict[str, list[Write]] = defaultdict(list)
        for write in self.writes:
            by_controller[write.controller].append(write)
        for notice in self.notices:
            place = notice.controller, notice.key, notice.revision
            change = next((one for one in self.changes.get(notice.key, ()) if one.revision == notice.revision), None)
            if place in found or change is None:
                continue
            paths, shrinks = self._difference(change)
            if paths is not None and not paths:
                continue  # nothing that says anything
            writes = tuple(self._following(notice, change, by_controller[notice.controller]))
            if writes:
                found[place] = Impact(notice, change, writes, paths or frozenset(), shrinks)
        return list(found.values())

    def _following(self, notice: Notice, change: Change, writes: Sequence[Write]) -> Iterator[Write]:
        end_ns = self._spell_end(notice)
        for write in writes:
            late_ns = write.time_ns - notice.time_ns
            if late_ns < 0 or late_ns > LATER_NS:
                continue
            if write.time_ns <= end_ns or self._are_related(change, write):
                yield write

    @cached_property
    def _words(self) -> dict[str, list[int]]:
        """By controller: when it was told something, or wrote, in ns."""
        found: dict[str, list[int]] = defaultdict(list)
        for notice in self.course.notices:
            found[notice.controller].append(notice.time_ns)
        for write in self.course.writes:
            found[write.controller].append(write.time_ns)
        return {name: sorted(times) for name, times in found.items()}

    def _spell_end(self, notice: Notice) -> int:
        times = self._words[notice.controller]
        at = bisect_left(times, notice.time_ns)
        while at + 1 < len(times) and self._goes_on(times[at], times[at + 1]):
            at += 1
        return times[at]

    def _goes_on(self, first_ns: int, second_ns: int) -> bool:
        """Whether two words of a controller belong to one spell. Before the user does something, it has fallen
        silent."""
        if second_ns - first_ns > SPELL_NS:
            return False
        return bisect_right(self._wishes_ns, second_ns) == bisect_right(self._wishes_ns, first_ns)

    @cached_property
    def _wishes_ns(self) -> list[int]:
        return [one.time_ns for one in self.course.changes if one.is_asked]

    def spell_of(self, write: Write) -> tuple[int, int]:
        """When the spell of a write begins and ends, in ns."""
        times = self._words[write.controller]
        first = last = bisect_right(times, write.time_ns) - 1
        while first > 0 and self._goes_on(times[first - 1], times[first]):
            first -= 1
        while last + 1 < len(times) and self._goes_on(times[last], times[last + 1]):
            last += 1
        return times[first], times[last]

    def _are_related(self, change: Change, write: Write) -> bool:
        """Whether one is the other, or names it."""
        if change.key == write.key:
            return True
        told, written = self.course.named(change.key), self.course.named(write.key)
        made = self.made(write)
        return self._names(change, written.name) or (made is not None and self._names(made, told.name))

    def _names(self, change: Change, name: str) -> bool:
        value = change.value
        if value is None:
            before = self.before(change)
            value = None if before is None else before.value
        return value is not None and name.encode() in value

    def is_made_once(self, write: Write) -> bool:
        """Whether a write creates an object that its controller never writes before or thereafter."""
        return write.verb == "create" and self._counts[write.controller, write.key] == 1

    @cached_property
    def _counts(self) -> Counter[tuple[str, str]]:
        return Counter((one.controller, one.key) for one in self.writes)

    # Objects

    def kind(self, key: str) -> str:
        return self.course.named(key).kind

    def before(self, change: Change) -> Change | None:
        """The state that a change has replaced."""
        own = [one for one in self._all_changes.get(change.key, ()) if one.revision < change.revision]
        return own[-1] if own else None

    @cached_property
    def _all_changes(self) -> dict[str, list[Change]]:
        found: dict[str, list[Change]] = defaultdict(list)
        for change in self.course.changes:
            found[change.key].append(change)
        return found

    def made(self, write: Write) -> Change | None:
        """The change that a write has made."""
        return next((one for one in reversed(self.changes.get(write.key, ())) if one.revision <= write.revision), None)

    def manifest(self, change: Change) -> Mapping[str, Any]:
        place = change.key, change.revision
        if place not in self._manifests:
            assert change.value is not None
            self._manifests[place] = manifest(change.key, change.value)
        return self._manifests[place]

    def _difference(self, change: Change) -> tuple[frozenset[str] | None, bool]:
        """Paths of the fields that differ from the state before, without noise; None: it is new or gone. And whether a
        number in the spec became smaller."""
        before = self.before(change)
        if change.value is None or change.is_new or before is None or before.value is None:
            return None, False
        now, was = dict(_leaves(self.manifest(change), "")), dict(_leaves(self.manifest(before), ""))
        changed = [path for path in now.keys() | was.keys() if now.get(path) != was.get(path)]
        shrinks = any(
            path.startswith("spec.")
            and _is_number(now.get(path))
            and _is_number(was.get(path))
            and now[path] < was[path]
            for path in changed
        )
        return frozenset(_ORDINAL.sub("#", path) for path in changed), shrinks

    def role(self, key: str) -> str:
        """What an object is called without what distinguishes it from its like: numbers, and random ends."""
        named, prefix = self.course.named(key), self.prefix(key)
        name = f"{prefix}*" if prefix else named.name
        return f"{named.kind} {named.namespace}/{_ORDINAL.sub('#', name)}"

    def elects(self, controller: str) -> bool:
        """Whether another replica would take over from it: it leads by a Lease. Those of nodes elect nobody."""
        return not controller.endswith(SECOND) and any(
            one.controller == controller and named.kind == "Lease" and named.namespace != _NODES
            for one in self.course.writes
            for named in (self.course.named(one.key),)
        )

    def has_random_name(self, key: str) -> bool:
        return bool(self.prefix(key))

    def prefix(self, key: str) -> str:
        """A name without its random end; empty: it has none."""
        made = next((one for one in self._all_changes.get(key, ()) if one.value is not None), None)
        return "" if made is None else states.prefix_of(self.manifest(made))


def _leaves(value: object, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            if key not in _NOISE:
                yield from _leaves(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _leaves(one, f"{path}[{index}]")
    elif not isinstance(value, str) or not _TIME.match(value) or path == _GOING:
        yield path, value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
