"""Probabilistic concurrency testing: the priorities of threads, and where they change.

The algorithm of Burckhardt, Kothari, Musuvathi and Nagarakatte (A Randomized Scheduler with Probabilistic Guarantees of
Finding Bugs, ASPLOS 2010). The *n* threads get different random priorities. At *d* - 1 of the *k* steps, chosen at
random, the thread that is about to take the step falls to a priority below all of these, a different one for each
change. The thread of the highest priority always goes first. A bug that the order of *d* events makes is found by one
run with a probability of 1/(n·k^(d-1)) at least.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Priorities(Generic[T]):
    """Priorities of one run. Rank 0 goes first."""

    def __init__(self, threads: Sequence[T], steps: int, depth: int, stream: random.Random) -> None:
        """``threads`` in an order of their own; ``steps``: about how many they take together."""
        order = list(threads)
        stream.shuffle(order)
        self._ranks = {thread: rank for rank, thread in enumerate(order)}
        # Which change falls how low has nothing to do with which comes first.
        self._falls_at = {stream.randrange(max(steps, 1)): len(order) + change for change in range(depth - 1)}
        self._step = 0

    def __contains__(self, thread: T) -> bool:
        return thread in self._ranks

    def rank(self, thread: T) -> int:
        """Rank of a thread that is about to take a step."""
        falls_to = self._falls_at.get(self._step)
        self._step += 1
        if falls_to is not None:
            self._ranks[thread] = falls_to
        return self._ranks[thread]
