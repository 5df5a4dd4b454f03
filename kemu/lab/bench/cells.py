"""Cells of a sweep on a large cluster, as a worker of ``kemu sweep`` carries them out: each set up by itself, and all
from one set-up.

Six variants of a short run: two queues of the scheduler, three rates at which a hundred pods come. The results must be
equal.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import Any

from kemu.lab.exploration import branches
from kemu.lab.exploration.processes import forks, worker
from kemu.lab.sweep.cells import CellRecord
from kemu.lab.sweep.engine.cell_tasks import CellSource, CellTask
from kemu.lab.sweep.experiments import loader


def experiment_text(nodes: int, seeds: int) -> str:
    return f"""
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {{name: short-runs}}
spec:
  scenario:
    duration: 30s
    nodes: [{{namePrefix: node-, count: {nodes}, allocatable: {{cpu: "4", memory: 16Gi, pods: "110"}}}}]
    schedulers: [{{name: default-scheduler}}]
    workloads:
      - name: short
        start: 1s
        arrivals: {{poisson: {{rate: 20/s}}, count: 100}}
        pods: {{spec: {{containers: [{{name: main, resources: {{requests: {{cpu: "1"}}}}}}]}}}}
        life: {{runSeconds: 5}}
  vary:
    schedulers[0].policy.queue: [priority, fifo]
    workloads[0].arrivals.poisson.rate: [10/s, 20/s, 40/s]
  seeds: {seeds}
"""


def cells(nodes: int, seeds: int = 1) -> dict[str, Any]:
    """CPU time of this process and its children."""
    experiment = loader.loads(experiment_text(nodes, seeds), "short-runs.yaml")
    source = CellSource.of(experiment)
    tasks = [CellTask(number, cell) for number, cell in enumerate(experiment.cells())]
    collector = worker.Collector()
    forks.allow()
    branches.by_itself(tasks[0], source)  # what is imported and cached with the first run
    collector.after_a_run()

    def measured(carry_out: Callable[[CellTask], Any]) -> tuple[float, list[CellRecord]]:
        begun_s, records = _cpu_s(), []
        for task in tasks:
            records.append(carry_out(task).record)
            collector.after_a_run()
        branches.close()  # what children took is known when they have been waited for
        return _cpu_s() - begun_s, records

    shared_s, shared = measured(lambda task: branches.carried_out(source, task))
    alone_s, alone = measured(lambda task: branches.by_itself(task, source))
    if shared != alone:
        raise SystemExit("cells from one set-up differ from those that were set up by themselves")
    return {
        "cells": len(tasks),
        "alone_per_cpu_s": round(len(tasks) / alone_s, 2),
        "shared_per_cpu_s": round(len(tasks) / shared_s, 2),
        "ratio": round(alone_s / shared_s, 2),
    }


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    here = os.times()
    return here.user + here.system + children.ru_utime + children.ru_stime


def settings() -> tuple[dict[str, Any], ...]:
    return tuple({"nodes": nodes} for nodes in (200, 1000, 5000))
