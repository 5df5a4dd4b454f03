"""Intervals cover the truth as often as they say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kemu.lab.sweep.statistics import intervals

Draw = Callable[[np.random.Generator, int], np.ndarray[tuple[int], np.dtype[np.float64]]]
DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.normal(3.0, 2.0, n), 3.0),
    "exponential": (lambda rng, n: rng.exponential(5.0, n), 5.0),
}


@pytest.mark.parametrize(("name", "count"), [("normal", 8), ("normal", 40), ("exponential", 40)])
def test_intervals_of_means_cover_at_the_nominal_rate(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "RESAMPLES", 999)
    draw, truth = DISTRIBUTIONS[name]
    rng = np.random.default_rng(7)
    found = [intervals.of_mean(draw(rng, count), 0.9) for _ in range(300)]
    covered = sum(each.low <= truth <= each.high for each in found)
    # Four standard deviations of a binomial with 300 trials and p = 0.9 are 0.07.
    assert 0.83 <= covered / 300 <= 0.97


def test_the_plain_bootstrap_is_too_narrow_for_few_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "RESAMPLES", 999)
    monkeypatch.setattr(intervals, "_widened", lambda confidence, count: confidence)
    rng = np.random.default_rng(7)
    found = [intervals.of_mean(rng.normal(3.0, 2.0, 8), 0.9) for _ in range(300)]
    assert sum(each.low <= 3.0 <= each.high for each in found) / 300 < 0.83


def test_intervals_of_ratios_cover_at_the_nominal_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "RESAMPLES", 999)
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(200):
        shared = rng.normal(0.0, 1.0, 25)
        found = intervals.of_ratio(20 + shared + rng.normal(0, 1, 25), 10 + shared + rng.normal(0, 1, 25), 0.9)
        assert found is not None
        covered += found.low <= 2.0 <= found.high
    assert 0.81 <= covered / 200 <= 0.98


def test_the_same_values_give_the_same_interval() -> None:
    values = [1.0, 4.0, 2.0, 8.0, 5.0, 7.0]
    assert intervals.of_mean(values) == intervals.of_mean(values)


def test_values_that_are_all_the_same_have_an_interval_of_one_point() -> None:
    found = intervals.of_mean([2.0] * 5)
    assert (found.low, found.estimate, found.high) == (2.0, 2.0, 2.0)


def test_a_single_value_that_differs_is_no_obstacle() -> None:
    found = intervals.of_mean([0.0] * 29 + [1.0])
    assert 0.0 <= found.low <= found.estimate <= found.high <= 0.3


def test_a_ratio_to_something_that_may_be_zero_has_no_meaning() -> None:
    assert intervals.of_ratio([1.0, 2.0], [0.0, 1.0]) is None


def test_shares_have_the_interval_of_wilson() -> None:
    found = intervals.of_share(0, 100)
    assert (found.low, found.high) == (pytest.approx(0.0), pytest.approx(0.037, abs=1e-3))
