"""A whole run in OpenMetrics, with its own times: what Prometheus would have fetched every few seconds.

    promtool tsdb create-blocks-from openmetrics run.om data/

Bounds of buckets are written as the components write them in their own text format (``le="1"``, in OpenMetrics
``le="1.0"``), so that series have the names that they have in a Prometheus that fetches them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kemu.lab.telemetry.exports import Moment
from kemu.lab.telemetry.metrics.folds import Fold, Target
from kemu.runtime.env import SECOND_NS
from kemu.runtime.metrics import texts
from kemu.runtime.metrics.families import COUNTER, FAMILIES, STATE, UP, Family
from kemu.runtime.metrics.values import Instance, Labels, Values, number_text
from kemu.runtime.runlog.events import RequestServed, RunEnded
from kemu.runtime.runlog.frames import FILE_NAME, Reader

_TOTAL = "_total"


class Written(NamedTuple):
    series: int
    samples: int
    begin_s: float
    """Unix time."""
    end_s: float

    def __str__(self) -> str:
        return f"{self.series} series, {self.samples} samples, from {self.begin_s:.3f} to {self.end_s:.3f}"


class Series:
    """What was found of each series, by family: values and times."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[tuple[str, int]]]] = {}
        self._together: dict[tuple[str, Instance, Labels], list[str]] = {}
        """The series that have everything in common but the bucket."""

    def look(self, fold: Fold, now_ns: int) -> None:
        values = fold.values(now_ns)
        found = self._found.setdefault(UP.name, {})
        for one in fold.up:
            name = f'up{{job="{one.component}",instance="{one.instance}"}}'
            found.setdefault(name, []).append((str(int(fold.answers(one))), now_ns))
        for family in FAMILIES.values():
            for instance in values.instances(family):
                if family.component != STATE and instance and not fold.answers(Target(family.component, instance)):
                    continue
                self._take(family, values, instance, now_ns)

    def _take(self, family: Family, values: Values, instance: str, now_ns: int) -> None:
        target = {"job": family.component, "instance": instance or family.component}
        found = self._found.setdefault(family.name, {})
        for sample in values.samples(family, instance):
            name = texts.series(family, sample, target)
            samples = found.get(name)
            if samples is None:
                samples = found[name] = []
                self._together.setdefault((family.name, instance, sample.labels), []).append(name)
            samples.append((number_text(sample.value), now_ns))

    def lines(self, begin_s: float) -> Iterator[str]:
        """``begin_s``: the Unix time of virtual time 0."""
        for family in (UP, *FAMILIES.values()):
            found = self._found.get(family.name)
            if not found:
                continue
            # In OpenMetrics the samples of a counter end with _total, and its family does not.
            kind, name = family.type, family.name
            if kind == COUNTER:
                kind, name = (kind, name.removesuffix(_TOTAL)) if name.endswith(_TOTAL) else ("unknown", name)
            yield from texts.head(family, name, kind)
            groups = [names for key, names in self._together.items() if key[0] == family.name] or [
                [one] for one in found
            ]
            for names in groups:
                # A histogram as a whole at one time, then at the next.
                for together in zip(*(found[one] for one in names), strict=True):
                    for series, (value, time_ns) in zip(names, together, strict=True):
                        yield f"{series} {value} {begin_s + time_ns / SECOND_NS:.3f}"
        yield "# EOF"

    def all(self) -> Iterator[tuple[str, list[tuple[str, int]]]]:
        """Names with labels, and values with their times in ns."""
        for found in self._found.values():
            yield from found.items()

    def size(self) -> tuple[int, int]:
        """Series, samples."""
        every = [samples for found in self._found.values() for samples in found.values()]
        return len(every), sum(map(len, every))


class Look(NamedTuple):
    """A run, looked at every few seconds."""

    series: Series
    begin_unix_s: float
    end_s: float
    """Virtual time of the last look."""
    is_measured: bool
    """Requests and work queues are told."""


def read(folder: Path, every_s: float) -> Look:
    """``every_s``: virtual seconds between two looks. Raises RunLogError."""
    fold, found, every_ns = Fold(), Series(), round(every_s * SECOND_NS)
    is_measured, now_ns = False, every_ns
    with Reader(folder / FILE_NAME) as reader:
        begin_s = float(reader.header["epoch_unix_s"])
        for event in reader:
            while event[0] > now_ns:
                found.look(fold, now_ns)
                now_ns += every_ns
            if event[2] == RunEnded.KIND:
                break
            is_measured = is_measured or event[2] == RequestServed.KIND
            fold.feed(*event)
    found.look(fold, now_ns)
    return Look(found, begin_s, now_ns / SECOND_NS, is_measured)


def write(look: Look, file: Path, at: Moment | None = None) -> Written:
    """``at``: when the run is to have taken place; None: at its own time."""
    begin_s = look.begin_unix_s
    if at is not None:
        begin_s = at.unix_ns / SECOND_NS - (look.end_s if at.is_end else 0)
    with file.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in look.series.lines(begin_s))
    return Written(*look.series.size(), begin_s, begin_s + look.end_s)
