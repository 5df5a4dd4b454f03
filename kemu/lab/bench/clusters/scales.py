"""How large a cluster a machine holds on Ray: what nodes, cells and raylets cost in CPU, memory and start-up.

Whole runs, judged as ``kemu run`` does it. :mod:`kemu.lab.bench.clusters.scale_models` makes a model of several of
them.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kemu.errors import KemuError
from kemu.lab.bench.clusters import throughput as pod_benchmarks
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import progress as states
from kemu.lab.scenario.playing import runner
from kemu.runtime.env import SECOND_NS
from kemu.runtime.ray import processes
from kemu.runtime.ray.broker import raylets as ray_clusters

ROLES = {
    "apiservers": "api",
    "store": "store",
    "schedulers": "scheduler",
    "kubelets": "kubelets",
    "driver": "driver",
}
"""Roles of a cell, by the first part of its name."""

_LOOK_S = 0.1
_WEIGH_S = 2.0
"""Real seconds between two sums over the memory of all processes."""


def settings() -> tuple[dict[str, Any], ...]:
    """From a hundred nodes to ten thousand. Thousands of heartbeats a second would fill two cores: there, time is
    slower (``speed``)."""
    rows = (
        # nodes, kubelets in a cell, raylets, API servers, speed
        (100, 500, 1, 1, 1.0),
        (100, 25, 1, 1, 1.0),
        (1_000, 500, 1, 1, 1.0),
        (1_000, 100, 3, 1, 1.0),
        (1_000, 500, 1, 2, 1.0),
        (5_000, 500, 3, 1, 1.0),
        (10_000, 1_000, 3, 1, 0.2),
    )
    keys = ("nodes", "kubelets_per_cell", "raylets", "api_servers", "speed")
    return tuple({"pods": 1_000, **dict(zip(keys, row, strict=True))} for row in rows)


def scenario_text(nodes: int, pods: int, kubelets_per_cell: int, api_servers: int) -> str:
    """All pods at once, and the run ends when all of them run."""
    document = yaml.safe_load(pod_benchmarks.scenario_text(nodes, pods))
    spec = document["spec"]
    spec["duration"] = "30m"
    spec["runtime"] = {"ray": {"cells": {"kubelets": kubelets_per_cell}}}
    spec["apiServers"] = {"replicas": api_servers}
    spec["until"] = {"pods": {"workload": "pods-0"}, "all": {"running": {}}}
    spec["expect"] = [spec["until"]]
    return str(yaml.safe_dump(document, sort_keys=False))


def ray_scale(
    nodes: int, pods: int, kubelets_per_cell: int = 500, raylets: int = 1, api_servers: int = 1, speed: float = 1.0
) -> dict[str, Any]:
    """One run. ``memory_mib`` is the most that all processes had together, pages that several share counted once.

    CPU is that of the processes, so that it means the same on a machine where other programs run. Raises KemuError when
    the verdict is not that the run holds.
    """
    scenario = loader.loads(scenario_text(nodes, pods, kubelets_per_cell, api_servers))
    scale = _Scale()
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder, _cluster(raylets) as ray:
        options = runner.Options(out=Path(folder) / "run", progress=scale.progress, ray=ray, speed=speed)
        with scale.watched():
            result = runner.run(scenario, options)
        verdict = result.verdict
    if verdict["verdict"] != "holds":
        raise KemuError(f"{nodes} nodes: {verdict['headline']}; {verdict['bottleneck']}")
    running = [fact.time_ns for pod in result.history.pods.values() for fact in pod.facts if fact.what == "running"]
    real_s = verdict["virtual_s"] / speed
    cells = verdict["cells"]
    by_role = dict.fromkeys(ROLES.values(), 0.0)
    for name, cell in cells.items():
        by_role[_role(name)] += cell["cpu"] * real_s * 1e6 / pods
    largest = max(cell["memory_mib"] for name, cell in cells.items() if _role(name) == "kubelets")
    return {
        "verdict": verdict["verdict"],
        "cells": len(cells) - 1,
        "pods_per_s": round(pods / (max(running) / SECOND_NS / speed), 1),
        "start_s": round(scale.start_s, 1),
        "start_cpu_s": round(scale.start_cpu_s, 1),
        **{f"{role}_us": round(amount) for role, amount in by_role.items()},
        "memory_mib": round(scale.most_bytes / 2**20),
        "api_mib": round(max(cell["memory_mib"] for name, cell in cells.items() if _role(name) == "api")),
        "kubelet_cell_mib": round(largest),
        "throttled": verdict["counts"].get("requests_throttled", 0),
        "load": round(os.getloadavg()[0], 1),
        "bottleneck": verdict["bottleneck"],
    }


def _role(cell: str) -> str:
    return ROLES.get(cell.partition("-")[0], "driver")


@contextlib.contextmanager
def _cluster(raylets: int) -> Iterator[dict[str, Any]]:
    """Arguments for the runtime."""
    if raylets == 1:
        yield {"ray_address": "local"}
        return
    with ray_clusters.raylets([{} for _ in range(raylets)]) as address:
        yield {"ray_address": address, "interface": "127.0.0.1"}


class _Scale:
    """Looks at all processes of a run from outside of it, in a thread."""

    def __init__(self) -> None:
        self.progress = states.Progress()
        self.start_s = 0.0
        """Until the clock could begin."""
        self.start_cpu_s = 0.0
        self.most_bytes = 0
        self._over = threading.Event()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        thread = threading.Thread(target=self._look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _look(self) -> None:
        begun = weighed = time.monotonic()
        while not self._over.wait(_LOOK_S):
            now = time.monotonic()
            if not self.start_s and self.progress.phase == states.RUNNING:
                self.start_s, self.start_cpu_s = now - begun, _cpu_s()
            if now - weighed >= _WEIGH_S:
                self.most_bytes = max(self.most_bytes, _proportional_bytes())
                weighed = time.monotonic()


def _members() -> list[Any]:
    own = processes.of(os.getpid())
    return [*processes.descendants(os.getpid()), *([own] if own is not None else [])]


def _proportional_bytes() -> int:
    total = 0
    for process in _members():
        with contextlib.suppress(processes.psutil().Error):
            total += process.memory_full_info().pss
    return total


def _cpu_s() -> float:
    total = 0.0
    for process in _members():
        with contextlib.suppress(processes.psutil().Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total
