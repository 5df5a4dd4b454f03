"""``java.util.Random``, as its documentation states it: the published counts come from a program in Java."""

from __future__ import annotations

_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


class JavaRandom:
    """48 bits of state. ``next_int`` and ``next_double`` are Java's ``nextInt(bound)`` and ``nextDouble()``."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _next(self, bits: int) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> (48 - bits)

    def next_int(self, bound: int) -> int:
        """From 0 to ``bound`` - 1. ``bound``: positive, below 2³¹."""
        if bound & (bound - 1) == 0:
            return (bound * self._next(31)) >> 31
        while True:
            bits = self._next(31)
            value = bits % bound
            # Where Java's 32-bit sum would overflow, the draw is repeated: the last values would come too often.
            if bits - value + bound - 1 < 1 << 31:
                return value

    def next_double(self) -> float:
        """From 0 to below 1."""
        return float((self._next(26) << 27) + self._next(27)) * 2.0**-53
