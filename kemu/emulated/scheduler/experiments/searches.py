"""The cost and the limits of searches for victims that Kubernetes rejected.

The design document rejected cross node preemption and affinity to lower pods because both try sets of pods, of which
there are exponentially many. Here every try is counted: an **evaluation** runs the filters once for one node with some
pods removed. A search has a limit and gives up when it is reached; the engine charges the
evaluations to the cost model and logs them as ``sched.search``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


class Effort:
    """The evaluations of one search for one pod."""

    __slots__ = ("algorithm", "evaluations", "found", "gave_up")

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm
        """The switch of the policy that asks for the search."""
        self.evaluations = 0
        self.found = False
        """A set of pods that helps was found."""
        self.gave_up = False
        """The limit was reached with sets left to try."""


def subsets(items: Sequence[T], size: int) -> Iterator[tuple[T, ...]]:
    """The subsets of a size, in the order of their last items: all of the first n before any with the next one.

    With items from the least to the most important, the sets come by what their most important member is.
    """
    if size == 0:
        yield ()
        return
    for last in range(size - 1, len(items)):
        for others in subsets(items[:last], size - 1):
            yield (*others, items[last])
