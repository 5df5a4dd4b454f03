"""How priority levels borrow seats from each other (``conc_alloc.go``, ``updateBorrowingLocked``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_SMOOTHING = 0.977
"""``seatDemandSmoothingCoefficient``."""
_LEAST_TARGET = 0.001


class Demand:
    """The seats that one level wants, over time (``fairqueuing/integrator.go``)."""

    __slots__ = ("first", "now", "passed_ns", "peak", "second", "smoothed")

    def __init__(self) -> None:
        self.now = 0
        """Seats that are taken or waited for."""
        self.peak = 0
        """The most of them in this period."""
        self.smoothed = 0.0
        self.passed_ns = self.first = self.second = 0
        """The time of the period; the integrals of seats and their squares over it, which the level keeps."""

    def end_period(self) -> int:
        """Returns the most seats of the period that ends."""
        if self.passed_ns:
            mean = self.first / self.passed_ns
            envelope = mean + math.sqrt(max(self.second / self.passed_ns - mean * mean, 0.0))
            self.smoothed = max(envelope, _SMOOTHING * self.smoothed + (1 - _SMOOTHING) * envelope)
        peak, self.peak = self.peak, self.now
        self.passed_ns = self.first = self.second = 0
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
