"""When the pods of a workload come: once, at intervals, or as a Poisson process whose rate is constant or a ramp."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

from kemu.lab.scenario.format.workloads import Arrivals, Ramp
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS


def arrival_times(arrivals: Arrivals, stream: random.Random) -> Iterator[int]:
    """When the pods come, in ns, in order; may go on for ever only as far as ``until_ns``."""
    times = _times(arrivals, stream)
    for number, when_ns in enumerate(times):
        if when_ns >= arrivals.until_ns or (arrivals.count is not None and number >= arrivals.count):
            return
        yield when_ns


def expected_arrivals(arrivals: Arrivals) -> float:
    """About how many pods will come."""
    span_s = max(0, arrivals.until_ns - arrivals.start_ns) / SECOND_NS
    if arrivals.every:
        found = expected_repeats(arrivals.every, arrivals.until_ns - arrivals.start_ns)
    elif arrivals.poisson is not None:
        found = arrivals.poisson.rate_per_s * span_s
    elif arrivals.ramp is not None:
        found = (arrivals.ramp.from_per_s + arrivals.ramp.to_per_s) / 2 * span_s
    else:
        return float(arrivals.count or 0)
    return found if arrivals.count is None else min(found, float(arrivals.count))


def expected_repeats(every: object, span_ns: int) -> float:
    """About how often something happens in a time that happens at intervals of this distribution, in seconds."""
    interval = distributions.parse(every)
    stream = random.Random(0)  # an estimate: nothing of the run depends on it
    mean_ns = sum(max(1, interval.draw(stream) * SECOND_NS) for _ in range(_DRAWS)) / _DRAWS
    return max(0, span_ns) / mean_ns


_DRAWS = 100


def _times(arrivals: Arrivals, stream: random.Random) -> Iterator[int]:
    start_ns = arrivals.start_ns
    if arrivals.every is not None:
        interval = distributions.parse(arrivals.every)
        elapsed_ns = 0
        while True:
            yield start_ns + elapsed_ns
            elapsed_ns += max(1, round(interval.draw(stream) * SECOND_NS))
    elif arrivals.poisson is not None:
        elapsed_s = 0.0
        while True:
            elapsed_s += stream.expovariate(arrivals.poisson.rate_per_s)
            yield start_ns + int(elapsed_s * SECOND_NS)
    elif arrivals.ramp is not None:
        yield from _ramp(arrivals, arrivals.ramp, stream)
    else:
        yield from itertools.repeat(start_ns, arrivals.count or 0)


def _ramp(arrivals: Arrivals, ramp: Ramp, stream: random.Random) -> Iterator[int]:
    """A Poisson process whose rate goes evenly from one value to another, by inverting its cumulated rate
    ``first * t + (last - first) * t^2 / (2 * span)``."""
    first, last = ramp.from_per_s, ramp.to_per_s
    span_s = (arrivals.until_ns - arrivals.start_ns) / SECOND_NS
    reached = 0.0
    while span_s > 0:
        reached += stream.expovariate(1.0)
        under_root = first * first + 2 * (last - first) * reached / span_s
        if under_root < 0:
            return
        elapsed_s = 2 * reached / (first + math.sqrt(under_root))
        if elapsed_s >= span_s:
            return
        yield arrivals.start_ns + int(elapsed_s * SECOND_NS)
