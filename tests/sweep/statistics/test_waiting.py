"""A pod still pending must not shorten the curve."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kemu.lab.sweep.statistics import waiting
from kemu.lab.sweep.statistics.waiting import Waits

MEAN_S, HORIZON_S, PODS = 60.0, 120.0, 4000


def planted(pods: int = PODS, seed: int = 3) -> Waits:
    """Pods come evenly in 120 s, wait for 60 s on average (exponentially), and the run ends at 120 s."""
    rng = np.random.default_rng(seed)
    true_s, seen_s = rng.exponential(MEAN_S, pods), HORIZON_S - rng.uniform(0, HORIZON_S, pods)
    return Waits(np.minimum(true_s, seen_s).tolist(), (true_s > seen_s).tolist())


def error(share_waiting: dict[float, float]) -> float:
    """The largest distance from the truth."""
    return max(abs(share - math.exp(-seconds / MEAN_S)) for seconds, share in share_waiting.items())


TIMES_S = (10.0, 30.0, 60.0, 90.0)


def test_kaplan_meier_finds_the_truth() -> None:
    found = waiting.curve(planted())
    assert found.unbound > PODS / 3
    assert error({seconds: found.at(seconds) for seconds in TIMES_S}) < 0.03
    assert found.quantile(0.5) == pytest.approx(MEAN_S * math.log(2), rel=0.06)


def test_a_naive_cdf_does_not() -> None:
    waits = planted()
    seconds, censored = np.array(waits.seconds), np.array(waits.censored)
    without = {each: float(np.mean(seconds[~censored] > each)) for each in TIMES_S}
    as_bound = {each: float(np.mean(seconds > each)) for each in TIMES_S}
    assert error(without) > 0.15
    assert error(as_bound) > 0.15
    # Both say that pods are served sooner than they are.
    assert all(naive[each] < math.exp(-each / MEAN_S) for naive in (without, as_bound) for each in TIMES_S)
    assert np.median(seconds) < 0.8 * MEAN_S * math.log(2)


def test_a_small_one_by_hand() -> None:
    # Bound after 1, 2 and 4 s; one seen to wait for 2 s, one for 5 s: 4/5, then 3/4 of that, then 1/2 of that.
    found = waiting.curve(Waits([1, 2, 2, 4, 5], [False, False, True, False, True]))
    assert found.seconds.tolist() == [1, 2, 4]
    assert found.waiting.tolist() == pytest.approx([0.8, 0.6, 0.3])
    assert (found.at(0.5), found.at(4), found.at(100)) == (1.0, pytest.approx(0.3), pytest.approx(0.3))
    assert (found.quantile(0.2), found.quantile(0.7), found.quantile(0.71)) == (1, 4, math.inf)
    assert (found.pods, found.unbound, found.until_s) == (5, 2, 5)


def test_nobody_was_bound() -> None:
    found = waiting.over_seeds({1: Waits([3.0, 4.0], [True, True]), 2: Waits([5.0], [True])})
    assert (found.at(2.0), found.quantile(0.5), found.until_s) == (1.0, math.inf, 5.0)
    assert waiting.curve(Waits([], [])).pods == 0


def test_the_band_is_that_of_seeds_and_not_of_pods() -> None:
    """In each seed all pods wait for the same time: 20 seeds are 20 observations, however many pods there are."""
    rng = np.random.default_rng(5)
    found = waiting.over_seeds({seed: Waits([s] * 50, [False] * 50) for seed, s in enumerate(rng.exponential(60, 20))})
    place = len(found.seconds) // 2
    width = found.high[place] - found.low[place]
    assert width == pytest.approx(2 * 1.96 * math.sqrt(0.25 / 20), rel=0.2)


def test_the_band_holds_the_curve_and_is_the_same_every_time() -> None:
    waits = {seed: planted(60, seed) for seed in range(8)}
    found, again = waiting.over_seeds(waits), waiting.over_seeds(dict(reversed(waits.items())))
    assert (found.low <= found.waiting + 1e-9).all()
    assert (found.waiting <= found.high + 1e-9).all()
    assert found.low.tolist() == again.low.tolist()


def test_the_band_is_made_of_kaplan_meier_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every resample is the whole, both sides are the curve; in whatever parts it is computed."""
    monkeypatch.setattr(waiting, "RESAMPLES", 1)
    monkeypatch.setattr(waiting, "_CELLS_AT_ONCE", 7)
    waits = {seed: planted(30, seed) for seed in range(3)}
    monkeypatch.setattr(np.random, "default_rng", lambda seed: _Whole())
    found = waiting.over_seeds(waits)
    assert found.low.tolist() == pytest.approx(found.waiting.tolist())


class _Whole:
    def multinomial(self, count: int, shares: object, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        return np.ones((size, count), dtype=np.int64)
