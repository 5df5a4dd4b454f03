"""Sets of completion indexes as ordered intervals: ``0-2,5`` (``orderedIntervals`` of ``pkg/controller/job``)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

_INTEGER = re.compile("[+-]?[0-9]+")
_last_of = attrgetter("last")


class Interval(NamedTuple):
    """Both ends belong to it."""

    first: int
    last: int


Intervals = tuple[Interval, ...]
"""In ascending order."""


def parse(text: str, completions: int) -> Intervals:
    """``parseIndexesFromString``: what is not below ``completions`` is left out, and so is what cannot be read."""
    found: list[Interval] = []
    for part in text.split(",") if text else ():
        limits = part.split("-")
        if not _INTEGER.fullmatch(limits[0]):
            continue
        first = int(limits[0])
        if first >= completions:
            break
        last = first
        if len(limits) > 1:
            if not _INTEGER.fullmatch(limits[1]):
                continue
            last = min(int(limits[1]), completions - 1)
        if found and found[-1].last == first - 1:
            found[-1] = Interval(found[-1].first, last)
        else:
            found.append(Interval(first, last))
    return tuple(found)


def of(indexes: Iterable[int]) -> Intervals:
    """The intervals of indexes in ascending order."""
    return merge((), tuple(Interval(index, index) for index in indexes))


def merge(one: Intervals, other: Intervals) -> Intervals:
    """The union."""
    result: list[Interval] = []
    for interval in sorted((*one, *other)):
        if not result or interval.first > result[-1].last + 1:
            result.append(interval)
        elif result[-1].last < interval.last:
            result[-1] = Interval(result[-1].first, interval.last)
    return tuple(result)


def total(intervals: Intervals) -> int:
    """How many indexes there are."""
    return sum(last - first + 1 for first, last in intervals)


def contains(intervals: Intervals, index: int) -> bool:
    position = bisect_left(intervals, index, key=_last_of)
    return position < len(intervals) and intervals[position].first <= index


def overlap(one: Intervals, other: Intervals) -> int:
    """How many indexes are in both."""
    found = i = j = 0
    while i < len(one) and j < len(other):
        found += max(0, min(one[i].last, other[j].last) - max(one[i].first, other[j].first) + 1)
        ahead = one[i].last - other[j].last
        i += ahead <= 0
        j += ahead >= 0
    return found


def render(intervals: Intervals) -> str:
    """As in ``status.completedIndexes``: two neighbours as ``3,4``, more as ``3-5``."""
    parts = []
    for first, last in intervals:
        if last <= first:
            parts.append(str(first))
        else:
            parts.append(f"{first}{',' if last == first + 1 else '-'}{last}")
    return ",".join(parts)
