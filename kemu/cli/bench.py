"""``kemu bench``: how fast kemu is on this machine."""

from __future__ import annotations

import argparse
import json
from typing import Any

from kemu.errors import KemuError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="measure kemu on this machine",
        description="Measure kemu on this machine; without a name, everything.",
    )
    parser.add_argument("name", nargs="*", help="first-pod, sim-pods, ray-pods, store, schedule")
    parser.add_argument("--nodes", type=int, help="only this number of nodes")
    parser.add_argument("--pods", type=int, help="so many pods")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.bench import registry

    unknown = [name for name in options.name if name not in registry.BENCHMARKS]
    if unknown:
        raise KemuError(f"no benchmark {unknown[0]!r}; there are {', '.join(registry.BENCHMARKS)}")
    found: dict[str, list[dict[str, Any]]] = {}
    for name in options.name or registry.BENCHMARKS:
        benchmark = registry.BENCHMARKS[name]
        if not options.json:
            print(f"{name}: {benchmark.title}", flush=True)
        for settings in _settings(benchmark.settings, options):
            figures = registry.run(name, settings)
            found.setdefault(name, []).append(figures)
            if not options.json:
                print("  " + "  ".join(f"{key}={value}" for key, value in figures.items()), flush=True)
    if options.json:
        print(json.dumps(found))
    return 0


def _settings(settings: Any, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The benchmark's own, or those that the command line asks for."""
    chosen = [dict(each) for each in settings]
    for key in ("nodes", "pods"):
        value = getattr(options, key)
        if value is None:
            continue
        with_key = [each for each in chosen if key in each]
        if key == "nodes":
            exact = [each for each in with_key if each[key] == value]
            chosen = exact or [{**each, key: value} for each in with_key[:1]] or chosen
        else:
            chosen = [{**each, key: value} if key in each else each for each in chosen]
    return chosen
