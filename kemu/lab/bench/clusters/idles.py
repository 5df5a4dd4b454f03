"""What an idle cluster costs: kubelets, heartbeats, and the controllers that look after nodes."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.runlog.frames import FILE_NAME, Writer
from kemu.runtime.sim.simulation import SimRuntime

EXACT_NODES, EXACT_MINUTES = 200, 10


def scenario_text(nodes: int, minutes: int, heartbeats: str) -> str:
    """Nodes of 32 cpus, no pods; the controllers for lost nodes run."""
    document = {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "idle"},
        "spec": {
            "duration": f"{minutes}m",
            "heartbeats": heartbeats,
            "nodes": [
                {
                    "namePrefix": "node-",
                    "count": nodes,
                    "allocatable": {"cpu": "32", "memory": "64Gi", "pods": "110"},
                }
            ],
            "schedulers": [{"name": "default-scheduler"}],
            "controllers": ["node-lifecycle", "taint-eviction", "pod-gc"],
        },
    }
    return str(yaml.safe_dump(document, sort_keys=False))


async def _drive(runtime: SimRuntime, scenario: Scenario) -> dict[str, float]:
    begun, begun_cpu = time.perf_counter(), time.process_time()
    await plays.launch(runtime, scenario, Heartbeats(scenario, "sim"))
    ready, ready_cpu = time.perf_counter(), time.process_time()
    await runtime.begin()
    await runtime.run_until(scenario.duration_ns)
    over, over_cpu = time.perf_counter(), time.process_time()
    await runtime.shutdown()
    return {
        "setup_s": round(ready - begun, 2),
        "setup_cpu_s": round(ready_cpu - begun_cpu, 2),
        "idle_s": round(over - ready, 2),
        "idle_cpu_s": round(over_cpu - ready_cpu, 2),
    }


def _measure(nodes: int, minutes: int, heartbeats: str) -> dict[str, float]:
    scenario = loader.loads(scenario_text(nodes, minutes, heartbeats))
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder:
        writer = Writer(Path(folder) / FILE_NAME, {})
        runtime = SimRuntime(scenario.seed, writer.append, scenario.timing)
        figures = runtime.run(_drive(runtime, scenario))
        writer.close()
    figures["cpu_us_per_node_minute"] = round(figures["idle_cpu_s"] / nodes / minutes * 1e6, 1)
    return figures


def idle(nodes: int, minutes: int) -> dict[str, Any]:
    """``setup`` until all kubelets are ready, ``idle`` for the virtual time that follows, ``peak_mib`` of both;
    ``exact``: of fewer nodes for less time, with every heartbeat a message."""
    figures: dict[str, Any] = dict(_measure(nodes, minutes, "standing"))
    figures["peak_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    exact = _measure(EXACT_NODES, EXACT_MINUTES, "exact")
    figures["exact"] = {"nodes": EXACT_NODES, "minutes": EXACT_MINUTES, **exact}
    return figures
