"""How far the wall clock of a cell is ahead of the driver's, as asking it tells.

Virtual time begins in all cells at one instant of the driver's clock. Machines do not agree on what time it is, so the
driver asks each new process and takes the difference into account. It errs by half of the time that the quickest answer
took, at most.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

QUESTIONS = 8


class Offset(NamedTuple):
    ahead_ns: int
    """0 where the two clocks cannot be told apart, as on one machine."""
    within_ns: int
    """It errs by that at most."""


async def measure(ask: Callable[[], Awaitable[int]], now_ns: Callable[[], int] = time.time_ns) -> Offset:
    """``ask`` returns what the other clock shows."""
    best = Offset(0, 1 << 62)
    for _ in range(QUESTIONS):
        before_ns = now_ns()
        shown_ns = await ask()
        after_ns = now_ns()
        within_ns = (after_ns - before_ns) // 2 + 1
        if within_ns < best.within_ns:
            best = Offset(shown_ns - (before_ns + after_ns) // 2, within_ns)
    return best if abs(best.ahead_ns) > best.within_ns else Offset(0, best.within_ns)
