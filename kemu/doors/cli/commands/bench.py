"""``kemu bench``: benchmarks on this machine."""

from __future__ import annotations

import argparse
import json
from typing import Any

from kemu.doors.cli import parsers
from kemu.errors import KemuError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="run benchmarks on this machine",
        description="Measure kemu on this machine; without a name, everything. calibration_python_ms and "
        "calibration_numpy_ms are how long two fixed pieces of work take here: divide by them to compare machines.",
    )
    parser.add_argument(
        "name",
        nargs="*",
        help="first-pod, sim-pods, deployments, up-load, work, ray-pods, ray-scale, ray-start, sim-scale, idle, store, "
        "decide, racing, cliffs, changed-pod, trace, explore, explore-ray, cells, sweep-scaling, long, schedule; up "
        "(needs the real kube-apiserver, etcd, kube-scheduler and kwok); scheduler-perf (needs --workload)",
    )
    parser.add_argument(
        "--workload",
        help="only this workload, of benchmarks that have several; of scheduler-perf the file of a configuration, or a "
        "folder of such files, as FILE or FILE#TEXT for those whose name contains TEXT",
    )
    parser.add_argument(
        "--labels",
        type=lambda text: text.split(","),
        default=(),
        help="of scheduler-perf: workloads with one of these labels, as integration-test,performance; all: all of them",
    )
    parser.add_argument("--nodes", type=_numbers, help="only these numbers of nodes, as 1000,5000,15000")
    parser.add_argument("--pods", type=parsers.count, help="so many pods")
    parser.add_argument("--schedulers", type=_numbers, help="only these numbers of schedulers that race, as 8,64")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(each) for each in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"not numbers above 0, separated by commas: {text!r}")
    return numbers


def command(options: argparse.Namespace) -> int:
    from kemu.lab.bench import registry

    unknown = [name for name in options.name if name not in registry.BENCHMARKS]
    if unknown:
        raise KemuError(f"no benchmark {unknown[0]!r}; there are {', '.join(registry.BENCHMARKS)}")
    found: dict[str, list[dict[str, Any]]] = {}
    failed = False
    everything = [name for name, one in registry.BENCHMARKS.items() if not one.needs_real_parts]
    for name in options.name or everything:
        benchmark = registry.BENCHMARKS[name]
        if not options.json:
            print(f"{name}: {benchmark.title}", flush=True)
            if benchmark.leaves_out:
                print(f"  left out against a real cluster: {benchmark.leaves_out}", flush=True)
        chosen = _settings(benchmark, options)
        for settings in chosen:
            try:
                figures = registry.run(name, settings)
            except KemuError as error:
                if name != "scheduler-perf" or len(chosen) == 1:
                    raise
                figures = {**settings, "error": str(error).splitlines()[-1]}
                failed = True
            found.setdefault(name, []).append(figures)
            if not options.json:
                print("  " + "  ".join(f"{key}={value}" for key, value in figures.items()), flush=True)
    if options.json:
        print(json.dumps(found))
    return 1 if failed else 0


def _settings(benchmark: Any, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The benchmark's own, or those that the command line asks for."""
    if benchmark.name == "scheduler-perf":
        from kemu.lab.bench.schedulers import perf_files

        if options.workload is None:
            raise KemuError("scheduler-perf needs --workload FILE, a performance-config.yaml of scheduler_perf")
        return [dict(each) for each in perf_files.workloads(options.workload, options.labels)]
    chosen = [dict(each) for each in benchmark.settings]
    if options.workload is not None and any("workload" in each for each in chosen):
        names = dict.fromkeys(each["workload"] for each in chosen)
        if options.workload not in names:
            raise KemuError(f"no workload {options.workload!r}; there are {', '.join(names)}")
        chosen = [each for each in chosen if each["workload"] == options.workload]
    if options.nodes is not None and any("nodes" in each for each in chosen):
        chosen = [each for each in chosen if "nodes" in each]
        if benchmark.sizes_are_apart:
            chosen = [each for nodes in options.nodes for each in _nearest_size(chosen, nodes)]
            return [{**each, "pods": options.pods or each["pods"]} for each in chosen]
        chosen = [each for nodes in options.nodes for each in _of_size(chosen, nodes)]
    if options.schedulers is not None and any("schedulers" in each for each in chosen):
        chosen = [{**each, "schedulers": number} for number in options.schedulers for each in chosen]
    if options.pods is not None:
        chosen = [{**each, "pods": options.pods} if "pods" in each else each for each in chosen]
    return [each for place, each in enumerate(chosen) if each not in chosen[:place]]


def _nearest_size(settings: list[dict[str, Any]], nodes: int) -> list[dict[str, Any]]:
    """Those with that number of nodes; or those with the next larger one, or the largest, with that number."""
    there = sorted({each["nodes"] for each in settings})
    nearest = next((size for size in there if size >= nodes), there[-1])
    return [{**each, "nodes": nodes} for each in settings if each["nodes"] == nearest]


def _of_size(settings: list[dict[str, Any]], nodes: int) -> list[dict[str, Any]]:
    """One of each kind with that number of nodes, made from one that has it already if there is one."""
    by_kind: dict[tuple[Any, ...], dict[str, Any]] = {}
    for each in sorted(settings, key=lambda each: each["nodes"] != nodes):
        kind = tuple(value for key, value in each.items() if key not in ("nodes", "pods"))
        by_kind.setdefault(kind, {**each, "nodes": nodes})
    return list(by_kind.values())
