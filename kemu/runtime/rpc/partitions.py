"""Partitions: which traffic between actors is cut.

The simulation and each cell keep the partitions that are in force; ``networks`` holds messages back on its connections
accordingly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DEFAULT_KEEPALIVE_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Partition:
    a: frozenset[str]
    b: frozenset[str]
    one_way: bool
    """Only what ``a`` sends to ``b`` is cut."""

    def cuts(self, source: str, target: str) -> bool:
        return (source in self.a and target in self.b) or (not self.one_way and source in self.b and target in self.a)


class Partitions:
    """Those in force, by the id of the fault."""

    def __init__(self, keepalive_timeout_s: float = DEFAULT_KEEPALIVE_TIMEOUT_S) -> None:
        self.active = False
        """Whether there are any; most of the time this is all that is asked."""
        self.keepalive_timeout_s = keepalive_timeout_s
        """How long keepalive waits for the answer to its ping, in the event loop's seconds."""
        self.keepalive_time_s = 0.0
        """From one ping to the next; 0: it is always waiting for an answer."""
        self._partitions: dict[str, Partition] = {}

    def add(self, fault: str, a: Iterable[str], b: Iterable[str], one_way: bool) -> None:
        self._partitions[fault] = Partition(frozenset(a), frozenset(b), one_way)
        self.active = bool(self._partitions)

    def remove(self, fault: str) -> None:
        self._partitions.pop(fault, None)
        self.active = bool(self._partitions)

    def cut(self, source: str, target: str) -> bool:
        """Whether messages from ``source`` to ``target`` are held back."""
        return self.active and any(partition.cuts(source, target) for partition in self._partitions.values())

    def cutting(self, source: str, target: str) -> str:
        """The fault that holds back messages from ``source`` to ``target``: the oldest one; empty: none."""
        return next((fault for fault, partition in self._partitions.items() if partition.cuts(source, target)), "")
