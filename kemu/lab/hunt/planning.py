"""Which perturbations are worth a trial, from what the controllers did in the reference.

A write is worth a crash, a lost answer and, if it compares versions, a conflict. A change that a controller was told of
is worth something where it wrote thereupon: otherwise whether and when it sees the change makes no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest

from kemu.lab.hunt.courses import Change, Course, Notice, Write, manifest
from kemu.lab.hunt.perturbations import CONFLICT, CRASH, DELAY, EXPIRE, FREEZE, HIDE, LOSE, Perturbation, Plan, Point
from kemu.lab.hunt.trials import Outcome

_WRITES_OF_ONE = 4
"""Writes of a controller to one object that are perturbed: the first ones, and the last one."""
_RESTARTS = 3
"""Moments at which a controller is started again to see one old state."""
_REACTION_NS = 3_000_000_000
"""Virtual time within which a write follows from what a controller was told."""
_NOT_POINTS = frozenset(("Event", "Lease"))


def plans(reference: Outcome) -> list[Plan]:
    """By kind in turns, so that a hunt that is cut short has tried some of each."""
    course = reference.course
    writes = [one for one in course.writes if one.time_ns >= reference.begun_ns and _counts(course, one)]
    kinds: list[list[Perturbation]] = [
        list(_of_writes(course, writes, CRASH)),
        list(_freezes(course, writes, reference.begun_ns)),
        list(_hides(course, writes, reference.begun_ns)),
        list(_of_writes(course, writes, CONFLICT)),
        list(_of_writes(course, writes, LOSE)),
        list(_of_kinds(course, writes, reference.begun_ns)),
    ]
    found = [one for one in chain.from_iterable(zip_longest(*kinds)) if one is not None]
    return [(one,) for one in dict.fromkeys(found)]


def brute_force(reference: Outcome) -> int:
    """How many there would be without a thought: each perturbation at each point, each old state at each later time."""
    course = reference.course
    writes = [one for one in course.writes if one.time_ns >= reference.begun_ns]
    changes = [one for one in course.changes if one.time_ns >= reference.begun_ns]
    controllers = len({one.controller for one in writes})
    return 3 * len(writes) + controllers * (len(changes) * (len(changes) - 1) // 2 + 3 * len(changes))


def _counts(course: Course, write: Write) -> bool:
    return write.status < 300 and course.named(write.key).kind not in _NOT_POINTS


def _point(course: Course, key: str, nth: int) -> Point:
    named = course.named(key)
    return Point(named.kind, named.name, named.namespace, nth)


def _of_writes(course: Course, writes: Sequence[Write], what: str) -> Iterator[Perturbation]:
    by_object: dict[tuple[str, str], list[Write]] = defaultdict(list)
    for write in writes:
        if what != CONFLICT or write.verb in ("update", "patch"):
            by_object[write.controller, write.key].append(write)
    for (controller, key), alike in by_object.items():
        chosen = alike if len(alike) <= _WRITES_OF_ONE else [*alike[: _WRITES_OF_ONE - 1], alike[-1]]
        for write in chosen:
            yield Perturbation(what, controller, _point(course, key, write.nth))


def _effective(course: Course, writes: Sequence[Write], since_ns: int) -> Iterator[tuple[Notice, list[Write]]]:
    """What controllers were told of, with the writes that followed."""
    for notice in course.notices:
        if notice.time_ns < since_ns or course.named(notice.key).kind in _NOT_POINTS:
            continue
        followed = [
            write
            for write in writes
            if write.controller == notice.controller and 0 <= write.time_ns - notice.time_ns <= _REACTION_NS
        ]
        if followed:
            yield notice, followed


def _changes_of(course: Course, since_ns: int) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = defaultdict(list)
    for change in course.changes:
        if change.time_ns >= since_ns:
            found[change.key].append(change)
    return found


def _freezes(course: Course, writes: Sequence[Write], since_ns: int) -> Iterator[Perturbation]:
    """An old state that made the controller write, seen again when what it wrote then has changed once more."""
    changes = _changes_of(course, since_ns)
    for notice, followed in _effective(course, writes, since_ns):
        at = next((one for one in changes[notice.key] if one.revision == notice.revision), None)
        if at is None or at.value is None or not _is_telling(at, changes[notice.key]):
            continue
        touched = dict.fromkeys([notice.key, *(write.key for write in followed)])
        moments = [
            later
            for key in touched
            for later in changes.get(key, ())
            if later.revision > followed[0].revision and later.revision > at.revision
        ]
        # Objects that come anew first, then the latest moments.
        moments.sort(key=lambda one: (not one.is_new, -one.revision))
        for moment in moments[:_RESTARTS]:
            yield Perturbation(
                FREEZE,
                notice.controller,
                _point(course, at.key, at.nth),
                _point(course, moment.key, moment.nth),
            )


def _hides(course: Course, writes: Sequence[Write], since_ns: int) -> Iterator[Perturbation]:
    """A state that made the controller write, and that did not last."""
    changes = _changes_of(course, since_ns)
    written = {(each.controller, each.key, _made(changes, each)) for each in writes}
    for notice, _ in _effective(course, writes, since_ns):
        own = changes[notice.key]
        at = next((place for place, one in enumerate(own) if one.revision == notice.revision), None)
        if at is None or at + 1 >= len(own) or not _is_telling(own[at], own):
            continue
        # What the controller itself has changed thereupon would not have come without it.
        if (notice.controller, notice.key, own[at + 1].revision) not in written:
            yield Perturbation(HIDE, notice.controller, _point(course, notice.key, own[at].nth))


def _made(changes: Mapping[str, Sequence[Change]], write: Write) -> int:
    """The revision that a write has made."""
    return max((one.revision for one in changes.get(write.key, ()) if one.revision <= write.revision), default=0)


def _is_telling(change: Change, own: Sequence[Change]) -> bool:
    """Whether more than the status has changed, or the object is going."""
    if change.is_new or change.value is None:
        return True
    before = next((one for one in reversed(own) if one.revision < change.revision), None)
    if before is None or before.value is None:
        return True
    now, was = manifest(change.key, change.value), manifest(before.key, before.value)
    return (
        any(
            now["metadata"].get(key) != was["metadata"].get(key)
            for key in ("generation", "deletionTimestamp", "finalizers", "labels", "annotations")
        )
        or any(now.get(key) != was.get(key) for key in ("spec", "data"))
        or _ready(now) != _ready(was)
    )


def _ready(found: object) -> object:
    """What controllers wait for in a status."""
    status = found.get("status", {}) if isinstance(found, dict) else {}
    conditions = [(one.get("type"), one.get("status")) for one in status.get("conditions", ())]
    return conditions, status.get("phase"), status.get("readyReplicas"), status.get("replicas")


def _of_kinds(course: Course, writes: Sequence[Write], since_ns: int) -> Iterator[Perturbation]:
    """Each kind of which news make the controller write: watches that end, and events that come late. Watches that end
    before an object goes are worth a trial of their own: lists do not tell what is no longer there."""
    seen = set[tuple[str, str, bool]]()
    for notice, _ in _effective(course, writes, since_ns):
        kind, is_gone = course.named(notice.key).kind, notice.what == "DELETED"
        if (notice.controller, kind, is_gone) in seen:
            continue
        change = next((one for one in course.changes if (one.key, one.revision) == (notice.key, notice.revision)), None)
        if change is not None:
            seen.add((notice.controller, kind, is_gone))
            for what in (EXPIRE,) if is_gone else (EXPIRE, DELAY):
                yield Perturbation(what, notice.controller, _point(course, notice.key, change.nth))
