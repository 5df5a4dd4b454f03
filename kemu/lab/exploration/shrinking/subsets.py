"""Which of many things are needed, found with few questions.

    needed = minimal(things, first)

``first`` is asked with lists of things and says which of them, the first in order, is enough; a list of several lets
them be tried at the same time. Nothing is assumed of the answers; where they are monotone (more things are enough if
fewer are), the result has nothing that can go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
First = Callable[[list[list[T]]], int | None]

MOST_BISECTED = 6
"""Beyond so many needed things, halves of the others are tried."""


def minimal(
    things: Sequence[T],
    first: First[T],
    *,
    ahead: Callable[[list[list[T]]], None] | None = None,
    most_bisected: int = MOST_BISECTED,
    finest: int = 1,
) -> list[T]:
    """A part of the things that is enough, in their order; all of them are.

    Bisects for the shortest beginning that is enough. Its last thing is needed, and the search goes on in front of it:
    about log2(n) questions for each thing that is needed. Where the things have an order of time this is the best
    order: what comes after the failure goes at once. If more than ``most_bisected`` are needed, parts of the others are
    tried, no smaller than ``finest``.

    ``ahead`` is told what is asked next, and what after it, whichever the answer: to look at them at the same time.
    """
    needed: list[T] = []
    others = list(things)
    while others:
        if first([needed]) is not None:
            return needed
        if len(needed) >= most_bisected:
            return _halving(others, needed, first, finest)
        too_few, enough = 0, len(others)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if ahead is not None:
                after = ((too_few + middle) // 2, (middle + enough) // 2)
                ahead([others[:end] + needed for end in dict.fromkeys((middle, *after)) if end])
            if first([others[:middle] + needed]) is not None:
                enough = middle
            else:
                too_few = middle
        needed.insert(0, others[enough - 1])
        del others[enough - 1 :]
    return needed


def _halving(others: list[T], needed: list[T], first: First[T], finest: int) -> list[T]:
    """Takes away halves, quarters, …, in the end single things (Zeller's ddmin, with complements only)."""
    size = max(1, len(others) // 2)
    while others:
        found = first([others[:at] + others[at + size :] + needed for at in range(0, len(others), size)])
        if found is not None:
            del others[found * size : (found + 1) * size]
        elif size <= finest:
            break
        size = max(1, min(size if found is not None else max(size // 2, finest), len(others)))
    return others + needed


def least(most: int, first: Callable[[list[int]], int | None], *, low: int = 0) -> int:
    """The least number from ``low`` that is enough, by bisection; ``most`` is."""
    too_few, enough = low - 1, most
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if first([middle]) is not None:
            enough = middle
        else:
            too_few = middle
    return enough
