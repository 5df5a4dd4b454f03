"""Named streams of random numbers, all derived from one seed.

Every source of randomness in a run (network, faults, workload, each actor) draws from a stream of its own, so that one
more draw in one place does not shift all the others. A stream depends on the seed and its names only.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any


def random_stream(seed: int, *names: str | int) -> random.Random:
    """The stream of that name. The same arguments give the same numbers in every process."""
    return random.Random(_state(seed, names))


def _state(seed: int, names: tuple[str | int, ...]) -> int:
    label = "\0".join([str(seed), *(str(name) for name in names)])
    return int.from_bytes(hashlib.sha256(label.encode()).digest(), "big")


@dataclass(frozen=True, slots=True)
class Redraw:
    """From when on a run draws as if it had another seed; until then it is as it was."""

    at_ns: int
    """The last instant of the past."""
    seed: int


_FEW_WORDS = 64
"""After so many it is worth its memory."""


class EarlyStream:
    """The stream of an actor that is not ready yet, or of a connection. Most draw a few numbers at first, and then none
    for long: the state of a stream takes 2.5 KiB, so it is put away then, and made anew if it is asked for again."""

    __slots__ = ("_make", "_stream", "_words")

    def __init__(self, make: Callable[[], Random]) -> None:
        self._make = make
        self._stream: Random | None = None
        self._words = 0
        """How many words of 32 bits were drawn; -1: not known."""

    def whole(self) -> Random:
        """The stream itself, where it stands. From now on it is kept."""
        stream = self._stream
        if stream is None:
            stream = self._stream = self._make()
            if self._words > 0:
                stream.getrandbits(32 * self._words)
        self._words = -1
        return stream

    def put_away(self) -> None:
        if self._words >= 0:
            self._stream = None

    def random(self) -> float:
        return self._draws(2).random()

    def randoms(self, count: int) -> list[float]:
        """So many at once. Then it is put away, unless many were drawn."""
        draw = self._draws(2 * count).random
        numbers = [draw() for _ in range(count)]
        if self._words <= _FEW_WORDS:
            self.put_away()
        return numbers

    def getrandbits(self, k: int) -> int:
        if self._words < 0 and self._stream is not None:
            return self._stream.getrandbits(k)
        return self._draws((k + 31) // 32).getrandbits(k)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole(), name)

    def _draws(self, words: int) -> Random:
        known = self._words
        if known < 0 or self._stream is None:
            stream = self.whole()
        else:
            stream = self._stream
        self._words = known + words if known >= 0 else -1
        return stream


class Streams:
    """The streams of one run."""

    def __init__(self, seed: int, *, may_change: bool = False) -> None:
        """``may_change``: there may be another seed later."""
        self.may_change = may_change
        self._seed = seed
        self._made: list[tuple[random.Random, tuple[str | int, ...]]] | None = [] if may_change else None

    def stream(self, *names: str | int) -> random.Random:
        found = random_stream(self._seed, *names)
        if self._made is not None:
            self._made.append((found, names))
        return found

    def change(self, seed: int) -> None:
        """Streams that there are, and those that are made later, draw as those of another seed do from their start."""
        assert self._made is not None, "said so at the start"
        self._seed = seed
        for stream, names in self._made:
            stream.seed(_state(seed, names))
