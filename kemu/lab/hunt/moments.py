"""Points as changes of a course: the nth change of an object, or the nth one by which its fields come to be something.

The latter means the same in every trial, also where a controller writes a status more often in one than in another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.lab.hunt.courses import Change, Course, manifest
from kemu.lab.hunt.perturbations import ANY, Point

_GOING = "metadata.deletionTimestamp"
_NAME = "metadata.name"
_MOST_FIELDS = 3

Manifest = Callable[[Change], Mapping[str, Any]]


class Counter:
    """Counts what a point is about. Told of all changes of its object, in order."""

    def __init__(self, point: Point, manifest_of: Manifest = lambda change: manifest(change.key, change.value or b"")):
        self._point = point
        self._manifest_of = manifest_of
        self._held = False
        self.times = 0

    def comes(self, change: Change) -> bool:
        """Whether this is the change."""
        return self.counts(change) and self.times == self._point.nth

    def counts(self, change: Change) -> bool:
        if not self._point.when:
            self.times = change.nth
            return True
        holds = change.value is not None and _holds(self._manifest_of(change), self._point.when)
        is_new, self._held = holds and not self._held, holds
        self.times += is_new
        return is_new


def find(course: Course, point: Point) -> Change | None:
    """None: it has not come."""
    key, counter = course.key(point.subject), Counter(point)
    return next((one for one in course.changes if one.key == key and counter.comes(one)), None)


def times(course: Course, point: Point) -> int:
    """How often what it is about has come."""
    key, counter = course.key(point.subject), Counter(point)
    for one in course.changes:
        if one.key == key:
            counter.counts(one)
    return counter.times


def point(course: Course, change: Change, own: Iterable[Change], before: Change | None, manifest_of: Manifest) -> Point:
    """``own``: all changes of the object, in order."""
    named = course.named(change.key)
    place = named.kind, named.name, named.namespace
    when = _fields(change, before, manifest_of)
    if when:
        counter = Counter(Point(*place, 1, when), manifest_of)
        for one in own:
            if counter.counts(one) and one is change:
                return Point(*place, counter.times, when)
    return Point(*place, change.nth)


def _fields(change: Change, before: Change | None, manifest_of: Manifest) -> tuple[tuple[str, str], ...]:
    """What tells a change: that the object is there, is going, or a few fields of its spec."""
    if change.value is None:
        return ()
    if change.is_new:
        return ((_NAME, ANY),)
    if before is None or before.value is None:
        return ()
    now, was = manifest_of(change), manifest_of(before)
    if _GOING.partition(".")[2] in now["metadata"] and _GOING.partition(".")[2] not in was["metadata"]:
        return ((_GOING, ANY),)
    changed = sorted(_changed(now.get("spec"), was.get("spec"), "spec"))
    fields = tuple((path, json.dumps(_value(now, path), sort_keys=True)) for path in changed[:_MOST_FIELDS])
    return fields if not _holds(was, fields) else ()


def _changed(now: object, was: object, path: str) -> Iterable[str]:
    if isinstance(now, Mapping) and isinstance(was, Mapping):
        for key in now.keys() | was.keys():
            yield from _changed(now.get(key), was.get(key), f"{path}.{key}")
    elif isinstance(now, list) and isinstance(was, list) and len(now) == len(was):
        for index, (one, other) in enumerate(zip(now, was, strict=True)):
            yield from _changed(one, other, f"{path}.{index}")
    elif now != was:
        yield path


def _holds(found: Mapping[str, Any], when: tuple[tuple[str, str], ...]) -> bool:
    for path, wanted in when:
        value = _value(found, path)
        if value is None if wanted == ANY else json.dumps(value, sort_keys=True) != wanted:
            return False
    return True


def _value(found: Mapping[str, Any], path: str) -> Any:
    value: Any = found
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
