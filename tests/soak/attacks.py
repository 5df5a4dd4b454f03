"""Whom to attack next, how, and how long until then: drawn from the seed, whatever the machine does."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

MEAN_PAUSE_S = 5.0
"""Between two attacks."""
STOPPED_S = (0.6, 8.0)
KILLED_AGAIN_S = 10.0
"""A process is killed no more often than that: a cell that dies five times in 30 s ends a run."""


@dataclass(frozen=True)
class Attack:
    target: str
    how: str
    """``kill stop``"""
    for_s: float = 0.0
    """Of a stop."""


class Attacker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"soak {seed}")
        self._killed: dict[str, deque[float]] = {}

    def pause_s(self) -> float:
        return min(self._random.expovariate(1 / MEAN_PAUSE_S), 4 * MEAN_PAUSE_S)

    def draw(self, targets: Sequence[str], now_s: float) -> Attack:
        target = targets[self._random.randrange(len(targets))]
        kill = self._random.random() < 0.6
        for_s = self._random.uniform(*STOPPED_S)
        if kill and now_s - self._killed.get(target, deque([-1e9]))[-1] >= KILLED_AGAIN_S:
            self._killed.setdefault(target, deque(maxlen=1)).append(now_s)
            return Attack(target, "kill")
        return Attack(target, "stop", for_s)
