"""What ends an evaluation at once, and bounds of what functions build."""

from __future__ import annotations

#: The largest result that a function builds: costs are counted when a call has ended, too late for larger ones.
LARGEST = 1 << 26


class Exceeded(Exception):
    """The cost passed the limit."""


class Panicked(Exception):
    """Where cel-go panics: the evaluation ends at once, whatever else would do without the value."""


class Oversized(Exception):
    """A result would be larger than any whose cost is within a limit."""


def bounded(size: int) -> None:
    """Refuse a result of `size` characters or items if that is more than `LARGEST`."""
    if size > LARGEST:
        raise Oversized


def compared(left: int, right: int) -> None:
    """Refuse to compare all items of two lists with each other, if that is more work than any limit of costs admits."""
    bounded(left * right * 8)
