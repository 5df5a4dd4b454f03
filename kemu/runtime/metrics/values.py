"""The values of metrics at one moment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kemu.runtime.metrics.families import FAMILIES, HISTOGRAM, Family

Labels = tuple[str, ...]
"""Values of the labels of a family, in its order."""
Instance = str
"""Whose metrics: the actor; "" for what all of a component tell together."""


class Sample(NamedTuple):
    suffix: str
    """Behind the name of the family: ``_bucket _sum _count``, or nothing."""
    labels: Labels
    le: str
    """The upper bound of a bucket."""
    value: float


class Histogram:
    """Observations by bucket."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        """Of each bucket alone; the last one has no upper bound."""
        self.total = 0.0

    def samples(self, labels: Labels, buckets: tuple[float, ...]) -> Iterator[Sample]:
        count = 0
        for bound, number in zip((*map(number_text, buckets), "+Inf"), self.counts, strict=True):
            count += number
            yield Sample("_bucket", labels, bound, count)
        yield Sample("_sum", labels, "", self.total)
        yield Sample("_count", labels, "", count)


def number_text(value: float) -> str:
    """As Go's client prints it: ``1``, ``0.005``, ``1e-08``."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


class Values:
    """Numbers by family, instance and labels."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[Instance, dict[Labels, float]]] = {}
        self._histograms: dict[str, dict[Instance, dict[Labels, Histogram]]] = {}

    def add(self, name: str, instance: Instance, labels: Labels = (), by: float = 1) -> None:
        numbers = self._numbers.setdefault(name, {}).setdefault(instance, {})
        numbers[labels] = numbers.get(labels, 0) + by

    def set(self, name: str, instance: Instance, labels: Labels, value: float) -> None:
        self._numbers.setdefault(name, {}).setdefault(instance, {})[labels] = value

    def replace(self, name: str, instance: Instance, numbers: dict[Labels, float]) -> None:
        """All series of a gauge."""
        self._numbers.setdefault(name, {})[instance] = numbers

    def observe(self, name: str, instance: Instance, labels: Labels, value: float) -> None:
        found = self._histograms.setdefault(name, {}).setdefault(instance, {})
        buckets = FAMILIES[name].buckets
        histogram = found.get(labels)
        if histogram is None:
            histogram = found[labels] = Histogram(len(buckets))
        histogram.counts[bisect_left(buckets, value)] += 1
        histogram.total += value

    def forget(self, instance: Instance) -> None:
        """The process has ended, and its counts with it."""
        for found in (*self._numbers.values(), *self._histograms.values()):
            found.pop(instance, None)  # type: ignore[attr-defined]

    def instances(self, family: Family) -> Iterable[Instance]:
        found: dict[str, dict[Instance, object]]
        found = self._histograms if family.type == HISTOGRAM else self._numbers  # type: ignore[assignment]
        return sorted(found.get(family.name, {}))

    def samples(self, family: Family, instance: Instance) -> Iterator[Sample]:
        """In the order of the labels."""
        if family.type == HISTOGRAM:
            for labels, histogram in sorted(self._histograms.get(family.name, {}).get(instance, {}).items()):
                yield from histogram.samples(labels, family.buckets)
        else:
            for labels, number in sorted(self._numbers.get(family.name, {}).get(instance, {}).items()):
                yield Sample("", labels, "", number)
