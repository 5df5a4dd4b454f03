"""32-bit floats: Kubernetes holds a few settings in them, and their rounding can decide a comparison."""

from __future__ import annotations

import struct


def to_32_bits(number: float) -> float:
    """The nearest 32-bit float. Raises OverflowError for a number that it cannot hold."""
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded
