"""Why a trial went wrong: the write that did it, what the controller knew then, and what it had not seen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kemu.lab.hunt.courses import Change, Course, Write, manifest
from kemu.lab.hunt.judging import states
from kemu.lab.hunt.judging.oracles import Symptom
from kemu.lab.hunt.perturbations import ALL, Kind, Perturbation, Plan
from kemu.lab.hunt.running.trials import Outcome
from kemu.runtime.env import SECOND_NS

_PAST = {"create": "created", "update": "wrote", "patch": "changed", "delete": "deleted"}
_REFUSED = (Kind.CONFLICT, Kind.REFUSE)
_DELETIONS = ("claim", "mount", "alien", "needless")
_NAMED_FIELDS = 2
_MOST_TEXT = 40
_AFTER_NS = SECOND_NS // 10
"""Virtual time by which the store is ahead of the answer to a write."""


@dataclass(frozen=True)
class Ignorance:
    """An object of which a controller knew an old state."""

    key: str
    known: Change | None
    """None: it knew of none."""
    missed: tuple[Change, ...]


@dataclass
class Cause:
    """See the module."""

    text: str
    struck_ns: int
    """When the first perturbation came about; -1: it is not known."""
    write: Write | None = None
    """The one that did it; None: something was not done."""
    ignorance: list[Ignorance] = field(default_factory=list)
    """The gravest first."""


def of(outcome: Outcome, reference: Outcome, plan: Plan, symptom: Symptom) -> Cause:
    """Of what has gone wrong first."""
    course = outcome.course
    struck_ns = min((each for each in (struck(course, one) for one in plan) if each >= 0), default=-1)
    names = {one.controller for one in plan}
    own = [one for one in course.writes if one.controller in names and one.time_ns >= outcome.begun_ns and _came(one)]
    write = _fatal(course, own, reference, symptom, struck_ns)
    if write is None:
        return Cause(_omitted(outcome, reference, plan, symptom, own, struck_ns), struck_ns)
    ignorance = _ignorance(course, write, plan)
    nth = f"at {write.time_ns / SECOND_NS:.1f} s"
    did = f"{write.controller} {_PAST.get(write.verb, write.verb)} {course.named(write.key)} {nth}"
    if ignorance:
        return Cause(f"{did}: {said(course, ignorance[0])}", struck_ns, write, ignorance)
    before = next((one for one in plan if 0 <= struck(course, one) <= write.time_ns), None)
    if before is None:
        return Cause(did, struck_ns, write)
    return Cause(f"{did}, {_since(before)}", struck_ns, write)


def place(course: Course, one: Perturbation) -> tuple[str, int]:
    """The key and the number of the write or the change at which a perturbation came about."""
    point = one.at if one.restart_at is None else one.restart_at
    return course.struck.get(one, (course.key(point.subject), point.nth))


def struck(course: Course, one: Perturbation) -> int:
    """When a perturbation came about; -1: never."""
    key, nth = place(course, one)
    found: Sequence[Change | Write] = course.changes
    if one.is_about_writes:
        found = [each for each in course.writes if each.controller == one.controller]
    return next((each.time_ns for each in found if each.key == key and each.nth == nth), -1)


def said(course: Course, found: Ignorance) -> str:
    """What a controller knew, and did not know."""
    named, last = course.named(found.key), found.missed[-1]
    behind = f"{len(found.missed)} change{'s' * (len(found.missed) > 1)} behind"
    if found.known is None:
        if len(found.missed) == 1 and last.is_new:
            return f"it did not know that there was {named}"
        return f"it knew nothing of {named}, {behind}"
    before, after = differing(found.known, last)
    known = f"it had read {named} at revision {found.known.revision}{before}, {behind}"
    if last.value is None:
        return f"{known}; it did not see that it was gone"
    return f"{known}; it did not see change {last.nth}{after}"


def differing(known: Change, last: Change) -> tuple[str, str]:
    """What the two states say of the fields in which they differ, in brackets; empty where there is none."""
    if known.value is None or last.value is None:
        return (" (it was gone)", "") if known.value is None else ("", "")
    was, now = manifest(known.key, known.value), manifest(last.key, last.value)
    if was["metadata"].get("uid") != now["metadata"].get("uid"):
        return " (the former one)", " (another one of that name)"
    if "deletionTimestamp" in now["metadata"] and "deletionTimestamp" not in was["metadata"]:
        return "", " (it was being deleted)"
    found = list(states.differences(states.fields_of(was, {}), states.fields_of(now, {})))
    found = [one for one in found if not one.path.endswith("].type")]
    found.sort(key=lambda one: (one.path.startswith("status"), one.path.startswith("metadata"), len(one.path)))
    found = found[:_NAMED_FIELDS]
    if not found:
        return "", ""
    return (
        f" ({', '.join(f'{_leaf(one.path)} {_short(one.before)}' for one in found)})",
        f" ({', '.join(f'{_leaf(one.path)} {_short(one.after)}' for one in found)})",
    )


def _fatal(course: Course, own: Sequence[Write], reference: Outcome, symptom: Symptom, struck_ns: int) -> Write | None:
    """The write that did it."""
    if symptom.what in ("crash", "missing", "stuck"):
        return None
    key = symptom.by or symptom.key
    alike = [one for one in own if one.key == key] if key else []
    if symptom.what in _DELETIONS:
        alike = [one for one in alike if one.verb == "delete"] or alike
    if symptom.by:  # the write that let it go
        return next((one for one in alike if abs(one.time_ns - symptom.time_ns) <= _AFTER_NS), None)
    if symptom.what == "surplus":
        extra = _extra(course, own, reference)
        return next((one for one in reversed(extra) if one.key == key and one.verb == "create"), None)
    if alike:
        until = [one for one in alike if symptom.time_ns < 0 or one.time_ns <= symptom.time_ns + _AFTER_NS]
        if until:
            at_ns = symptom.time_ns if symptom.time_ns >= 0 else 1 << 62
            return min(until, key=lambda one: abs(one.time_ns - at_ns))
    extra = [one for one in _extra(course, own, reference) if one.time_ns >= struck_ns]
    verbs = {"created": ("create",), "surplus": ("create",), "deleted": ("delete",)}.get(symptom.what)
    same_kind = [one for one in extra if course.named(one.key).kind == symptom.subject]
    for one in (*same_kind, *extra):
        if verbs is None or one.verb in verbs:
            return one
    return None


def _extra(course: Course, own: Sequence[Write], reference: Outcome) -> list[Write]:
    """Writes that the reference has not."""
    known = Counter(_sort(reference.course, one) for one in reference.course.writes if _came(one))
    found = []
    for one in own:
        sort = _sort(course, one)
        known[sort] -= 1
        if known[sort] < 0:
            found.append(one)
    return found


def _sort(course: Course, write: Write) -> tuple[str, str]:
    named = course.named(write.key)
    return write.verb, states.stem_of(f"{named.kind} {named.namespace}/{named.name}")


def _came(write: Write) -> bool:
    """Whether it happened, as far as is known."""
    return write.status < 300


def _ignorance(course: Course, write: Write, plan: Plan) -> list[Ignorance]:
    """Objects of which the controller knew an old state when it wrote: those of the perturbations first."""
    points = [point for one in plan for point in (one.at, one.restart_at) if point is not None]
    first = [course.key(point.subject) for point in points] + [place(course, one)[0] for one in plan]
    kinds = {one.of for one in plan} | {one.at.kind for one in plan}
    concerned = {
        one.key: None
        for one in course.changes
        if one.revision < write.revision
        and (ALL in kinds or course.named(one.key).kind in kinds or one.key == write.key)
    }
    seen = {one.key for one in course.notices if one.controller == write.controller}
    places = {one.place for one in course.reads if one.controller == write.controller}
    found = []
    for key in concerned:
        if key not in seen and not any(
            key == place or (place[-1] == "/" and key.startswith(place)) for place in places
        ):
            continue
        own = [one for one in course.changes if one.key == key and one.revision <= write.revision]
        revision = course.known(write.controller, key, write.time_ns)
        known = next((one for one in reversed(own) if one.revision <= revision), None)
        # What it has just made itself is no news to it, nor is what came in the same instant.
        missed = [
            one
            for one in own
            if one.revision > revision and one.time_ns < write.time_ns and course.made_by(one) != write.controller
        ]
        if missed:
            found.append(Ignorance(key, known, tuple(missed)))
    return sorted(found, key=lambda one: (one.key not in first, one.key != write.key, -len(one.missed)))


def _since(one: Perturbation) -> str:
    """What came before, as a clause."""
    named = one.at.subject
    return {
        Kind.CRASH: f"when it was started again after its write to {named}",
        Kind.FREEZE: "when it was started again, and saw what was old",
        Kind.CONFLICT: f"after its write to {named} had met a conflict",
        Kind.LOSE: f"after it had not heard that its write to {named} had happened",
        Kind.EXPIRE: f"after its watch of {one.at.kind} had expired",
    }.get(one.what, f"after this: {one}")


def _omitted(
    outcome: Outcome, reference: Outcome, plan: Plan, symptom: Symptom, own: Sequence[Write], struck_ns: int
) -> str:
    """What the controller did not do."""
    course, one = outcome.course, plan[0]
    who, (key, nth) = one.controller, place(course, one)
    named_at = course.named(key)
    later = [each for each in own if each.time_ns > struck_ns >= 0]
    made = Counter(_sort(course, each) for each in own)
    absent = [
        each
        for each in reference.course.writes
        if each.controller == who
        and each.time_ns >= reference.begun_ns
        and _came(each)
        and not _take(made, each, reference)
    ]
    missing = next((each for each in absent if each.key == symptom.key), next(iter(absent), None))
    at = f" at {struck_ns / SECOND_NS:.1f} s" if struck_ns >= 0 else ""
    if one.what == Kind.CRASH:
        text = f"{who} was started again after its write to {named_at}{at}, and"
    elif one.is_about_writes:
        again = any(each.key == key and each.time_ns > struck_ns for each in own)
        happened = (
            "was not answered" if one.what == Kind.LOSE else "failed" if one.what in _REFUSED else "was disturbed"
        )
        text = f"the write of {who} to {named_at} {happened}{at}, and it"
        if not again and one.what in (*_REFUSED, Kind.LOSE):
            return f"{text} did not try again"
    elif one.what == Kind.EXPIRE:
        heard = any(each.controller == who and each.key == key and each.time_ns > struck_ns for each in course.notices)
        text = f"the watch of {one.at.kind} expired{at}, and {who}" + (
            "" if heard else f" was told nothing of {named_at} from then on, and"
        )
    else:
        text = f"from {struck_ns / SECOND_NS:.1f} s on {who}" if at else who
        hidden = next((each for each in course.changes if each.key == key and each.nth == nth), None)
        if one.what == Kind.HIDE and hidden is not None:
            before = next((each for each in course.changes if each.key == key and each.nth == nth - 1), hidden)
            text = f"{who} did not see change {hidden.nth} of {named_at}{differing(before, hidden)[1]}{at}, and"
    if missing is not None:
        named = reference.course.named(missing.key)
        return f"{text} never {_PAST.get(missing.verb, missing.verb)} {named}, as in the reference"
    return f"{text} wrote nothing more" if not later else f"{text} did not come to the same end"


def _take(made: Counter[tuple[str, str]], write: Write, reference: Outcome) -> bool:
    sort = _sort(reference.course, write)
    made[sort] -= 1
    return made[sort] >= 0


def _leaf(path: str) -> str:
    """The end of a path, enough to know it by; of a condition its type."""
    condition = re.search(r"onditions\[(.+)\]\.status$", path)
    if condition:
        return condition[1]
    parts = path.split(".")
    return path if len(parts) < 3 else ".".join(parts[-2:]) if len(parts[-1]) < 4 else parts[-1]


def _short(value: object) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
