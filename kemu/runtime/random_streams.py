"""Named streams of random numbers, all derived from one seed.

Every source of randomness in a run (network, faults, workload, each actor) draws from a stream of its own, so that one
more draw in one place does not shift all the others. A stream depends on the seed and its names only.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass


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


class Streams:
    """The streams of one run."""

    def __init__(self, seed: int, *, may_change: bool = False) -> None:
        """``may_change``: there may be another seed later."""
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
