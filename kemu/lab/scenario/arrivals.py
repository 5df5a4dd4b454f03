"""When the pods of a workload come: once, at intervals, or as a Poisson process whose rate is constant or a ramp."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from kemu.lab.scenario.scenarios import Arrivals
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
    if arrivals.process == "once":
        return float(arrivals.count or 0)
    if arrivals.process == "every":
        found = expected_repeats(arrivals.every, arrivals.until_ns - arrivals.start_ns)
    elif arrivals.process == "poisson":
        found = arrivals.rate_per_s * span_s
    else:
        found = (arrivals.rate_per_s + arrivals.to_rate_per_s) / 2 * span_s
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
    if arrivals.process == "once":
        for _ in range(arrivals.count or 0):
            yield start_ns
    elif arrivals.process == "every":
        interval = distributions.parse(arrivals.every)
        elapsed_ns = 0
        while True:
            yield start_ns + elapsed_ns
            elapsed_ns += max(1, round(interval.draw(stream) * SECOND_NS))
    elif arrivals.process == "poisson":
        elapsed_s = 0.0
        while True:
            elapsed_s += stream.expovariate(arrivals.rate_per_s)
            yield start_ns + int(elapsed_s * SECOND_NS)
    else:
        yield from _ramp(arrivals, stream)


def _ramp(arrivals: Arrivals, stream: random.Random) -> Iterator[int]:
    """A Poisson process whose rate goes evenly from one value to another, by inverting its cumulated rate
    ``first * t + (last - first) * t^2 / (2 * span)``."""
    first, last = arrivals.rate_per_s, arrivals.to_rate_per_s
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
