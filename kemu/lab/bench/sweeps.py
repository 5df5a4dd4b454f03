"""What a cell of ``kemu sweep`` costs beside itself, on processes of this machine and on Ray; and on how many cores the
process that hands cells out would be what holds a sweep up.

The time that cells take is the machine's, which others use as well. So what is compared is CPU time, and the share of
its time in which each slot carried out a cell: both grow alike where the machine is slow.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.lab.exploration.processes import rays
from kemu.lab.exploration.processes.rays import RayWorkers
from kemu.lab.exploration.workers import Workers
from kemu.lab.sweep.engine.needs import CellNeeds
from kemu.lab.sweep.engine.sweeps import Sweep
from kemu.lab.sweep.experiments import loader
from kemu.runtime.ray import processes

_EXPERIMENT = """
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {{name: scaling}}
spec:
  scenario:
    duration: 60s
    nodes: [{{namePrefix: node-, count: 10, allocatable: {{cpu: "8", memory: 16Gi, pods: "110"}}}}]
    workloads:
      - name: w
        arrivals: {{poisson: {{rate: 2/s}}, count: 60}}
        pods: {{spec: {{containers: [{{name: main, resources: {{requests: {{cpu: "1"}}}}}}]}}}}
        life: {{runSeconds: {{exponential: {{mean: 10}}}}}}
  vary: {{"workloads[0].arrivals.poisson.rate": [2/s, 4/s]}}
  seeds: {first}..{last}
"""
WARM_UP = 8
"""Seeds, before anything is measured: processes start and import."""


class Unknown(CellNeeds):
    """Never knows how long a cell takes, so that each is handed out by itself, as one is that takes seconds."""

    def seconds(self, task: object) -> float:
        return 0.0


@dataclass(frozen=True)
class Empty:
    """A task that does nothing."""

    number: int
    seconds: float = 0.0
    cpu_s: float = 0.0

    kin = None

    def carry_out(self, source: object) -> Empty:
        return self

    def given_up(self, why: str, seconds: float) -> Empty:
        raise AssertionError(why)

    def refused(self, why: str) -> Empty:
        raise AssertionError(why)


class Small:
    """Needs of empty tasks: each goes alone."""

    def memory_bytes(self, task: object) -> int:
        return 128 << 20

    def seconds(self, task: object) -> float:
        return 0.0

    def too_large(self, task: object, most_bytes: int) -> None:
        return None

    def out_of_memory(self, task: object, claim_bytes: int, most_bytes: int) -> None:
        return None


def sweep_scaling(where: str, jobs: int, handed_out: str, seeds: int = 20, tasks: int = 400) -> dict[str, Any]:
    """CPU milliseconds of a cell. ``where``: ``processes`` or ``ray``. ``handed_out``: cells in ``batches``, or each
    ``alone``; ``empty``: instead of cells, so many tasks that do nothing, each alone. They follow one another so fast
    that what the processes do at any time anyway counts for nothing."""
    with (
        tempfile.TemporaryDirectory(prefix="kemu-bench-") as made,
        Workers(jobs) if where == "processes" else RayWorkers("local", jobs=jobs) as executor,
    ):

        def sweep(first: int, last: int) -> Sweep:
            experiment = loader.loads(_EXPERIMENT.format(first=first, last=last))
            found = Sweep(experiment, Path(made) / str(first))
            if handed_out == "alone":
                found.needs = Unknown(found.needs.scenario)
            return found

        if handed_out == "empty":

            def empty(count: int) -> Iterator[Empty]:
                given = (Empty(number) for number in range(count))
                return executor.run("", given, in_order=False, needs=Small())

            list(empty(4 * jobs))
            return _measured(executor, jobs, empty(tasks))
        with sweep(1, WARM_UP) as before:
            list(before.go(executor))
        with sweep(WARM_UP + 1, WARM_UP + seeds) as measured:
            measured.needs.seen.update(before.needs.seen)
            return _measured(executor, jobs, measured.go(executor))


def _measured(executor: Workers | RayWorkers, jobs: int, run: Iterator[Any]) -> dict[str, Any]:
    broker = executor.broker if isinstance(executor, RayWorkers) else 0
    begun_s, driver_s, broker_s, all_s = time.perf_counter(), time.process_time(), _cpu_s(broker), _all_s()
    records = list(run)
    elapsed_s = time.perf_counter() - begun_s
    driver_s, broker_s, all_s = time.process_time() - driver_s, _cpu_s(broker) - broker_s, _all_s() - all_s
    count, in_cells_s = len(records), sum(record.cpu_s for record in records)

    def milliseconds(seconds: float) -> float:
        return round(1e3 * seconds / count, 2)

    return {
        "cells": count,
        "cell_ms": milliseconds(in_cells_s),
        "driver_ms": milliseconds(driver_s),
        "broker_ms": milliseconds(broker_s),
        "others_ms": milliseconds(all_s - in_cells_s - driver_s - broker_s),
        "busy_percent": round(100 * sum(record.seconds for record in records) / (jobs * elapsed_s), 1),
    }


def limit_cores(rows: Sequence[Mapping[str, Any]], where: str, cell_s: float) -> int:
    """On how many cores the driver, or the broker beside it, has no time left, with cells that take so long.

    The broker deals with batches, not with what is in them."""
    found = {row["handed_out"]: row for row in rows if row["where"] == where and row["jobs"] == 2}
    in_batch = max(1, int(rays.BATCH_S / cell_s))
    driver_ms = found["batches" if in_batch > 1 else "alone"]["driver_ms"]
    return int(1e3 * cell_s / max(driver_ms, found["empty"]["broker_ms"] / in_batch))


def settings() -> tuple[dict[str, Any], ...]:
    ways = [("processes", 1, "batches"), ("processes", 2, "batches"), ("ray", 1, "batches"), ("ray", 2, "batches")]
    ways += [(where, 2, handed_out) for handed_out in ("alone", "empty") for where in ("processes", "ray")]
    return tuple({"where": where, "jobs": jobs, "handed_out": handed_out} for where, jobs, handed_out in ways)


def _cpu_s(pid: int) -> float:
    """CPU time so far; 0 of no process."""
    found = processes.of(pid) if pid else None
    times = None if found is None else found.cpu_times()
    return 0.0 if times is None else float(times.user + times.system)


def _all_s() -> float:
    """Of this process and all that it has started."""
    return time.process_time() + sum(_cpu_s(each.pid) for each in processes.descendants(os.getpid()))
