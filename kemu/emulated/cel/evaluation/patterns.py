"""Regular expressions as Go's package regexp has them (:mod:`kemu.emulated.objects.patterns`)."""

from __future__ import annotations

from typing import Any, TypeAlias

from kemu.emulated.cel.values import Error
from kemu.emulated.objects import patterns
from kemu.emulated.objects.patterns import Regexp

Match: TypeAlias = Any


def compiled(pattern: str) -> Regexp | Error:
    """The compiled pattern, or the error that Go has for it (``error parsing regexp: …``)."""
    try:
        return patterns.compiled(pattern)
    except patterns.BadPattern as error:
        return Error(str(error))


def search(pattern: Regexp, text: str) -> Match:
    """The leftmost match anywhere in `text`, or None."""
    return pattern.search(text)


def find_all(pattern: Regexp, text: str, limit: int) -> list[str]:
    """The texts of at most `limit` matches that do not overlap (all, if it is negative), as Go finds them.

    An empty match right behind another match is left out.
    """
    found: list[str] = []
    at, last_end = 0, -1
    while at <= len(text) and (limit < 0 or len(found) < limit):
        match = pattern.search(text, at)
        if match is None:
            break
        start, end = match.span()
        if start < end or start != last_end:
            found.append(match.group())
        last_end = end
        at = end if end > start else end + 1
    return found
