"""`kemu bench up`: the same client, with `kemu up` and with a real API server, one after the other."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kemu.emulated.real import executables
from kemu.lab.bench.clients import hollow_nodes, schedules, servers, stacks

SCHEDULER, KWOK, STACK = "kube-scheduler", "kwok", "stack"


def settings() -> tuple[dict[str, Any], ...]:
    """With the limits of kube-scheduler's client, and nearly without; KWOK, which has none; and the whole stack, beside
    kemu in virtual time."""
    size = {"nodes": 200, "pods": 1000}
    return (
        {"workload": SCHEDULER, "qps": schedules.DEFAULT_QPS, "kubelets": True, **size, "rounds": 3},
        {"workload": SCHEDULER, "qps": 5000, "kubelets": True, **size, "rounds": 5},
        {"workload": SCHEDULER, "qps": 5000, "kubelets": False, **size, "rounds": 5},
        {"workload": KWOK, "nodes": 1000, "pods": 1000, "rounds": 3},
        {"workload": STACK, "nodes": 1000, "pods": 5000, "rounds": 3},
    )


def up(workload: str, nodes: int, pods: int, rounds: int, qps: int = 0, kubelets: bool = True) -> dict[str, Any]:
    """``rounds`` pairs, of which now one is the first, now the other. ``ratio_…``: kemu's to the real API server's, the
    median of the pairs."""
    parts = {SCHEDULER: [SCHEDULER, *([KWOK] if kubelets else [])], KWOK: [KWOK], STACK: [SCHEDULER, KWOK]}
    executables.find("etcd", "kube-apiserver", *parts[workload])
    measure: Callable[[str, Path], dict[str, float]]
    if workload == SCHEDULER:
        measure = lambda kind, folder: schedules.measure(kind, folder, qps, nodes, pods, kubelets)  # noqa: E731
    else:
        module = stacks if workload == STACK else hollow_nodes
        measure = lambda kind, folder: module.measure(kind, folder, nodes, pods)  # noqa: E731
    found: dict[str, list[dict[str, float]]] = {servers.KEMU: [], servers.REAL: []}
    for number in range(rounds):
        order = (servers.REAL, servers.KEMU) if number % 2 == 0 else (servers.KEMU, servers.REAL)
        for kind in order:
            with tempfile.TemporaryDirectory() as folder:
                found[kind].append(measure(kind, Path(folder)))
    return _figures(found[servers.KEMU], found[servers.REAL])


def _figures(ours: Sequence[dict[str, float]], theirs: Sequence[dict[str, float]]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name in ours[0]:
        figures[f"kemu_{name}"] = [one[name] for one in ours]
        figures[f"real_{name}"] = [one[name] for one in theirs]
        ratios = [mine[name] / other[name] for mine, other in zip(ours, theirs, strict=True)]
        figures[f"ratio_{name}"] = round(statistics.median(ratios), 2)
    return figures
