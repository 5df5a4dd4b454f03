"""Which perturbations are worth a trial, from what the controllers did in the reference.

A write is worth a crash, a lost answer, a refusal and, if it compares versions, a conflict. A change that a controller
was told of is worth something where it wrote thereupon (:mod:`kemu.lab.hunt.impacts`): otherwise whether and when it
sees the change makes no difference. Points that are alike (the pods of one StatefulSet) are tried twice, the first and
the last one. What finds most comes first: old views of what is deleted or made smaller, and crashes between two writes.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kemu.errors import KemuError
from kemu.lab.hunt.courses import ANY_END, ENDS, Change, Write
from kemu.lab.hunt.impacts import Analysis, Impact
from kemu.lab.hunt.perturbations import ALL, KINDS, Kind, Perturbation, Plan, Point
from kemu.lab.hunt.running.trials import Outcome
from kemu.runtime.env import SECOND_NS

_WRITES_OF_ONE = 4
"""Writes of a controller to one object that are perturbed: the first ones, and the last one."""
_RESTARTS = 3
"""Moments at which a controller is started again to see one old state."""
_ALIKE = 2
"""Of points that are alike."""
_MEET_NS = 5_000_000_000
"""Virtual time in which changes of two kinds can overtake each other."""
_AFTERWARDS_NS = 1_000_000_000
"""Virtual time in which it is heard what came of a write."""
_HIDDEN_NS = 60_000_000_000
"""Virtual time for which a change is hidden at most."""
_PAIRS = 40
_FIELDS = 40
"""Fields of one object that are looked at for wrong values."""
_TURNS = dict.fromkeys(
    (Kind.FREEZE, Kind.CRASH, Kind.LAG, Kind.HIDE, Kind.CONFLICT, Kind.EXPIRE, Kind.LOSE, Kind.LATE), 0
)
_TURNS |= dict.fromkeys((Kind.DELAY, Kind.REFUSE, Kind.END, Kind.DEPOSE), 1)
_TURNS |= dict.fromkeys((Kind.PAUSE, Kind.OUTAGE, Kind.SLOW), 2)
"""In which turn the first one of each kind comes; they are in the order of their promise."""
_AT_A_TURN = {Kind.FREEZE: 2, Kind.CRASH: 2}
"""How many of a kind a turn has, if not one."""

_T = TypeVar("_T")
Ranked = tuple[int, Perturbation]
"""The lower the number, the greater the promise."""


def plans(reference: Outcome, *, pairs: bool = False, mutations: bool = False) -> list[Plan]:
    """Kinds in turns, of each the most promising ones first, so that a hunt that is cut short has tried what finds
    most. ``pairs``: thereafter two at once, too; ``mutations``: and fields with wrong values."""
    analysis = Analysis(reference)
    found: list[tuple[float, int, Perturbation]] = []
    order = list(_TURNS)
    for what, chosen in _singles(analysis).items():
        chosen = sorted(chosen, key=lambda each: (each[0], not _is_of_a_wish(analysis, each[1])))
        for place, one in enumerate(dict.fromkeys(one for _, one in chosen)):
            found.append((_TURNS[what] + place / _AT_A_TURN.get(what, 1), order.index(what), one))
    singles: list[Plan] = [(_among_alike(analysis, one),) for _, _, one in sorted(found, key=lambda each: each[:2])]
    return [*singles, *(_pairs(analysis) if pairs else ()), *(_mutations(analysis) if mutations else ())]


def check(plan: Plan, reference: Outcome) -> None:
    """Raises KemuError where a plan cannot come about."""
    analysis = Analysis(reference)
    for one in plan:
        if one.what == Kind.DEPOSE and not analysis.elects(one.controller):
            raise KemuError(f"{Kind.DEPOSE}: {one.controller} leads by no Lease, so nobody takes over from it")


def _is_of_a_wish(analysis: Analysis, one: Perturbation) -> bool:
    """Whether it is about a change that the user has made: what controllers are there for."""
    change = None if one.is_about_writes else _change_at(analysis, one.at)
    return change is not None and change.is_asked


def _among_alike(analysis: Analysis, one: Perturbation) -> Perturbation:
    """With points that are counted among creations and deletions, where they are one: how often an object is updated
    before depends on times, and differs from trial to trial. So do the random ends of names: their like is counted."""
    course = analysis.course
    if one.is_about_writes:
        key = course.key(one.at.subject) if one.at.name else ""
        write = next(
            (w for w in course.writes if (w.controller, w.key, w.nth) == (one.controller, key, one.at.nth)), None
        )
        is_rare = write is not None and write.nth_of_verb and write.verb in ("create", "delete")
        return replace(one, at=replace(one.at, nth=write.nth_of_verb, of=write.verb)) if write and is_rare else one
    restart = None if one.restart_at is None else _change_among_alike(analysis, one.restart_at)
    return replace(one, at=_change_among_alike(analysis, one.at), restart_at=restart)


def _change_among_alike(analysis: Analysis, point: Point) -> Point:
    key = analysis.course.key(point.subject)
    change = next((one for one in analysis.course.changes if (one.key, one.nth) == (key, point.nth)), None)
    if change is None:
        return point
    prefix = analysis.prefix(key)
    if not prefix:
        return replace(point, nth=change.nth_of_what, of=change.what) if change.what else point
    alike = replace(point, name=f"{prefix}{ANY_END}", of=change.what)
    until_then = (
        one
        for one in analysis.course.changes
        if one.revision <= change.revision and (not change.what or one.what == change.what)
    )
    return replace(alike, nth=sum(analysis.course.fits(alike.subject, one.key) for one in until_then))


def every(reference: Outcome) -> Iterator[Plan]:
    """All that there would be without a thought: each perturbation at each point, each old state at each later time."""
    analysis = Analysis(reference)
    controllers = dict.fromkeys(one.controller for one in analysis.writes)
    changes = [one for own in analysis.changes.values() for one in own]
    for write in analysis.writes:
        at = _at_write(analysis, write)
        for what in (
            Kind.CRASH,
            Kind.LOSE,
            Kind.LATE,
            Kind.REFUSE,
            Kind.PAUSE,
            Kind.OUTAGE,
            Kind.SLOW,
            *([Kind.CONFLICT] if write.compares else []),
        ):
            yield (Perturbation(what, write.controller, at),)
        if analysis.elects(write.controller):
            yield (Perturbation(Kind.DEPOSE, write.controller, at),)
    for controller in controllers:
        for change in changes:
            at = _point(analysis, change.key, change.nth)
            for what in (Kind.HIDE, Kind.EXPIRE, Kind.END, Kind.DELAY):
                yield (Perturbation(what, controller, at),)
            for scope in ("", ALL):
                yield (Perturbation(Kind.LAG, controller, at, scope=scope),)
                for later in changes:
                    if later.revision > change.revision:
                        moment = _point(analysis, later.key, later.nth)
                        yield (Perturbation(Kind.FREEZE, controller, at, moment, scope=scope),)


def brute_force(reference: Outcome) -> int:
    """How many :func:`every` has."""
    analysis = Analysis(reference)
    writes = sum(7 + one.compares + analysis.elects(one.controller) for one in analysis.writes)
    controllers = len({one.controller for one in analysis.writes})
    revisions = sorted(one.revision for own in analysis.changes.values() for one in own)
    count = len(revisions)
    later = sum(count - bisect_right(revisions, revision) for revision in revisions)
    return writes + controllers * (6 * count + 2 * later)


def _singles(analysis: Analysis) -> dict[Kind, list[Ranked]]:
    found: dict[Kind, list[Ranked]] = {what: [] for what in KINDS}
    for rank, one in (
        *_of_writes(analysis),
        *_late_answers(analysis),
        *_freezes(analysis),
        *_of_impacts(analysis),
        *_delays(analysis),
    ):
        found[one.what].append((rank, one))
    return found


def _at_write(analysis: Analysis, write: Write, later: int = 0) -> Point:
    """Objects whose names the store makes are counted by their kind."""
    if analysis.has_random_name(write.key):
        return Point(analysis.kind(write.key), "", "default", write.nth_of_kind + later)
    return _point(analysis, write.key, write.nth + later)


def _point(analysis: Analysis, key: str, nth: int) -> Point:
    named = analysis.course.named(key)
    return Point(named.kind, named.name, named.namespace, nth)


def _few(found: Iterable[_T], alike: Callable[[_T], Hashable], most: int = _ALIKE) -> list[_T]:
    """Of those that are alike the first ones, and the last one."""
    groups: dict[Hashable, list[_T]] = defaultdict(list)
    for one in found:
        groups[alike(one)].append(one)
    return [one for own in groups.values() for one in (own if len(own) <= most else [*own[: most - 1], own[-1]])]


# At writes


def _of_writes(analysis: Analysis) -> Iterator[Ranked]:
    chosen = _few(analysis.writes, lambda one: (one.controller, one.key, one.verb == "delete"), _WRITES_OF_ONE)
    chosen = _few(chosen, lambda one: (one.controller, one.verb, analysis.role(one.key), one.nth))
    kinds = set[tuple[str, str]]()
    refused = set[Hashable]()
    for write in chosen:
        at = _at_write(analysis, write)
        spell = [
            one
            for one in analysis.writes
            if one.controller == write.controller and _is_within(one, analysis.spell_of(write))
        ]
        # Between two writes something is half done; what is made once is not made good by the next round.
        rank = 0 if write is not spell[-1] else 2
        rank = -1 if write.verb == "delete" or _is_half(analysis, write, spell) else rank + int(write.verb != "create")
        yield rank, Perturbation(Kind.CRASH, write.controller, at)
        yield rank, Perturbation(Kind.LOSE, write.controller, at)
        if write.compares:
            yield int(write.verb == "patch"), Perturbation(Kind.CONFLICT, write.controller, at)
        alike = write.controller, write.verb, analysis.role(write.key)
        if alike not in refused:
            refused.add(alike)
            yield int(write is spell[0]), Perturbation(Kind.REFUSE, write.controller, at)
            if write is not spell[-1]:
                yield rank, Perturbation(Kind.OUTAGE, write.controller, at)
            if analysis.elects(write.controller):
                yield rank, Perturbation(Kind.DEPOSE, write.controller, at)
            if _others_go_on(analysis, write):
                yield rank, Perturbation(Kind.PAUSE, write.controller, at)
        kind = write.controller, at.kind
        if kind not in kinds:
            kinds.add(kind)
            yield int(write.verb != "create"), Perturbation(Kind.SLOW, write.controller, at)


def _is_half(analysis: Analysis, write: Write, spell: Sequence[Write]) -> bool:
    """Whether the controller makes an object and never writes it again, and another one such thereafter."""
    later = (one for one in spell if one.revision > write.revision and one.key != write.key)
    return analysis.is_made_once(write) and any(analysis.is_made_once(one) for one in later)


def _late_answers(analysis: Analysis) -> Iterator[Ranked]:
    """To writes upon which objects go, or change by others, that the controller deals with right after the answer."""
    found = _few(analysis.writes, lambda one: (one.controller, one.verb, analysis.role(one.key), _gone(analysis, one)))
    for write in found:
        spell = analysis.spell_of(write)
        follows = any(
            one.controller == write.controller and write.time_ns < one.time_ns <= spell[1] for one in analysis.writes
        )
        if _gone(analysis, write):
            yield int(not follows), Perturbation(Kind.LATE, write.controller, _at_write(analysis, write))


def _gone(analysis: Analysis, write: Write) -> bool:
    """Whether the controller hears soon after a write that objects are gone."""
    return any(
        one.what == "DELETED" and one.key != write.key and 0 <= one.time_ns - write.time_ns < _AFTERWARDS_NS
        for one in analysis.notices
        if one.controller == write.controller
    )


def _is_within(write: Write, spell: tuple[int, int]) -> bool:
    return spell[0] <= write.time_ns <= spell[1]


def _others_go_on(analysis: Analysis, write: Write) -> bool:
    """Whether the controller is told something that it has not done, while it would be cut off."""
    own = {(one.key, made.revision) for one in analysis.writes if (made := analysis.made(one)) is not None}
    return any(
        0 < one.time_ns - write.time_ns < 20_000_000_000 and (one.key, one.revision) not in own
        for one in analysis.notices
        if one.controller == write.controller
    )


# At changes


def _signature(analysis: Analysis, impact: Impact) -> Hashable:
    """The same for impacts that are alike."""
    written = frozenset((one.verb, analysis.role(one.key)) for one in impact.writes)
    notice = impact.notice
    return notice.controller, analysis.role(notice.key), notice.what, impact.paths, impact.is_end, written


def _chosen(analysis: Analysis) -> list[Impact]:
    return _few(analysis.impacts, lambda one: _signature(analysis, one))


def _rank(impact: Impact) -> int:
    """What made the controller delete something does most harm when it is seen again; and what somebody has asked for
    comes before what only happens meanwhile."""
    is_asked = impact.is_end or not impact.paths or any(path.startswith(("spec", "data")) for path in impact.paths)
    if any(one.verb == "delete" for one in impact.writes):
        return 0 if is_asked else 1
    if impact.is_end:
        return 2
    return (4 if any(one.verb == "create" for one in impact.writes) else 6) + (0 if is_asked else 1)


def _freezes(analysis: Analysis) -> Iterator[Ranked]:
    """An old state that made the controller write, seen again when what it wrote then has changed once more; and the
    state before it."""
    for impact in _chosen(analysis):
        at = impact.change
        first = impact.writes[0].revision
        touched = dict.fromkeys([at.key, *(write.key for write in impact.writes)])
        moments = [
            later
            for key in touched
            for later in analysis.changes.get(key, ())
            if later.revision > first and later.revision > at.revision
        ]
        deleted = {one.key for one in impact.writes if one.verb == "delete"}
        # What was deleted and comes anew first, then all that comes anew, then the latest moments.
        moments.sort(key=lambda one: (not (one.is_new and one.key in deleted), not one.is_new, -one.revision))
        point = _point(analysis, at.key, at.nth)
        for place, moment in enumerate(moments[:_RESTARTS]):
            when = _point(analysis, moment.key, moment.nth)
            rank = _rank(impact) if moment.is_new else _rank(impact) + 1
            yield rank, Perturbation(Kind.FREEZE, impact.notice.controller, point, when)
            if not place and _rank(impact) <= 1:
                yield rank + 1, Perturbation(Kind.FREEZE, impact.notice.controller, point, when, scope=ALL)
            if not place and at.nth > 1 and any(path.startswith("spec") for path in impact.paths):
                # What was asked for is undone by who still sees what was wanted before.
                before = _point(analysis, at.key, at.nth - 1)
                yield rank, Perturbation(Kind.FREEZE, impact.notice.controller, before, when)


def _of_impacts(analysis: Analysis) -> Iterator[Ranked]:
    seen = set[Hashable]()
    written = {(one.controller, one.key, made.revision) for one in analysis.writes if (made := analysis.made(one))}
    for impact in _chosen(analysis):
        controller, at = impact.notice.controller, impact.change
        kind = analysis.kind(at.key)
        point = _point(analysis, at.key, at.nth)
        # What the controller itself has changed thereupon would not have come without it.
        after = [
            one
            for one in analysis.changes[at.key]
            if one.revision > at.revision and (one.is_asked or (controller, at.key, one.revision) not in written)
        ]
        following = next((one for one in after if at.is_asked and one.is_asked), None)
        if following is not None:
            waits_s = float(-(-(following.time_ns - at.time_ns) // SECOND_NS))  # thereafter, as he does not before
            lasts_s = 0.0 if at.what in ENDS else waits_s
            yield int(at.is_new) - 1, Perturbation(Kind.HIDE, controller, point, seconds=lasts_s)
        elif any(one.time_ns - at.time_ns < _HIDDEN_NS for one in after):
            yield _rank(impact), Perturbation(Kind.HIDE, controller, point)
        if (controller, kind, Kind.END) not in seen:
            seen.add((controller, kind, Kind.END))
            yield 0, Perturbation(Kind.END, controller, point)
        if (controller, kind, Kind.EXPIRE, impact.is_end) not in seen:
            seen.add((controller, kind, Kind.EXPIRE, impact.is_end))
            yield 1 - int(impact.is_end), Perturbation(Kind.EXPIRE, controller, point)
        if (controller, kind, Kind.LAG, impact.is_end) not in seen:
            seen.add((controller, kind, Kind.LAG, impact.is_end))
            yield 1 + _rank(impact), Perturbation(Kind.LAG, controller, point)
            if impact.is_end:
                yield 2, Perturbation(Kind.LAG, controller, point, scope=ALL)
    yield from _own_lags(analysis)


def _own_lags(analysis: Analysis) -> Iterator[Ranked]:
    """It does not see what it has created or deleted itself, while it is told of other things."""
    told = {(one.controller, one.key) for one in analysis.notices}
    made = [
        one
        for one in analysis.writes
        if one.verb in ("create", "delete") and (one.controller, one.key) in told and _others_go_on(analysis, one)
    ]
    for write in _few(made, lambda one: (one.controller, one.verb, analysis.role(one.key)), 1):
        change = analysis.made(write)
        if change is not None:
            yield 0, Perturbation(Kind.LAG, write.controller, _point(analysis, change.key, change.nth))


def _delays(analysis: Analysis) -> Iterator[Ranked]:
    """Kinds that come late: each where a change of it is followed by one of another kind, and both make it write."""
    seen = set[Hashable]()
    impacts = analysis.impacts
    for place, impact in enumerate(impacts):
        controller, kind = impact.notice.controller, analysis.kind(impact.change.key)
        point = _point(analysis, impact.change.key, impact.change.nth)
        for other in impacts[place + 1 :]:
            if other.notice.time_ns - impact.notice.time_ns > _MEET_NS:
                break
            overtakes = analysis.kind(other.change.key)
            pair = controller, kind, overtakes
            if overtakes != kind and other.notice.controller == controller and pair not in seen:
                seen.add(pair)
                yield _rank(impact), Perturbation(Kind.DELAY, controller, point)
                break
        if (controller, kind) not in seen:
            seen.add((controller, kind))
            yield 8, Perturbation(Kind.DELAY, controller, point)


# Wrong values


def _mutations(analysis: Analysis) -> list[Plan]:
    """Of each object that made a controller write: its labels, its owners and its leaves of spec and data, one by one,
    when it was told of it last."""
    found: dict[tuple[str, str, tuple[str, ...]], Plan] = {}
    for impact in analysis.impacts:
        change, controller = impact.change, impact.notice.controller
        if change.value is None or analysis.has_random_name(change.key):
            continue
        point = _point(analysis, change.key, change.nth)
        for field, to in _wrong_values(analysis.manifest(change)):
            one = Perturbation(Kind.MUTATE, controller, point, field=field, to=to)
            found[controller, analysis.role(change.key), field] = (one,)
    return list(found.values())


def _wrong_values(manifest: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Fields, each with a value in JSON that it should not have."""
    for name in ("labels", "ownerReferences"):
        if manifest["metadata"].get(name):
            yield ("metadata", name), "null"
    left: list[tuple[tuple[str, ...], Any]] = [((top,), manifest.get(top)) for top in ("spec", "data")]
    for _ in range(_FIELDS):
        if not left:
            return
        path, value = left.pop(0)
        if isinstance(value, bool):
            yield path, json.dumps(not value)
        elif isinstance(value, int | float):
            yield path, "0" if value else "1"
        elif isinstance(value, str):
            yield path, '""' if value else '"?"'
        elif isinstance(value, list):
            yield path, "[]"
        elif isinstance(value, Mapping):
            left += [((*path, key), one) for key, one in value.items()]


