"""Which revision was the newest one at a time, for answers from the past."""

from __future__ import annotations

import bisect

_KEPT = 100_000


class Revisions:
    """Fed by the part that sees the store's transactions."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._revisions: list[int] = []

    def add(self, time_ns: int, revision: int) -> None:
        if len(self._times) >= 2 * _KEPT:
            del self._times[:_KEPT], self._revisions[:_KEPT]
        self._times.append(time_ns)
        self._revisions.append(revision)

    def at(self, time_ns: int) -> int:
        """0: nothing is known of that time."""
        place = bisect.bisect_right(self._times, time_ns)
        return self._revisions[place - 1] if place else (self._revisions[0] if self._revisions else 0)
