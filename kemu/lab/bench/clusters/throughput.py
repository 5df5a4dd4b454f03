"""Pods from creation to Running, over the whole path."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plans, plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import PodRunning
from kemu.runtime.runlog.frames import FILE_NAME, Writer
from kemu.runtime.runtimes import Runtime
from kemu.runtime.sim.simulation import SimRuntime


def scenario_text(
    nodes: int,
    pods: int,
    schedulers: int = 1,
    statuses: str = "exact",
    every: str = "",
    replicas: int = 1,
    timing: str = "constant",
) -> str:
    """Nodes of 32 cpus, and pods of 100m that run for ever. ``statuses``: ``podStatuses`` of the scenario. ``every``:
    from one pod to the next; empty: all are created at once. ``replicas`` of each scheduler; ``timing``: a preset."""
    pace = {"every": every} if every else {}
    names = [f"scheduler-{n}" for n in range(schedulers)]
    per_scheduler, rest = divmod(pods, schedulers)
    document = {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "bench"},
        "spec": {
            "duration": "1h",
            "podStatuses": statuses,
            "timing": timing,
            "nodes": [
                {
                    "namePrefix": "node-",
                    "count": nodes,
                    "allocatable": {"cpu": "32", "memory": "64Gi", "pods": "110"},
                }
            ],
            "schedulers": [{"name": name, "replicas": replicas} for name in names],
            "workloads": [
                {
                    "name": f"pods-{n}",
                    "arrivals": {**pace, "count": per_scheduler + (1 if n < rest else 0)},
                    "pods": {
                        "spec": {
                            "schedulerName": name,
                            "containers": [
                                {"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
                            ],
                        }
                    },
                }
                for n, name in enumerate(names)
            ],
        },
    }
    return str(yaml.safe_dump(document, sort_keys=False))


class _Stopwatch:
    """A sink that writes the log and takes the time when the last pod runs."""

    def __init__(self, writer: Writer, pods: int) -> None:
        self._append = writer.append
        self._left = pods
        self.first_s: float | None = None
        self.last_s: float | None = None
        self.last_cpu_s = 0.0
        self.virtual_ns = 0
        self.stop: Any = None

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._append(time_ns, actor, kind, data)
        if kind == PodRunning.KIND:
            if self.first_s is None:
                self.first_s = time.perf_counter()
            self._left -= 1
            if self._left == 0:
                self.last_s = time.perf_counter()
                self.last_cpu_s = time.process_time()
                self.virtual_ns = time_ns
                if self.stop is not None:
                    self.stop.set()


async def _drive(runtime: Runtime, scenario: Scenario, watch: _Stopwatch) -> dict[str, float]:
    import asyncio

    watch.stop = asyncio.Event()
    begun = time.perf_counter()
    await plays.launch(runtime, scenario, Heartbeats(scenario, "sim" if type(runtime) is SimRuntime else "ray"))
    ready = time.perf_counter()
    start, start_cpu = time.perf_counter(), time.process_time()
    await runtime.begin()
    await runtime.run_until(3600 * SECOND_NS, stop=watch.stop)
    await runtime.shutdown()
    return {"setup_s": ready - begun, "start": start, "start_cpu": start_cpu}


def _measure(runtime: Runtime, scenario: Scenario, watch: _Stopwatch, pods: int) -> dict[str, Any]:
    times = runtime.run(_drive(runtime, scenario, watch))
    if watch.last_s is None:
        raise SystemExit("not every pod came to run")
    taken = watch.last_s - times["start"]
    return {
        "pods_per_s": round(pods / taken, 1),
        "us_per_pod": round(taken / pods * 1e6),
        "cpu_us_per_pod": round((watch.last_cpu_s - times["start_cpu"]) / pods * 1e6),
        "wall_s": round(taken, 3),
        "virtual_s": round(watch.virtual_ns / SECOND_NS, 3),
        "setup_s": round(times["setup_s"], 3),
    }


def sim_pods(nodes: int, pods: int, statuses: str = "exact") -> dict[str, Any]:
    """In virtual time, in this process, run log and journal in memory and on disk as in ``kemu run``."""
    scenario = loader.loads(scenario_text(nodes, pods, statuses=statuses))
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder:
        writer = Writer(Path(folder) / FILE_NAME, {})
        watch = _Stopwatch(writer, pods)
        figures = _measure(SimRuntime(1, watch, scenario.timing), scenario, watch, pods)
        writer.close()
        figures["log_mib"] = round((Path(folder) / FILE_NAME).stat().st_size / 2**20, 1)
    return figures


def ray_pods(nodes: int, pods: int) -> dict[str, Any]:
    """Over real gRPC between the processes of a Ray cluster on this machine, at its own speed."""
    from kemu.runtime.ray.driver.runtime import RayRuntime

    scenario = loader.loads(scenario_text(nodes, pods, schedulers=2))
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder:
        writer = Writer(Path(folder) / FILE_NAME, {})
        watch = _Stopwatch(writer, pods)
        figures = _measure(
            RayRuntime(1, watch, directory=Path(folder) / "cells", code=plans.code(scenario)), scenario, watch, pods
        )
        writer.close()
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {**figures, "largest_child_mib": round(children / 1024, 1)}


FIRST_POD = """
import sys, time
sys.argv = ["kemu", "run", sys.argv[1], "--runtime", "sim", "--json", "--out", sys.argv[2]]
from kemu.lab.scenario.playing import plans, plays
original = plays.Recorder.__call__
def recording(self, time_ns, actor, kind, data):
    original(self, time_ns, actor, kind, data)
    if kind == "kubelet.running":
        print(time.time(), file=sys.stderr)
        sys.stderr.flush()
plays.Recorder.__call__ = recording
from kemu.doors.cli.main import main
sys.exit(main())
"""


def first_pod(runs: int = 5) -> dict[str, Any]:
    """Median over fresh processes of ``kemu run`` on one node and one pod."""
    taken = []
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder:
        scenario = Path(folder) / "one.yaml"
        scenario.write_text(scenario_text(1, 1))
        for number in range(runs + 1):
            begun = time.time()
            done = subprocess.run(
                [sys.executable, "-c", FIRST_POD, str(scenario), f"{folder}/run"],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "PYTHONHASHSEED": "0"},
            )
            if number:  # the first one fills the caches of the file system
                taken.append(float(done.stderr.split()[0]) - begun)
    taken.sort()
    return {"first_running_s": round(taken[len(taken) // 2], 3), "fastest_s": round(taken[0], 3), "runs": runs}
