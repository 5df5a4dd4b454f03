"""Durations and rates are exact, and say what is wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.emulated.settings import values


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("250ms", 250_000_000),
        ("90s", 90_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1.5h", 5_400_000_000_000),
        (".5s", 500_000_000),
        ("10us", 10_000),
        ("10µs", 10_000),
        ("0.1s", 100_000_000),
        ("0", 0),
        (0, 0),
        ("2m0.5s", 120_500_000_000),
    ],
)
def test_go_durations(text: object, ns: int) -> None:
    assert values.duration_ns(text) == ns


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (5, "did you mean 5s"),
        ("5", "not a duration"),
        ("-5s", "negative"),
        ("5 s", "not a duration"),
        ("1d", "not a duration"),
        ("", "not a duration"),
        (".s", "not a duration"),
        (True, "must be a duration"),
        (None, "must be a duration"),
        ("99999999h", "too long"),
    ],
)
def test_what_is_no_duration(value: object, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        values.duration_ns(value)


@given(st.integers(0, values.MAX_DURATION_NS))
def test_a_duration_in_words_is_the_same_duration(ns: int) -> None:
    assert values.duration_ns(values.duration_text(ns)) == ns


@pytest.mark.parametrize(("text", "rate"), [("5/s", 5.0), ("300/m", 5.0), ("0.5/h", 0.5 / 3600), ("2/ms", 2000.0)])
def test_rates(text: str, rate: float) -> None:
    assert values.rate_per_s(text) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("value", "what"), [(5, "5/s"), ("5", "5/s or 300/m"), ("0/s", "more than 0"), ("5/d", "rate")]
)
def test_what_is_no_rate(value: object, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        values.rate_per_s(value)
