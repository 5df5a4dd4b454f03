"""Which benchmarks there are, and how one is run in a fresh process."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.errors import KemuError
from kemu.lab.bench import calibrations, cells, explorations, sweeps, workloads
from kemu.lab.bench.clients import pairs
from kemu.lab.bench.clusters import large_clusters, racing, scales
from kemu.lab.bench.schedulers import cliffs, decisions, scheduling


@dataclass(frozen=True)
class Benchmark:
    """One measurement with its settings."""

    name: str
    title: str
    target: str
    """``module:function``, which takes the settings and returns figures."""
    settings: tuple[Mapping[str, Any], ...]
    """One run for each."""
    leaves_out: str = ""
    """What a real cluster does and this measurement does not: read the figures with it."""
    needs_real_parts: bool = False
    """Only on request: it needs parts of Kubernetes that few machines have."""
    sizes_are_apart: bool = False
    """Its settings differ in more than the number of nodes: to choose a size is to choose among them."""


_LEFT_OUT = "no routine Events (Scheduled, Pulled, Started), no TLS, authentication or conversion of versions"

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark(
            "first-pod",
            "from the command to the first pod Running, in sim",
            "kemu.lab.bench.clusters.throughput:first_pod",
            ({},),
        ),
        Benchmark(
            "sim-pods",
            "pods from creation to Running in sim: store, API server, scheduler, kubelets, run log; "
            "sparing: without the ContainerCreating statuses",
            "kemu.lab.bench.clusters.throughput:sim_pods",
            tuple(
                {"nodes": nodes, "pods": pods, "statuses": statuses}
                for nodes, pods in ((100, 2000), (1000, 5000), (5000, 5000))
                for statuses in ("exact", "sparing")
            ),
            _LEFT_OUT,
        ),
        Benchmark(
            "deployments",
            "Deployments of ten pods that all roll at once, in sim: CPU of the API server for each pod that is "
            "replaced, and for as many bare pods created and deleted",
            "kemu.lab.bench.clusters.rollouts:deployments",
            ({"deployments": 1000},),
            _LEFT_OUT,
        ),
        Benchmark(
            "up-load",
            "kemu up under 1,000 idle watches and 100 clients that list 5,000 pods: what a create takes, and memory; "
            "at 10 lists/s together, and as fast as they can",
            "kemu.lab.bench.gateways.loads:load",
            ({"lists_per_s": 10.0}, {"lists_per_s": 0.0}),
            sizes_are_apart=True,
        ),
        Benchmark(
            "up-work",
            "what a pod costs a cluster of kemu up whose clients make and bind it, counted: from its create over HTTP "
            "until it runs, with all events",
            "kemu.lab.bench.gateways.counts:work",
            tuple({"controllers": controllers, "nodes": 10, "pods": 200} for controllers in (False, True)),
        ),
        Benchmark(
            "work",
            "what a pod costs on its way to Running in sim, counted: messages parsed and serialised, futures, tasks, …",
            "kemu.lab.bench.clusters.counts:work",
            tuple({"arrivals": arrivals, "nodes": 10, "pods": 200} for arrivals in ("burst", "apart")),
        ),
        Benchmark(
            "ray-pods",
            "the same over real gRPC between Ray processes, two schedulers",
            "kemu.lab.bench.clusters.throughput:ray_pods",
            ({"nodes": 100, "pods": 2000},),
            _LEFT_OUT,
        ),
        Benchmark(
            "ray-scale",
            "nodes, cells and raylets on Ray: CPU of each process for a pod, memory of all, start-up; run and judged",
            "kemu.lab.bench.clusters.scales:ray_scale",
            scales.settings(),
            sizes_are_apart=True,
            leaves_out=_LEFT_OUT,
        ),
        Benchmark(
            "ray-start",
            "until a run on Ray has its cells: with all that ray.init starts, with what kemu starts, on a cluster that "
            "stands (kemu ray up)",
            "kemu.lab.bench.clusters.ray_starts:ray_start",
            tuple({"way": way, "cells": 4} for way in ("ray.init", "own", "standing")),
        ),
        Benchmark(
            "sim-scale",
            "the scenarios of scenarios/scale in sim, judged: the largest clusters that were announced",
            "kemu.lab.bench.clusters.large_clusters:sim_scale",
            large_clusters.settings(),
            _LEFT_OUT,
        ),
        Benchmark(
            "idle",
            "a cluster in which nothing happens; exact: with every heartbeat a message",
            "kemu.lab.bench.clusters.idles:idle",
            ({"nodes": 5000, "minutes": 60},),
        ),
        Benchmark(
            "store",
            "acknowledged writes by fsync policy, on a real disk; watch fan-out",
            "kemu.lab.bench.stores:store",
            (
                {"fsync": "none", "writes": 20000},
                {"fsync": "batch", "writes": 20000},
                {"fsync": "always", "writes": 2000},
                {"watchers": 100, "events": 1000},
            ),
        ),
        Benchmark(
            "decide",
            "scheduling decisions against a filled cache, in process; distinct: a template for each pod",
            "kemu.lab.bench.schedulers.decisions:decide",
            decisions.settings(),
        ),
        Benchmark(
            "racing",
            "replicas of one scheduler race for the same pods in sim: what an attempt costs; most are in vain",
            "kemu.lab.bench.clusters.racing:racing",
            racing.settings(),
            _LEFT_OUT,
        ),
        Benchmark(
            "cliffs",
            "what a decision costs while something grows that it is not about, at two sizes each",
            "kemu.lab.bench.schedulers.cliffs:cliff",
            cliffs.settings(),
        ),
        Benchmark(
            "changed-pod",
            "what one changed pod costs the controllers of DaemonSets and budgets, at two sizes of what did not change",
            "kemu.lab.bench.workloads:changed_pod",
            workloads.settings(),
        ),
        Benchmark(
            "trace",
            "kemu trace and kemu story on the log of a long run, each from its start to its end",
            "kemu.lab.bench.run_logs:trace",
            ({"nodes": 200, "pods": 20_000},),
        ),
        Benchmark(
            "explore",
            "runs of a small race as a worker of kemu explore carries them out: runs for each second of CPU time",
            "kemu.lab.bench.explorations:explore",
            explorations.settings(),
        ),
        Benchmark(
            "explore-search",
            "a whole kemu explore with one worker: runs for each second of CPU time of all its processes",
            "kemu.lab.bench.explorations:search",
            explorations.search_settings(),
        ),
        Benchmark(
            "explore-shared",
            "runs of kemu explore on more nodes, in CPU time: set up one by one, and from one set-up",
            "kemu.lab.bench.explorations:shared",
            explorations.shared_settings(),
        ),
        Benchmark(
            "explore-ray",
            "what a process of Ray does beside its runs for kemu explore, compared with one that kemu starts itself",
            "kemu.lab.bench.explorations:on_ray",
            ({"jobs": 2, "runs": 200, "rounds": 3},),
        ),
        Benchmark(
            "cells",
            "cells of a sweep on a large cluster, for each second of CPU time: set up one by one, and from one set-up",
            "kemu.lab.bench.cells:cells",
            cells.settings(),
        ),
        Benchmark(
            "sweep-scaling",
            "what a cell of kemu sweep costs beside itself: CPU of who hands cells out, on processes and on Ray",
            "kemu.lab.bench.sweeps:sweep_scaling",
            sweeps.settings(),
        ),
        Benchmark(
            "long",
            "many pods through one scheduler while everything changes: what it keeps, beside a cache built anew",
            "kemu.lab.bench.schedulers.soaks:soak",
            ({"nodes": 300, "pods": 100_000},),
        ),
        Benchmark(
            "schedule",
            "pods created and bound, as kube-scheduler's benchmark: store, API server, scheduler, no kubelets",
            "kemu.lab.bench.schedulers.scheduling:schedule",
            scheduling.settings(),
            "no kubelets, no run log, no routine Events (Scheduled), no TLS, authentication or conversion of versions",
        ),
        Benchmark(
            "scheduler-perf",
            "scheduler_perf's own configurations, run as they are: pods bound, beside their thresholds",
            "kemu.lab.bench.schedulers.perf_files:measure",
            (),
            "no kubelets, no run log, no routine Events (Scheduled), no TLS, authentication or conversion of versions",
            needs_real_parts=True,
        ),
        Benchmark(
            "up",
            "real clients with kemu up, and with a real kube-apiserver and etcd, in pairs: kube-scheduler, KWOK",
            "kemu.lab.bench.clients.pairs:up",
            pairs.settings(),
            needs_real_parts=True,
        ),
    )
}


def run(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Measure once, in a fresh process. Raises KemuError when that fails."""
    done = subprocess.run(
        [sys.executable, "-m", "kemu.lab.bench.registry", BENCHMARKS[name].target, json.dumps(dict(settings))],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise KemuError(f"bench {name} failed:\n{done.stderr.strip()[-3000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return {**settings, **figures}


def main() -> None:
    """In the fresh process: one measurement, its figures as JSON in the last line."""
    import resource

    target, settings = sys.argv[1:]
    module, _, function = target.partition(":")
    figures = getattr(importlib.import_module(module), function)(**json.loads(settings))
    figures.setdefault("peak_mib", round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1))
    figures |= calibrations.measure()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
