"""Distributions as scenarios write them: latencies, run times, intervals.

A plain number, or a mapping with one key::

    1.5
    {"uniform": {"min": 1, "max": 20}}
    {"exponential": {"mean": 60}}
    {"normal": {"mean": 10, "sd": 2, "min": 0}}           # drawn again while below min
    {"lognormal": {"median": 1, "p99": 8}}
    {"choice": [{"value": 1, "weight": 9}, {"value": 60}]}  # weight 1 unless stated
"""

from __future__ import annotations

import abc
import bisect
import itertools
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_Z99 = 2.3263478740408408
"""The 99th percentile of the standard normal distribution."""

_MAX_REDRAWS = 1000


class DistributionError(ValueError):
    """A description that is not a distribution. ``path`` says where in it, e.g. ``uniform.min``."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


class Distribution(abc.ABC):
    """A distribution of numbers. Draws come from the stream that the caller passes."""

    constant: float | None = None
    """The number itself if all draws are equal."""

    @abc.abstractmethod
    def draw(self, stream: random.Random) -> float: ...

    @abc.abstractmethod
    def quantile(self, share: float) -> float:
        """The number that this share of all draws does not exceed; ``share`` in [0, 1).

        For streams in which each number must take one draw, and no more.
        """

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        return [self.quantile(share) for share in shares]

    @property
    @abc.abstractmethod
    def average(self) -> float:
        """The mean of what is drawn, exact; infinite where it is more than a float holds."""


@dataclass(frozen=True)
class Constant(Distribution):
    constant: float

    def draw(self, stream: random.Random) -> float:
        return self.constant

    def quantile(self, share: float) -> float:
        return self.constant

    @property
    def average(self) -> float:
        return self.constant


@dataclass(frozen=True)
class Uniform(Distribution):
    low: float
    high: float

    def draw(self, stream: random.Random) -> float:
        return stream.uniform(self.low, self.high)

    def quantile(self, share: float) -> float:
        return self.low + (self.high - self.low) * share

    @property
    def average(self) -> float:
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class Exponential(Distribution):
    mean: float

    def draw(self, stream: random.Random) -> float:
        return stream.expovariate(1.0) * self.mean

    def quantile(self, share: float) -> float:
        return -math.log1p(-share) * self.mean

    @property
    def average(self) -> float:
        return self.mean


@dataclass(frozen=True)
class Normal(Distribution):
    """Truncated at ``low`` by drawing again; ``low`` is not above the mean, so that ends soon."""

    mean: float
    sd: float
    low: float

    def draw(self, stream: random.Random) -> float:
        for _ in range(_MAX_REDRAWS):
            number = stream.gauss(self.mean, self.sd)
            if number >= self.low:
                return number
        return self.low

    def quantile(self, share: float) -> float:
        if self.sd == 0:
            return self.mean
        normal = statistics.NormalDist(self.mean, self.sd)
        below = normal.cdf(self.low) if self.low > -math.inf else 0.0
        return max(self.low, normal.inv_cdf(_inner(below + (1 - below) * share)))

    @property
    def average(self) -> float:
        if self.sd == 0 or self.low == -math.inf:
            return self.mean
        # Of a normal distribution that is truncated from below.
        cut = (self.low - self.mean) / self.sd
        return self.mean + self.sd * _STANDARD.pdf(cut) / (1 - _STANDARD.cdf(cut))


@dataclass(frozen=True)
class LogNormal(Distribution):
    mu: float
    sigma: float

    def draw(self, stream: random.Random) -> float:
        return math.exp(stream.gauss(self.mu, self.sigma))

    def quantile(self, share: float) -> float:
        if not _LEAST <= share <= _MOST:
            share = _inner(share)
        return math.exp(self.mu + self.sigma * _standard_quantile(share, 0.0, 1.0))

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        # As quantile(), without a call for each.
        mu, sigma = self.mu, self.sigma
        return [
            math.exp(mu + sigma * _standard_quantile(share if _LEAST <= share <= _MOST else _inner(share), 0.0, 1.0))
            for share in shares
        ]

    @property
    def average(self) -> float:
        try:
            return math.exp(self.mu + self.sigma * self.sigma / 2)
        except OverflowError:
            return math.inf


@dataclass(frozen=True)
class Choice(Distribution):
    values: tuple[float, ...]
    cumulative_weights: tuple[float, ...]

    def draw(self, stream: random.Random) -> float:
        return stream.choices(self.values, cum_weights=self.cumulative_weights)[0]

    def quantile(self, share: float) -> float:
        place = bisect.bisect(self.cumulative_weights, share * self.cumulative_weights[-1])
        return self.values[min(place, len(self.values) - 1)]

    @property
    def average(self) -> float:
        weights = (after - before for before, after in itertools.pairwise((0.0, *self.cumulative_weights)))
        total = math.fsum(value * weight for value, weight in zip(self.values, weights, strict=True))
        return total / self.cumulative_weights[-1]


_STANDARD = statistics.NormalDist()
_standard_quantile: Callable[[float, float, float], float] = getattr(
    statistics, "_normal_dist_inv_cdf", lambda share, mean, sd: statistics.NormalDist(mean, sd).inv_cdf(share)
)
"""What ``NormalDist.inv_cdf`` calls once it has looked at its argument: each message asks for a number."""
_LEAST, _MOST = 2.0**-53, 1 - 2.0**-53


def _inner(share: float) -> float:
    """Within (0, 1), where quantiles are finite."""
    return min(max(share, _LEAST), _MOST)


def parse(data: object, *, number: Callable[[Any], float] | None = None, minimum: float | None = 0.0) -> Distribution:
    """Read a distribution from plain data.

    ``number`` reads one number (the default takes ints and floats only): a scenario passes its parser of durations.
    ``minimum``: values that could be drawn below it are refused (None: nothing is); a normal distribution without
    ``min`` is cut off there. Raises :class:`DistributionError`.
    """
    read = number or _plain_number

    def value(path: str, raw: object) -> float:
        try:
            result = float(read(raw))
        except DistributionError:
            raise
        except (TypeError, ValueError) as error:
            raise DistributionError(path, str(error)) from error
        if not math.isfinite(result):
            raise DistributionError(path, f"{raw!r} is not finite")
        return result

    def at_least(path: str, raw: object, lower: float | None) -> float:
        result = value(path, raw)
        if lower is not None and result < lower:
            raise DistributionError(path, f"must be at least {lower:g}, is {result:g}")
        return result

    if not isinstance(data, Mapping):
        return Constant(at_least("", data, minimum))
    if len(data) != 1:
        raise DistributionError(
            "", f"expected one of {', '.join(_KINDS)}, got {', '.join(map(str, data)) or 'nothing'}"
        )
    kind, parameters = next(iter(data.items()))
    if kind == "choice":
        return _choice(parameters, lambda path, raw: at_least(path, raw, minimum))
    if kind not in _KINDS:
        raise DistributionError(str(kind), f"unknown distribution, expected one of {', '.join(_KINDS)}")
    given = _parameters(kind, parameters)
    if kind == "uniform":
        low = at_least("uniform.min", given["min"], minimum)
        return Uniform(low, at_least("uniform.max", given["max"], low))
    if kind == "exponential":
        return Exponential(at_least("exponential.mean", given["mean"], 0.0))
    if kind == "normal":
        mean = value("normal.mean", given["mean"])
        sd = at_least("normal.sd", given["sd"], 0.0)
        low = -math.inf if minimum is None else minimum
        if "min" in given:
            low = at_least("normal.min", given["min"], minimum)
        if mean < low:
            raise DistributionError("normal.mean", f"must be at least the minimum {low:g}, is {mean:g}")
        return Normal(mean, sd, low)
    median = at_least("lognormal.median", given["median"], 0.0)
    if median == 0:
        raise DistributionError("lognormal.median", "must be above 0")
    p99 = at_least("lognormal.p99", given["p99"], median)
    return LogNormal(math.log(median), math.log(p99 / median) / _Z99)


def scaled(data: object, factor: float) -> object:
    """The plain data of a distribution whose draws are ``factor`` times as large."""
    if not isinstance(data, Mapping):
        return _plain_number(data) * factor
    ((kind, parameters),) = data.items()
    if kind == "choice":
        return {kind: [{**entry, "value": entry["value"] * factor} for entry in parameters]}
    return {kind: {name: value * factor for name, value in parameters.items()}}


_KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "uniform": (("min", "max"), ()),
    "exponential": (("mean",), ()),
    "normal": (("mean", "sd"), ("min",)),
    "lognormal": (("median", "p99"), ()),
    "choice": ((), ()),
}
"""Required and optional parameters by kind."""


def _plain_number(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise TypeError(f"expected a number, got {raw!r}")
    return float(raw)


def _parameters(kind: str, parameters: object) -> Mapping[str, Any]:
    required, optional = _KINDS[kind]
    if not isinstance(parameters, Mapping):
        raise DistributionError(kind, f"expected a mapping with {', '.join(required)}")
    for key in parameters:
        if key not in required and key not in optional:
            raise DistributionError(f"{kind}.{key}", f"unknown, expected {', '.join(required + optional)}")
    for key in required:
        if key not in parameters:
            raise DistributionError(kind, f"{key} is missing")
    return parameters


def _choice(entries: object, value: Callable[[str, Any], float]) -> Choice:
    if not isinstance(entries, Sequence) or isinstance(entries, str | bytes) or not entries:
        raise DistributionError("choice", "expected a list of {value, weight}")
    values: list[float] = []
    cumulative: list[float] = []
    total = 0.0
    for index, entry in enumerate(entries):
        where = f"choice[{index}]"
        if not isinstance(entry, Mapping) or "value" not in entry or set(entry) - {"value", "weight"}:
            raise DistributionError(where, "expected {value, weight}")
        try:
            weight = _plain_number(entry.get("weight", 1))
        except TypeError as error:
            raise DistributionError(f"{where}.weight", str(error)) from error
        if not 0 <= weight < math.inf:
            raise DistributionError(f"{where}.weight", f"must be finite and at least 0, is {weight:g}")
        total += weight
        values.append(value(f"{where}.value", entry["value"]))
        cumulative.append(total)
    if total <= 0:
        raise DistributionError("choice", "all weights are 0")
    return Choice(tuple(values), tuple(cumulative))
