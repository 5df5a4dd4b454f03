from __future__ import annotations

import math
import random
import statistics
from typing import Any

import pytest

from kemu.runtime import distributions, random_streams


def draws(data: Any, count: int = 4000, **options: Any) -> list[float]:
    distribution = distributions.parse(data, **options)
    stream = random_streams.random_stream(1, "test")
    return [distribution.draw(stream) for _ in range(count)]


def test_a_plain_number_is_constant() -> None:
    distribution = distributions.parse(1.5)
    assert distribution.constant == 1.5
    assert distribution.draw(random.Random(0)) == 1.5
    assert distributions.parse({"uniform": {"min": 1, "max": 2}}).constant is None


def test_uniform() -> None:
    numbers = draws({"uniform": {"min": 2, "max": 4}})
    assert 2 <= min(numbers) < 2.05
    assert 3.95 < max(numbers) <= 4
    assert statistics.mean(numbers) == pytest.approx(3, abs=0.05)


def test_exponential() -> None:
    numbers = draws({"exponential": {"mean": 60}})
    assert min(numbers) >= 0
    assert statistics.mean(numbers) == pytest.approx(60, rel=0.06)


def test_normal_is_cut_off_at_its_minimum() -> None:
    numbers = draws({"normal": {"mean": 10, "sd": 2}})
    assert statistics.mean(numbers) == pytest.approx(10, abs=0.2)
    assert statistics.stdev(numbers) == pytest.approx(2, abs=0.2)
    assert min(draws({"normal": {"mean": 10, "sd": 5, "min": 9}})) >= 9
    assert min(draws({"normal": {"mean": 1, "sd": 5}})) >= 0
    assert min(draws({"normal": {"mean": 1, "sd": 5}}, minimum=None)) < 0


def test_lognormal_has_the_stated_median_and_99th_percentile() -> None:
    numbers = sorted(draws({"lognormal": {"median": 1, "p99": 8}}, 40_000))
    assert statistics.median(numbers) == pytest.approx(1, rel=0.03)
    assert numbers[int(len(numbers) * 0.99)] == pytest.approx(8, rel=0.1)


def test_choice_is_weighted() -> None:
    numbers = draws({"choice": [{"value": 1, "weight": 9}, {"value": 60}]})
    assert set(numbers) == {1.0, 60.0}
    assert numbers.count(60.0) == pytest.approx(400, abs=80)


def test_numbers_are_read_as_the_caller_says() -> None:
    assert distributions.parse("250ms", number=lambda text: float(text.removesuffix("ms")) / 1000).constant == 0.25


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        ("1s", "", "expected a number, got '1s'"),
        (True, "", "expected a number"),
        (-1, "", "must be at least 0"),
        (math.inf, "", "not finite"),
        ({}, "", "expected one of uniform, exponential, normal, lognormal, choice, got nothing"),
        ({"uniform": {}, "normal": {}}, "", "got uniform, normal"),
        ({"gauss": {}}, "gauss", "unknown distribution"),
        ({"uniform": 3}, "uniform", "expected a mapping with min, max"),
        ({"uniform": {"min": 1}}, "uniform", "max is missing"),
        ({"uniform": {"min": 1, "max": 2, "sd": 1}}, "uniform.sd", "unknown, expected min, max"),
        ({"uniform": {"min": 2, "max": 1}}, "uniform.max", "must be at least 2, is 1"),
        ({"exponential": {"mean": "x"}}, "exponential.mean", "expected a number"),
        ({"normal": {"mean": 1, "sd": 1, "min": 2}}, "normal.mean", "must be at least the minimum 2"),
        ({"lognormal": {"median": 0, "p99": 1}}, "lognormal.median", "must be above 0"),
        ({"lognormal": {"median": 2, "p99": 1}}, "lognormal.p99", "must be at least 2"),
        ({"choice": []}, "choice", "expected a list"),
        ({"choice": [{"weight": 1}]}, "choice[0]", "expected {value, weight}"),
        ({"choice": [{"value": 1, "weight": -1}]}, "choice[0].weight", "at least 0"),
        ({"choice": [{"value": 1, "weight": 0}]}, "choice", "all weights are 0"),
        ({"choice": [{"value": -1}]}, "choice[0].value", "must be at least 0"),
    ],
)
def test_mistakes_say_where_and_what(data: Any, path: str, message: str) -> None:
    with pytest.raises(distributions.DistributionError) as info:
        distributions.parse(data)
    assert info.value.path == path
    assert message in info.value.message


def test_streams_are_named_and_independent() -> None:
    numbers = [random_streams.random_stream(7, "actor", "a").random() for _ in range(2)]
    assert numbers[0] == numbers[1] == 0.29606456273420667
    assert random_streams.random_stream(7, "actor", "b").random() != numbers[0]
    assert random_streams.random_stream(8, "actor", "a").random() != numbers[0]
    assert random_streams.random_stream(7, "a", "b").random() != random_streams.random_stream(7, "ab").random()


@pytest.mark.parametrize(
    "described",
    [
        {"uniform": {"min": 1, "max": 20}},
        {"exponential": {"mean": 60}},
        {"normal": {"mean": 10, "sd": 2, "min": 9}},
        {"normal": {"mean": 10, "sd": 0}},
        {"lognormal": {"median": 1, "p99": 8}},
        {"choice": [{"value": 1, "weight": 9}, {"value": 60}]},
        3,
    ],
)
def test_quantiles_are_those_of_the_draws(described: Any) -> None:
    distribution = distributions.parse(described)
    stream = random.Random(1)
    draws = sorted(distribution.draw(stream) for _ in range(4001))
    for share in (0.1, 0.5, 0.85):
        assert distribution.quantile(share) == pytest.approx(draws[int(share * 4001)], rel=0.1)
    assert distribution.quantile(0.0) <= distribution.quantile(1 - 2.0**-53) < math.inf
