"""Arithmetic that several score plugins share."""

from __future__ import annotations

import numpy as np

from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.framework.interfaces import MAX_SCORE


def by_maximum(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """``DefaultNormalizeScore``: 100 * score / maximum; all 0 (reversed: all 100) when the maximum is 0."""
    highest = int(scores.max()) if scores.size else 0
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled: IntArray = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled
