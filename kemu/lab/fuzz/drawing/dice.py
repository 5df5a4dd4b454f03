"""Random choices of a drawn scenario, from named streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from kemu.runtime.random_streams import random_stream

T = TypeVar("T")


class Dice:
    """The stream of one part of one scenario. Other parts have their own, so that each can change alone."""

    def __init__(self, seed: int, number: int, *part: str | int) -> None:
        self._names = (number, *part)
        self._seed = seed
        self._random = random_stream(seed, "fuzz", number, *part)

    def part(self, *names: str | int) -> Dice:
        number, *part = self._names
        return Dice(self._seed, int(number), *part, *names)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]

    def whole(self, least: int, most: int) -> int:
        """All equally likely, both ends included."""
        return least + int(self._random.random() * (most - least + 1))

    def log_whole(self, least: int, most: int) -> int:
        """Small numbers as likely as large ones of the same number of digits."""
        return min(most, int(math.exp(self._random.uniform(math.log(least), math.log(most + 1)))))

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """At least one of them, at most so many, in their order."""
        count = self.whole(1, min(most, len(options)))
        chosen = sorted(self.shuffled(list(range(len(options))))[:count])
        return [options[index] for index in chosen]

    def shuffled(self, items: list[T]) -> list[T]:
        made = list(items)
        for last in range(len(made) - 1, 0, -1):
            other = self.whole(0, last)
            made[last], made[other] = made[other], made[last]
        return made
