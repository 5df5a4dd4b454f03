"""Confidence intervals over seeds. The same values give the same interval: the resampling has a fixed seed.

Means, differences and ratios: bootstrap, BCa (Efron 1987), of :func:`scipy.stats.bootstrap`. Its tails are widened for
few values (the "expanded" interval of Hesterberg 2015), as the plain bootstrap of a mean is too narrow by (n-1)/n in
variance, and takes Student's distribution for the normal one. Shares: Wilson's score interval.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

RESAMPLES = 9999
_SEED = 20130415
_AT_ONCE = 1000
"""Resamples that are in memory at the same time."""
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An end that nothing is known of is infinite: both, of a single value."""

    estimate: float
    low: float
    high: float
    confidence: float
    """Confidence of the interval, both sides together."""
    count: int
    """The number of values."""

    def data(self) -> dict[str, float | None]:
        """For JSON; what is not known is None."""
        ends = {"low": self.low, "high": self.high}
        return {"estimate": self.estimate, **{k: end if math.isfinite(end) else None for k, end in ends.items()}}


def of_mean(values: Sequence[float] | Values, confidence: float = 0.95) -> Interval:
    """The interval of the mean; of paired differences, give the differences. Raises ValueError of no values at all."""
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        raise ValueError("there are no values")
    return _bootstrapped((sample,), np.mean, confidence)


def of_ratio(above: Sequence[float], below: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """The interval of the ratio of the means of paired values; None where one of ``below`` is not positive."""
    upper, lower = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    if len(upper) != len(lower):
        raise ValueError("the values are not paired")
    if not len(lower) or lower.min() <= 0:
        return None
    return _bootstrapped((upper, lower), _ratio, confidence)


def of_share(found: int, trials: int, confidence: float = 0.95) -> Interval:
    """The interval of a probability, from so many successes in so many trials."""
    wilson = stats.binomtest(found, trials).proportion_ci(confidence, method="wilson")
    return Interval(found / trials, float(wilson.low), float(wilson.high), confidence, trials)


def _ratio(above: Values, below: Values, axis: int = -1) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = np.mean(above, axis=axis) / np.mean(below, axis=axis)
    return ratio


def _bootstrapped(samples: tuple[Values, ...], statistic: Callable[..., Any], confidence: float) -> Interval:
    estimate, count = float(statistic(*samples)), len(samples[0])
    if count < 2:
        return Interval(estimate, -math.inf, math.inf, confidence, count)
    if all(np.ptp(sample) == 0 for sample in samples):
        return Interval(estimate, estimate, estimate, confidence, count)
    for method in ("BCa", "percentile"):
        # Where no resample is below the estimate, or none above it, BCa divides by 0 and gives no number.
        with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
            warnings.simplefilter("ignore", stats.DegenerateDataWarning)
            found = stats.bootstrap(
                samples,
                statistic,
                n_resamples=RESAMPLES,
                batch=_AT_ONCE,
                vectorized=True,
                paired=True,
                axis=-1,
                confidence_level=_widened(confidence, count),
                method=method,
                rng=np.random.default_rng(_SEED),
            ).confidence_interval
        if not (math.isnan(found.low) or math.isnan(found.high)):
            break  # BCa knows no answer where almost all values are the same.
    return Interval(estimate, float(found.low), float(found.high), confidence, count)


def _widened(confidence: float, count: int) -> float:
    """The nominal confidence at which the bootstrap of so few values has this one (Hesterberg 2015, section 5.2)."""
    tail = stats.t.isf((1 - confidence) / 2, count - 1)
    return float(1 - 2 * stats.norm.sf(math.sqrt(count / (count - 1)) * tail))
