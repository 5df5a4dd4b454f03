"""How priority levels borrow seats from each other (``conc_alloc.go``, ``updateBorrowingLocked``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from kemu.runtime.env import SECOND_NS

_SMOOTHING = 0.977
"""``seatDemandSmoothingCoefficient``."""
_LEAST_TARGET = 0.001


class Demand:
    """The seats that one level wants, over time (``fairqueuing/integrator.go``)."""

    __slots__ = ("_first", "_second", "_since_ns", "_start_ns", "now", "peak", "smoothed")

    def __init__(self, now_ns: int) -> None:
        self.now = 0
        """Seats that are taken or waited for."""
        self.peak = 0
        """The most of them in the last period."""
        self.smoothed = 0.0
        self._start_ns = self._since_ns = now_ns
        self._first = self._second = 0.0

    def set(self, seats: int, now_ns: int) -> None:
        passed = (now_ns - self._since_ns) / SECOND_NS
        self._since_ns = now_ns
        self._first += passed * self.now
        self._second += passed * self.now * self.now
        self.now = seats
        self.peak = max(self.peak, seats)

    def end_period(self, now_ns: int) -> int:
        """Returns the most seats of the period that ends."""
        self.set(self.now, now_ns)
        peak, self.peak = self.peak, self.now
        passed = (now_ns - self._start_ns) / SECOND_NS
        if passed > 0:
            mean = self._first / passed
            envelope = mean + math.sqrt(max(self._second / passed - mean * mean, 0.0))
            self.smoothed = max(envelope, _SMOOTHING * self.smoothed + (1 - _SMOOTHING) * envelope)
        self._start_ns = now_ns
        self._first = self._second = 0.0
        return peak


class Claim(NamedTuple):
    """What one level may get of the seats."""

    least: float
    most: float
    target: float


def shares(seats: int, claims: Sequence[Claim]) -> list[float]:
    """Seats of each, in proportion to its target as far as its bounds allow (``computeConcurrencyAllocation``).
    ``seats`` lies between the sums of the bounds."""
    claims = [one._replace(target=max(one.target, _LEAST_TARGET)) for one in claims]

    def given(proportion: float) -> list[float]:
        return [max(one.least, min(one.most, proportion * one.target)) for one in claims]

    # Their sum grows with the proportion, in a straight line between two bounds.
    low, below = 0.0, sum(given(0.0))
    for bound in sorted(bound / one.target for one in claims for bound in (one.least, one.most)):
        above = sum(given(bound))
        if above >= seats:
            return given(low + (bound - low) * (seats - below) / (above - below) if above > below else bound)
        low, below = bound, above
    return given(low)
