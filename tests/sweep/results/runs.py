"""A small run with something in every table."""

from __future__ import annotations

import functools
from typing import Any

from kemu.lab.exploration import executions
from kemu.lab.scenario.loading import loader
from kemu.lab.sweep.cells import DONE, FAILED, Cell, CellRecord, CellRows
from kemu.lab.sweep.results import rows

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: small}
spec:
  duration: 60s
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  priorityClasses: {high: 1000, low: 10}
  chaos: [{at: 1s, for: 2s, delay: {from: apiserver/*, to: kubelet/*, by: 10ms}}]
  manifests:
    - {apiVersion: v1, kind: Pod, metadata: {name: running}, spec: {nodeName: node-1, containers: [{name: main}]}}
  events:
    - {at: 1s, create: {apiVersion: v1, kind: Pod, metadata: {name: low}, spec: {priorityClassName: low, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}}}
    - {at: 2s, create: {apiVersion: v1, kind: Pod, metadata: {name: high}, spec: {priorityClassName: high, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}}}
    - {at: 3s, create: {apiVersion: v1, kind: Pod, metadata: {name: starved}, spec: {priorityClassName: low, containers: [{name: main, resources: {requests: {cpu: "2"}}}]}}}
"""  # noqa: E501
PATHS = ("schedulers[0].policy.queue", "schedulers[0].replicas")


@functools.cache
def execution() -> tuple[executions.Execution, CellRows]:
    attempts = rows.Attempts()
    done = executions.execute(loader.loads(SCENARIO, "small.yaml"), watcher=attempts.take)
    return done, rows.of_run(done.verdict, done.history, attempts)


def records() -> list[CellRecord]:
    """Two variants with two seeds each; one cell failed."""
    kept = execution()[1]
    variants: list[dict[str, Any]] = [
        dict(zip(PATHS, values, strict=True)) for values in (("fifo", 1), ("priority", 2))
    ]
    return [
        CellRecord(Cell(variant, index, seed), DONE, "", kept)
        if (index, seed) != (1, 2)
        else CellRecord(Cell(variant, index, seed), FAILED, "the run broke")
        for index, variant in enumerate(variants)
        for seed in (1, 2)
    ]
