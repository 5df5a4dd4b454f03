"""How fast this machine is, in two fixed pieces of work, so that figures of two machines can be divided by them.

One piece is pure Python (objects, a dictionary, a heap: what the simulator does most), one is numpy (masks and integer
columns of 5,000 rows: what the scheduler does most). They never change: a change would make old figures incomparable.
"""

from __future__ import annotations

import heapq
import time

import numpy as np

REPETITIONS = 3


def measure() -> dict[str, float]:
    """``{"calibration_python_ms": …, "calibration_numpy_ms": …}``: the fastest of a few repetitions of each."""
    return {
        "calibration_python_ms": round(min(_timed(_python) for _ in range(REPETITIONS)), 2),
        "calibration_numpy_ms": round(min(_timed(_numpy) for _ in range(REPETITIONS)), 2),
    }


def _timed(work: object) -> float:
    assert callable(work)
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3


class _Item:
    __slots__ = ("key", "rank")

    def __init__(self, key: str, rank: int) -> None:
        self.key = key
        self.rank = rank


def _python() -> int:
    heap: list[tuple[int, int, _Item]] = []
    known: dict[str, _Item] = {}
    rank = 1
    for number in range(10_000):
        rank = rank * 1_103_515_245 + 12_345 & 0x7FFFFFFF
        item = _Item(f"default/pod-{rank % 5_000}", rank)
        known[item.key] = item
        heapq.heappush(heap, (item.rank, number, item))
    total = 0
    while heap:
        _, number, item = heapq.heappop(heap)
        total += number if known[item.key] is item else -1
    return total


def _numpy() -> int:
    rows = 5_000
    free = np.arange(rows, dtype=np.int64) * 7_919 % 32_000
    total = 0
    for request in range(200):
        mask = (free >= request * 100) & (free % 3 != 1)
        scores = (free[mask] - request) * 100 // 32_000
        total += int(scores.max()) + int(np.flatnonzero(scores == scores.max())[0])
    return total
