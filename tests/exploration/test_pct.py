"""PCT: the probability that it promises, on actors of the real runtime, over all of its draws."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from kemu.lab.exploration.strategies import pct
from kemu.lab.exploration.strategies.priorities import Priorities
from tests.exploration import toys

STEP_NS = 10**9

Places = Mapping[tuple[str, int], int]
"""At which place each message of each source came."""

A, B, C = toys.sources(3)


class Draws(random.Random):
    """Gives an order and numbers that were chosen before."""

    def __init__(self, order: Sequence[int], numbers: Sequence[int]) -> None:
        super().__init__(0)
        self._order = order
        self._numbers = list(numbers)

    def shuffle(self, x: Any) -> None:
        x[:] = [x[place] for place in self._order]

    def randrange(self, *args: Any) -> int:
        return self._numbers.pop(0)


def all_draws(threads: int, steps: int, depth: int) -> Iterator[Draws]:
    for order in itertools.permutations(range(threads)):
        for numbers in itertools.product(range(steps), repeat=depth - 1):
            yield Draws(order, numbers)


BUGS: dict[str, tuple[int, int, int, Callable[[Places], bool]]] = {
    "one comes first": (3, 2, 1, lambda at: at[B, 1] == 0),
    "one comes after all of another": (3, 2, 1, lambda at: at[A, 1] > at[C, 2]),
    "one comes between two of another": (2, 3, 2, lambda at: at[A, 1] < at[B, 1] < at[A, 2]),
    "one comes late between two of another": (2, 3, 2, lambda at: at[B, 2] < at[A, 1] < at[B, 3]),
    "the same among three": (3, 2, 2, lambda at: at[C, 1] < at[A, 1] < at[C, 2]),
    "two interleave": (2, 3, 3, lambda at: at[A, 1] < at[B, 1] < at[A, 2] < at[B, 2]),
    "two interleave at their ends": (2, 3, 3, lambda at: at[B, 2] < at[A, 2] < at[B, 3] < at[A, 3]),
}
"""Sources, messages of each, depth, and whether an order shows the bug."""


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found_as_often_as_promised(bug: str) -> None:
    count, messages, depth, shows = BUGS[bug]
    threads = toys.sources(count)
    loads = {(name, toys.SINK): messages for name in threads}
    steps = count * messages
    hits = runs = 0
    for draws in all_draws(count, steps, depth):
        came = toys.order(threads, messages, pct.Ranks(loads, depth, STEP_NS, draws))
        assert len(came) == steps
        hits += shows({message: place for place, message in enumerate(came)})
        runs += 1
    assert hits / runs >= 1 / (count * steps ** (depth - 1))


def test_a_change_point_is_what_a_bug_of_depth_two_needs() -> None:
    """The bound is about depths: with one change less the bug is never found."""
    threads = toys.sources(2)
    shows = BUGS["one comes between two of another"][3]
    for draws in all_draws(2, 6, 1):
        came = toys.order(threads, 3, pct.Ranks({(name, toys.SINK): 3 for name in threads}, 1, STEP_NS, draws))
        assert not shows({message: place for place, message in enumerate(came)})


def test_a_thread_falls_below_all_others_when_it_takes_its_step() -> None:
    priorities = Priorities(["a", "b"], 4, 2, Draws((1, 0), (1,)))
    assert [priorities.rank(name) for name in ("b", "b", "a", "b")] == [0, 2, 1, 2]
