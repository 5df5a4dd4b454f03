"""The job lists: drawn here as those of the published experiment were, or read from its files."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from experiments.published.omega.java_random import JavaRandom

BATCH, SERVICE = "batch", "service"


class Job(NamedTuple):
    """Equal tasks that arrive together."""

    scheduler_class: str
    """``batch`` or ``service``."""
    arrival_s: float
    tasks: int
    duration_s: float
    """Of each task, from its own commit."""


@dataclass(frozen=True)
class Workload:
    """One job list: how it is drawn, and how long the run takes that belongs to it."""

    file_prefix: str
    length_s: float
    batch_gap_s: float
    """Mean time between two batch jobs."""
    batch_duration_s: float
    """Mean."""


WORKLOADS = {
    100: Workload("jobs-seed{seed}-d100", 21_600.0, 1.0, 100.0),
    140: Workload("jobs-seed{seed}-d140", 21_600.0, 1.0, 140.0),
    10: Workload("jobs-many-seed{seed}", 1_800.0, 0.1, 10.0),
    14: Workload("jobs-many-seed{seed}", 1_800.0, 0.1, 10.0),
}
"""By the mean duration of batch tasks in s. The batch jobs of 14 are those of 10, 1.4 times as long."""

SERVICE_GAP_S = 60.0
SERVICE_DURATION_S = 600.0
MEAN_TASKS = 10.0
STRETCHED = {14: 1.4}
BATCH_SEED, SERVICE_SEED = 11, 77


def drawn(duration_mean: int, seed: int, until_s: float = math.inf) -> list[Job]:
    """The list of a workload, by arrival. ``until_s``: only the jobs that arrive before; they do not depend on it."""
    workload = WORKLOADS[duration_mean]
    end_s = min(until_s, workload.length_s)
    batch = _draw(BATCH, BATCH_SEED + seed, end_s, workload.batch_gap_s, workload.batch_duration_s)
    service = _draw(SERVICE, SERVICE_SEED + seed, end_s, SERVICE_GAP_S, SERVICE_DURATION_S)
    found = sorted((*batch, *service), key=lambda job: job.arrival_s)
    return _stretched(found, duration_mean)


def _draw(scheduler_class: str, seed: int, end_s: float, gap_s: float, duration_s: float) -> Iterator[Job]:
    random = JavaRandom(seed)

    def exponential(mean: float) -> float:
        return -mean * math.log(1 - random.next_double())

    arrival_s = exponential(gap_s)
    while arrival_s < end_s:
        tasks = max(1, math.ceil(exponential(MEAN_TASKS)))
        lasts_s = max(0.001, exponential(duration_s))
        yield Job(scheduler_class, round(arrival_s, 6), tasks, round(lasts_s, 6))
        arrival_s += exponential(gap_s)


def file_name(duration_mean: int, seed: int) -> str:
    return WORKLOADS[duration_mean].file_prefix.format(seed=seed) + ".csv.gz"


def read(folder: Path, duration_mean: int, seed: int) -> list[Job]:
    """The list of a workload, from the published files."""
    with gzip.open(folder / file_name(duration_mean, seed), "rt", newline="") as file:
        found = [
            Job(row["scheduler_class"], float(row["arrival_s"]), int(row["tasks"]), float(row["duration_s"]))
            for row in csv.DictReader(file)
        ]
    return _stretched(found, duration_mean)


def _stretched(found: Sequence[Job], duration_mean: int) -> list[Job]:
    factor = STRETCHED.get(duration_mean)
    if factor is None:
        return list(found)
    return [job._replace(duration_s=job.duration_s * factor) if job.scheduler_class == BATCH else job for job in found]
