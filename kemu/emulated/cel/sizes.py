"""The largest results that functions build: costs are counted when a call has ended, which is too late for these."""

from __future__ import annotations

LARGEST = 1 << 26


class Oversized(Exception):
    """A result would be larger than any whose cost is within a limit."""


def bounded(size: int) -> None:
    """Refuse a result of `size` characters or items if that is more than `LARGEST`."""
    if size > LARGEST:
        raise Oversized
