"""The rows of the published table: who schedules, how long decisions take, what a commit is checked for."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from experiments.published.omega.jobs import BATCH, SERVICE, Job

FINE, COARSE = "resource-fit", "sequence-numbers"
INCREMENTAL, ALL_OR_NOTHING = "incremental", "all-or-nothing"


@dataclass(frozen=True)
class Configuration:
    """One row of the published table."""

    experiment: str
    parameter: str
    """What the experiment varies: t_job(service) in s, or the number of batch schedulers."""
    seed: int
    duration_mean: int
    """Names the job list."""
    detection: str
    transaction_mode: str
    batch_schedulers: int = 1
    t_job_batch_s: float = 0.1
    t_job_service_s: float = 0.1
    t_task_s: float = 0.005
    machines: int = 500
    room: int = 4
    """Tasks that fit on one machine."""

    @property
    def coarse(self) -> bool:
        return self.detection == COARSE

    @property
    def all_or_nothing(self) -> bool:
        return self.transaction_mode == ALL_OR_NOTHING

    @property
    def key(self) -> Key:
        return Key(
            self.experiment, self.parameter, self.seed, self.duration_mean, self.detection, self.transaction_mode
        )

    def schedulers(self) -> Iterator[tuple[str, str, float]]:
        """Name, class and t_job of each."""
        for number in range(self.batch_schedulers):
            yield f"batch-{number}", BATCH, self.t_job_batch_s
        yield "service", SERVICE, self.t_job_service_s


def dealt(jobs: Sequence[Job], batch_schedulers: int) -> Iterator[str]:
    """The scheduler of each job: batch jobs are dealt out in turn."""
    count = 0
    for job in jobs:
        if job.scheduler_class == SERVICE:
            yield "service"
        else:
            count += 1
            yield f"batch-{count % batch_schedulers}"


class Key(NamedTuple):
    """What tells the rows apart."""

    experiment: str
    parameter: str
    seed: int
    duration_mean: int
    detection: str
    transaction_mode: str


def all_rows() -> list[Configuration]:
    """The 90 rows, in the order of the published table."""
    rows = []
    lists = [(seed, mean) for seed in (1, 2, 3) for mean in (100, 140)]
    for seed, mean in lists:
        for t_job in ("0.1", "1.0", "5.0", "10.0", "15.0"):
            one = Configuration("tjob_service", t_job, seed, mean, FINE, INCREMENTAL)
            rows.append(dataclasses.replace(one, t_job_service_s=float(t_job)))
    for seed, mean in lists:
        for detection in (FINE, COARSE):
            for mode in (INCREMENTAL, ALL_OR_NOTHING):
                one = Configuration("mode", "10.0", seed, mean, detection, mode)
                rows.append(dataclasses.replace(one, t_job_service_s=10.0))
    for seed in (1, 2, 3):
        for mean in (10, 14):
            for count in (1, 2, 4, 8, 16, 32):
                one = Configuration("batch_schedulers", str(count), seed, mean, FINE, INCREMENTAL)
                rows.append(dataclasses.replace(one, batch_schedulers=count))
    return rows


def published(folder: Path, name: str = "expected.csv") -> dict[Key, Mapping[str, str]]:
    """The published table, by row."""
    with (folder / name).open(newline="") as file:
        return {
            Key(
                row["experiment"],
                row["parameter"],
                int(row["seed"]),
                int(row["duration_mean"]),
                row["detection"],
                row["transaction_mode"],
            ): row
            for row in csv.DictReader(file)
        }
