"""Floats of 32 bits, as Kubernetes holds a few settings, where a comparison turns on their rounding."""

from __future__ import annotations

import struct


def to_32_bits(number: float) -> float:
    """The nearest float of 32 bits. Raises OverflowError where they cannot hold the number."""
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded
