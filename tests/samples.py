"""Of many cases that are drawn alike, or recorded alike, CI asks some, spread evenly; the night asks all."""

from __future__ import annotations

import os

NIGHT = os.environ.get("KEMU_NIGHTLY") == "1"
"""As in scripts/nightly."""


def one_in(many: int) -> int:
    """The step between the cases that are asked."""
    return 1 if NIGHT else many


def step(count: int, enough: int) -> int:
    """The same, so that by day so many are asked at least, where there are that many, and less than twice as many."""
    return one_in(max(1, count // enough))
