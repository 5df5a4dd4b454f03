"""The scenarios of ``scenarios/scale`` in virtual time, at full size or scaled down: set-up, run and judgement.

kemu bench sim-scale --workload mass-preemption --nodes 13000
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.playing.progress import JUDGING, RUNNING, Progress

FOLDER = "scale"
NODES = 130_000
"""At full size."""

WORKLOADS = ("largest-cluster", "mass-preemption")


def settings() -> tuple[dict[str, Any], ...]:
    return tuple({"workload": workload, "nodes": NODES} for workload in WORKLOADS)


def scaled(path: Path, nodes: int) -> dict[str, Any]:
    """Overrides that make the cluster of a scenario that large, in all, and its workloads in the same proportion."""
    spec = yaml.safe_load(path.read_text())["spec"]
    there = sum(group["count"] for group in spec["nodes"])
    counts = {f"nodes[{n}].count": group["count"] for n, group in enumerate(spec["nodes"])}
    counts |= {f"workloads[{n}].arrivals.count": one["arrivals"]["count"] for n, one in enumerate(spec["workloads"])}
    return {key: max(1, round(count * nodes / there)) for key, count in counts.items()}


class _Stages(Progress):
    """Takes the CPU time and the memory at the beginning of each phase."""

    def __init__(self) -> None:
        self.at: dict[str, tuple[float, float]] = {}
        super().__init__()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "phase":
            self.at[value] = (time.process_time(), resident_mib())
        super().__setattr__(name, value)


def sim_scale(workload: str, nodes: int) -> dict[str, Any]:
    """CPU times, as a machine may have more to do; the run, its log and its judgement as in ``kemu run``."""
    path = catalog.find(f"{FOLDER}/{workload}")
    overrides = scaled(path, nodes) if nodes != NODES else {}
    stages = _Stages()
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder:
        begun_s, begun = time.process_time(), time.perf_counter()
        scenario = loader.load(path, None, overrides)
        result = runner.run(scenario, runner.Options(out=Path(folder) / "run", runtime="sim", progress=stages))
        taken_s, taken = time.process_time() - begun_s, time.perf_counter() - begun
        log_mib = sum(each.stat().st_size for each in (Path(folder) / "run").iterdir()) / 2**20
    verdict = result.verdict
    (ready_s, ready_mib), (judges_s, _) = stages.at[RUNNING], stages.at[JUDGING]
    bound = verdict["counts"]["pods_bound"]
    return {
        "verdict": verdict["verdict"],
        "pods_bound": bound,
        "preemptions": verdict["counts"]["preemptions"],
        "virtual_s": verdict["virtual_s"],
        "setup_cpu_s": round(ready_s - begun_s, 1),
        "setup_mib": round(ready_mib),
        "kib_per_node": round((ready_mib - _BEFORE_MIB) * 1024 / nodes, 1),
        "cpu_us_per_pod": round((judges_s - ready_s) / bound * 1e6),
        "judging_cpu_s": round(taken_s - (judges_s - begun_s), 1),
        "cpu_s": round(taken_s, 1),
        "wall_s": round(taken, 1),
        "log_mib": round(log_mib),
        "load": round(os.getloadavg()[0], 1),
    }


def resident_mib() -> float:
    """The memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


_BEFORE_MIB = resident_mib()
"""The memory of the process with its modules."""
