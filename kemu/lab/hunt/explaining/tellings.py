"""The course of a trial in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from kemu.lab.hunt.courses import Change, Course
from kemu.lab.hunt.perturbations import Plan

_LINES = 40


def told(course: Course, plan: Plan, since_ns: int) -> list[str]:
    """A line for each: what happened to the objects that matter, and what the controller was told and wrote."""
    return list(itertools.islice(_told(course, plan, since_ns), _LINES))


def _told(course: Course, plan: Plan, since_ns: int) -> Iterator[str]:
    names = {one.controller for one in plan}
    by_revision: dict[tuple[str, int], Change] = {(one.key, one.revision): one for one in course.changes}
    events: list[tuple[int, int, str]] = []
    concerned = {one.key for one in course.writes if one.controller in names}
    points = [point for one in plan for point in (one.at, one.restart_at) if point is not None]
    concerned |= {one.key for one in course.changes if any(course.fits(point.subject, one.key) for point in points)}
    for change in course.changes:
        if change.key in concerned and change.time_ns >= since_ns:
            verb = "is gone" if change.value is None else "is created" if change.is_new else "is changed"
            events.append((change.time_ns, 0, f"{course.named(change.key)} {verb} (change {change.nth})"))
    for notice in course.notices:
        if notice.controller in names and notice.key in concerned and notice.time_ns >= since_ns:
            found = by_revision.get((notice.key, notice.revision))
            nth = found.nth if found is not None else 0
            events.append(
                (notice.time_ns, 1, f"  {notice.controller} is told of {course.named(notice.key)}, change {nth or '?'}")
            )
    for write in course.writes:
        if write.controller in names and write.time_ns >= since_ns:
            what = f"  {write.controller} {_VERBS.get(write.verb, write.verb)} {course.named(write.key)}"
            events.append((write.time_ns, 2, f"{what}: {write.status or 'no answer'}"))
    previous = ""
    for time_ns, _, line in sorted(events, key=lambda each: each[:2]):
        shown = f"{time_ns / 1e9:9.3f} s  {line}"
        if line != previous:
            yield shown
        previous = line


_VERBS = {"create": "creates", "update": "updates", "patch": "patches", "delete": "deletes"}