# Two at once


def _pairs(analysis: Analysis) -> list[Plan]:
    """The first one changes what the controller sees or how it gets on, the second one ends it in what follows."""
    found: list[tuple[int, Plan]] = []
    counts: dict[tuple[str, str], list[Write]] = defaultdict(list)
    for write in analysis.writes:
        counts[write.controller, write.key].append(write)

    def crash(write: Write, later: int = 0) -> Perturbation:
        return Perturbation(Kind.CRASH, write.controller, _at_write(analysis, write, later))

    for rank, one in (*_freezes(analysis), *_of_impacts(analysis), *_of_writes(analysis)):
        what = one.what
        if what in (Kind.CONFLICT, Kind.REFUSE):
            again = Perturbation(Kind.CRASH, one.controller, Point(*_astuple(one.at), one.at.nth + 1))
            found.append((rank + 1, (one, again)))
        elif what in (Kind.HIDE, Kind.LAG):
            key = analysis.course.key(one.at.subject)
            skip = 1 if what == Kind.HIDE else 0
            follow = next(
                (
                    each
                    for each in analysis.impacts
                    if each.change.key == key
                    and each.change.nth == one.at.nth + skip
                    and each.notice.controller == one.controller
                ),
                None,
            )
            if follow is not None:
                found.append((rank, (one, crash(follow.writes[0]))))
        elif what == Kind.FREEZE and one.restart_at is not None:
            impact = _impact_at(analysis, one)
            moment = _change_at(analysis, one.restart_at)
            if impact is not None and moment is not None:
                key = impact.writes[0].key
                before = [each for each in counts[one.controller, key] if each.revision <= moment.revision]
                if before:
                    found.append((rank, (one, crash(before[-1], 1))))
    found.sort(key=lambda each: each[0])
    return list(dict.fromkeys(plan for _, plan in found))[:_PAIRS]


def _astuple(at: Point) -> tuple[str, str, str]:
    return at.kind, at.name, at.namespace


def _impact_at(analysis: Analysis, one: Perturbation) -> Impact | None:
    key = analysis.course.key(one.at.subject)
    return next(
        (
            each
            for each in analysis.impacts
            if (each.change.key, each.change.nth, each.notice.controller) == (key, one.at.nth, one.controller)
        ),
        None,
    )


def _change_at(analysis: Analysis, at: Point) -> Change | None:
    key = analysis.course.key(at.subject)
    return next((each for each in analysis.changes.get(key, ()) if each.nth == at.nth), None)
