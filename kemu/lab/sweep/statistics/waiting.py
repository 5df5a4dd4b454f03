"""How long pods wait, where some were still waiting when they were last seen: the Kaplan-Meier estimate.

A pod that was never bound has waited at least ``waited_s``. Leaving it out, or counting it as bound at that time, makes
waits look shorter than they are. The estimate uses it for as long as it was seen, and says nothing beyond.

The pods of a run depend on one another, so a band around the curve resamples whole seeds, not pods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

RESAMPLES = 1000
_SEED = 19580601
_CELLS_AT_ONCE = 4_000_000
"""Cells of the matrix of resamples by times that are in memory at once."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Waits:
    """Waits of one seed."""

    seconds: Sequence[float]
    censored: Sequence[bool]
    """For each, whether the pod was never bound, so it waited at least that long."""


@dataclass(frozen=True)
class Curve:
    """The share of pods that still wait after a time."""

    seconds: Numbers
    """When it falls, ascending; it is 1 before."""
    waiting: Numbers
    """From each of these times until the next."""
    pods: int
    unbound: int
    until_s: float
    """The longest wait that was seen: nothing is known beyond."""
    low: Numbers = field(default_factory=lambda: np.zeros(0))
    """The band, where there are several seeds."""
    high: Numbers = field(default_factory=lambda: np.zeros(0))

    def at(self, seconds: float) -> float:
        """The share that still waits after so long."""
        place = int(np.searchsorted(self.seconds, seconds, side="right"))
        return float(self.waiting[place - 1]) if place else 1.0

    def quantile(self, share: float) -> float:
        """Within which time so many of the pods are bound; infinite where that many never were."""
        reached = np.flatnonzero(1 - self.waiting >= share - 1e-12)
        return float(self.seconds[reached[0]]) if len(reached) else math.inf


def curve(waits: Waits) -> Curve:
    """Curve of one group of pods, without a band."""
    seconds, censored = np.asarray(waits.seconds, dtype=np.float64), np.asarray(waits.censored, dtype=np.bool_)
    if not len(seconds):
        return Curve(np.zeros(0), np.zeros(0), 0, 0, 0.0)
    unbound, until_s = int(censored.sum()), float(seconds.max())
    if unbound == len(seconds):
        return Curve(np.zeros(0), np.zeros(0), len(seconds), unbound, until_s)
    survival = stats.ecdf(stats.CensoredData.right_censored(seconds, censored)).sf
    falls = np.diff(survival.probabilities, prepend=1.0) != 0
    return Curve(survival.quantiles[falls], survival.probabilities[falls], len(seconds), unbound, until_s)


def over_seeds(waits: Mapping[int, Waits], confidence: float = 0.95) -> Curve:
    """The curve of all pods of all seeds, with the pointwise band of a bootstrap of seeds (percentiles)."""
    ordered = [waits[seed] for seed in sorted(waits)]
    whole = curve(Waits([s for each in ordered for s in each.seconds], [c for each in ordered for c in each.censored]))
    if len(ordered) < 2 or not len(whole.seconds):
        return whole
    bound, at_risk = _counts(ordered, whole.seconds)
    rng = np.random.default_rng(_SEED)
    weights = rng.multinomial(len(ordered), np.full(len(ordered), 1 / len(ordered)), size=RESAMPLES)
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    low, high = np.empty(len(whole.seconds)), np.empty(len(whole.seconds))
    last = np.ones((RESAMPLES, 1))
    step = max(1, _CELLS_AT_ONCE // RESAMPLES)
    for begin in range(0, len(whole.seconds), step):
        part = slice(begin, begin + step)
        still = weights @ at_risk[:, part]
        kept = 1 - np.divide(weights @ bound[:, part], still, out=np.zeros_like(still), where=still > 0)
        drawn = last * np.cumprod(kept, axis=1)
        last = drawn[:, -1:]
        low[part], high[part] = np.quantile(drawn, tails, axis=0)
    return Curve(whole.seconds, whole.waiting, whole.pods, whole.unbound, whole.until_s, low, high)


def _counts(waits: Sequence[Waits], times: Numbers) -> tuple[Numbers, Numbers]:
    """By seed and time: how many pods were bound after exactly that wait, and how many had waited at least as long."""
    bound, at_risk = np.zeros((len(waits), len(times))), np.zeros((len(waits), len(times)))
    for place, each in enumerate(waits):
        seconds, censored = np.asarray(each.seconds, dtype=np.float64), np.asarray(each.censored, dtype=np.bool_)
        ordered = np.sort(seconds)
        at_risk[place] = len(ordered) - np.searchsorted(ordered, times, side="left")
        found, counts = np.unique(seconds[~censored], return_counts=True)
        bound[place, np.searchsorted(times, found)] = counts
    return bound, at_risk
