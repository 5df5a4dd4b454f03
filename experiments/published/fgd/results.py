"""The stored results: one line for each run, with the published figures beside kemu's own."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from experiments.published.fgd import inputs, measures, runs
from experiments.published.fgd.inputs import Inputs

FILE = Path(__file__).with_name("results.csv")

TOLERANCE = 0.01
"""Of each figure of the policies without random choices, in points."""
RANDOM = "01-Random"
"""Its order of draws cannot be repeated: the means over the seeds are compared."""
RANDOM_TOLERANCES = (0.5, 0.5, 2.0)
"""Of these means, in points; the fragmentation ratio of single runs has a standard deviation of 1.8."""
FIRST = 800
"""So many arrivals have a fingerprint of their own, for a short check."""

FIGURES = ("allocated at 100 %", "allocated at 130 %", "fragmentation ratio at 80 %")


@dataclass(frozen=True, slots=True)
class Result:
    workload: str
    """Which list of pods: see :data:`inputs.WORKLOADS`."""
    policy: str
    seed: int
    allocated_at_100: float
    allocated_at_130: float
    fragmented_at_80: float
    published_allocated_at_100: float
    published_allocated_at_130: float
    published_fragmented_at_80: float
    failed: int
    """Pods that fitted nowhere."""
    first_failed: int
    """The arrival, counted from 0, of the first of them."""
    first_placements: str
    """Fingerprint of the first :data:`FIRST` placements."""
    placements: str
    """Fingerprint of all placements."""
    cpu_s: float

    @property
    def run(self) -> tuple[str, str, int]:
        return self.workload, self.policy, self.seed

    @property
    def own(self) -> tuple[float, float, float]:
        return self.allocated_at_100, self.allocated_at_130, self.fragmented_at_80

    @property
    def published(self) -> tuple[float, float, float]:
        return self.published_allocated_at_100, self.published_allocated_at_130, self.published_fragmented_at_80


def of(workload: str, policy: str, seed: int, found: Inputs, played: runs.Played) -> Result:
    placements = played.placements
    own = measures.samples(placements, seed, found).figures()
    published = found.published[policy, seed]
    failed = [number for number, one in enumerate(placements) if not one.node]
    return Result(
        workload,
        policy,
        seed,
        own.allocated_at_100,
        own.allocated_at_130,
        round(own.fragmented_at_80, 4),
        *published,
        failed=len(failed),
        first_failed=failed[0],
        first_placements=runs.fingerprint(placements[:FIRST]),
        placements=runs.fingerprint(placements),
        cpu_s=round(played.cpu_s, 1),
    )


def make(workload: str, policy: str, seed: int, data: Sequence[Path]) -> Result:
    """Play a run. Raises InputsMissing and RunFailed."""
    found = inputs.find(data, workload)
    return of(workload, policy, seed, found, runs.play(policy, seed, found))


def read(file: Path = FILE) -> list[Result]:
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return [
            Result(**{one.name: _KINDS[str(one.type)](row[one.name]) for one in fields(Result)})
            for row in csv.DictReader(lines)
        ]


_KINDS: Mapping[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float}


def write(results: Iterable[Result], file: Path = FILE) -> None:
    places = {workload: place for place, workload in enumerate(inputs.WORKLOADS)}
    ordered = sorted(results, key=lambda one: (places[one.workload], one.policy, one.seed))
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, [one.name for one in fields(Result)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(one) for one in ordered)


def distances(one: Result) -> list[float]:
    """Of each figure from the published one, in points."""
    return [round(own - published, 4) for own, published in zip(one.own, one.published, strict=True)]


def mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures)


def complaints(results: Sequence[Result]) -> list[str]:
    """Which figures are further from the published ones than they may be."""
    found = []
    for one in results:
        if one.policy != RANDOM:
            for name, distance in zip(FIGURES, distances(one), strict=True):
                if abs(distance) > TOLERANCE:
                    found.append(f"{one.workload}, {one.policy}, seed {one.seed}: {name} is off by {distance:+.4f}")
    for workload in dict.fromkeys(one.workload for one in results):
        drawn = [one for one in results if (one.workload, one.policy) == (workload, RANDOM)]
        if len(drawn) < 2:
            continue
        for place, (name, tolerance) in enumerate(zip(FIGURES, RANDOM_TOLERANCES, strict=True)):
            distance = mean([one.own[place] for one in drawn]) - mean([one.published[place] for one in drawn])
            if abs(distance) > tolerance:
                found.append(f"{workload}, {RANDOM}: the mean of {name} is off by {distance:+.2f}")
    return found
