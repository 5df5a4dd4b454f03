"""``math/rand`` of Go, as it was up to Go 1.19: the published runs draw from it.

The generator is an additive lagged Fibonacci one: x(n) = x(n-607) + x(n-273) modulo 2⁶⁴. Go mixes its seed with the
state that this recurrence has after 7.8 x 10¹² steps, and carries that as a table of 607 numbers. Here they are
computed: among polynomials modulo x⁶⁰⁷ - x³³⁴ - 1, so many steps are 43 squarings.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

_LENGTH, _TAP = 607, 273
_FEED = _LENGTH - _TAP
_STEPS_BEFORE = 7_800_000_000_000
_MASK = (1 << 64) - 1

_Words = npt.NDArray[np.uint64]


class GoRandom:
    """What ``rand.New(rand.NewSource(seed))`` draws."""

    __slots__ = ("_feed", "_state", "_tap")

    def __init__(self, seed: int) -> None:
        mixed = zip(_seeded(seed, (40, 20, 0)), _cooked(), strict=True)
        self._state = [(one ^ other) & _MASK for one, other in mixed]
        self._tap, self._feed = 0, _FEED

    def int63(self) -> int:
        self._tap = (self._tap - 1) % _LENGTH
        self._feed = (self._feed - 1) % _LENGTH
        word = (self._state[self._feed] + self._state[self._tap]) & _MASK
        self._state[self._feed] = word
        return word & (_MASK >> 1)

    def float64(self) -> float:
        """In [0, 1)."""
        while (drawn := self.int63() / (1 << 63)) == 1.0:
            pass
        return drawn

    def intn(self, n: int) -> int:
        """From 0 to ``n`` - 1. ``n``: positive, below 2³¹."""
        if n & (n - 1) == 0:
            return (self.int63() >> 32) & (n - 1)
        highest = (1 << 31) - 1 - (1 << 31) % n
        while (drawn := self.int63() >> 32) > highest:
            pass
        return drawn % n

    def perm(self, n: int) -> list[int]:
        """A permutation of 0 to ``n`` - 1."""
        found = [0] * n
        for i in range(n):
            j = self.intn(i + 1)
            found[i] = found[j]
            found[j] = i
        return found

    def shuffle(self, values: MutableSequence[Any]) -> None:
        """In place."""
        for i in range(len(values) - 1, 0, -1):
            j = self._fraction(i + 1)
            values[i], values[j] = values[j], values[i]

    def _fraction(self, n: int) -> int:
        """As ``intn``, by Lemire's multiplication instead of a division: other draws for the same state."""
        product = (self.int63() >> 31) * n
        if product & 0xFFFFFFFF < n:
            least = (1 << 32) % n
            while product & 0xFFFFFFFF < least:
                product = (self.int63() >> 31) * n
        return product >> 32


def _seeded(seed: int, shifts: tuple[int, int, int]) -> list[int]:
    """Numbers of the generator of Park and Miller, three for each word."""
    modulus = (1 << 31) - 1
    x = seed % modulus or 89482311
    words = []
    for number in range(-20, _LENGTH):
        x = x * 48271 % modulus
        if number < 0:
            continue
        word = 0
        for place, shift in enumerate(shifts):
            if place:
                x = x * 48271 % modulus
            word ^= x << shift
        words.append(word)
    return words


@cache
def _cooked() -> list[int]:
    """The state after ``_STEPS_BEFORE`` steps from seed 1, by its place in Go's array."""
    # The array is filled from its _FEED-th element downwards, so this is the order in which its words were made.
    state = _seeded(1, (20, 10, 0))
    made = [state[(_FEED + age) % _LENGTH] for age in range(_LENGTH - 1, -1, -1)]
    for _ in range(_LENGTH - 1):
        made.append((made[-_LENGTH] + made[-_TAP]) & _MASK)
    words = np.array(made, dtype=np.uint64)
    factors = _power(_STEPS_BEFORE)
    last = [int((factors * words[start : start + _LENGTH]).sum()) for start in range(_LENGTH)]
    found = [0] * _LENGTH
    for age, word in enumerate(reversed(last)):
        found[(_FEED - _STEPS_BEFORE + age) % _LENGTH] = word
    return found


def _power(exponent: int) -> _Words:
    """x to this power modulo x⁶⁰⁷ - x³³⁴ - 1: the factors of 607 words in a row whose sum is the word so much later."""
    found = np.zeros(_LENGTH, dtype=np.uint64)
    found[0] = 1
    for bit in f"{exponent:b}":
        found = _reduced(np.convolve(found, found))
        if bit == "1":
            found = _reduced(np.concatenate((np.zeros(1, dtype=np.uint64), found)))
    return found


def _reduced(polynomial: _Words) -> _Words:
    while len(polynomial) > _LENGTH:
        low, high = polynomial[:_LENGTH].copy(), polynomial[_LENGTH:]
        folded = np.zeros(max(_LENGTH, len(high) + _FEED), dtype=np.uint64)
        folded[:_LENGTH] = low
        folded[: len(high)] += high
        folded[_FEED : _FEED + len(high)] += high
        polynomial = folded if len(folded) > _LENGTH else folded[:_LENGTH]
    return polynomial
