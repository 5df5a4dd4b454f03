"""Ranges of sizes and costs, whose sums and products stop at 64 bits."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from kemu.emulated.cel.values import UINT_MAX


class Range(NamedTuple):
    """A size or a cost: at least `low`, at most `high`."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.low + other.low, UINT_MAX), min(self.high + other.high, UINT_MAX))

    def times(self, other: Range) -> Range:
        return Range(min(self.low * other.low, UINT_MAX), min(self.high * other.high, UINT_MAX))

    def by(self, factor: float) -> Range:
        return Range(_by(self.low, factor), _by(self.high, factor))

    def or_(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def _by(number: int, factor: float) -> int:
    if number > 0 and factor > 0 and float(number) > UINT_MAX / factor:
        return UINT_MAX
    product = math.ceil(float(number) * factor)
    return min(product, UINT_MAX)


def fixed(number: int) -> Range:
    return Range(number, number)


UNKNOWN: Final = Range(0, UINT_MAX)
NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)
NEVER: Final = Range(UINT_MAX, 0)
