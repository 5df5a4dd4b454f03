"""Of many cases that are drawn alike, or recorded alike, CI asks some, spread evenly; the night asks all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

NIGHT = os.environ.get("KEMU_NIGHTLY") == "1"
"""As in scripts/nightly."""
T = TypeVar("T")


def one_in(many: int) -> int:
    """The step between the cases that are asked."""
    return 1 if NIGHT else many


def of_a_day(cases: Iterable[T], enough: int) -> list[T]:
    """All, or by day so many at least where there are that many, and less than twice as many."""
    found = list(cases)
    return found[:: one_in(max(1, len(found) // enough))]
