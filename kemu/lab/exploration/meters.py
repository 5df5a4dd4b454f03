"""Counts the events of a run, and breaks off a run that has far too many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class TooLongError(Exception):
    """A run has far more events than it may have: a loop that a longer time slowed down."""


class Meter:
    """A watcher of a run's events. 0: there is no limit."""

    def __init__(self, most: int = 0) -> None:
        self.events = 0
        self._most = most

    @property
    def is_over(self) -> bool:
        """Whether it has broken the run; what that had shown before does not count."""
        return 0 < self._most <= self.events

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self.events += 1
        if self.events == self._most:
            raise TooLongError(f"more than {self._most} events")
