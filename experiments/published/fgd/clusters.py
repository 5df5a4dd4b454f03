"""The scenario of one run: the nodes and pods of the trace, in the orders of one seed, under one policy.

Nodes and pods come as tables of the openb trace that are written for the run, so that kemu reads them as any trace: one
pod every 10 ms of virtual time, which is decided on before the next one comes. Ties go to the node whose name comes
first, as in the artifact: its names begin with their rank.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.published.fgd import PLUGINS
from experiments.published.fgd.inputs import Inputs

POLICIES = {
    "01-Random": "gpu_policies:Random",
    "02-DotProd": "gpu_policies:DotProd",
    "03-GpuClustering": "gpu_policies:GpuClustering",
    "04-GpuPacking": "gpu_policies:GpuPacking",
    "05-BestFit": "gpu_policies:BestFit",
    "06-FGD": "gpu_fragmentation:FGD",
}
"""The plugin of each published policy."""

WORKLOAD = "openb"
_NODES, _PODS = "nodes.csv", "pods.csv"
_PER_SECOND = 100
_NEVER = 10**11
"""Seconds until a pod ends, in the table; divided by ``_PER_SECOND`` still thirty years."""


def scenario(policy: str, seed: int, inputs: Inputs, folder: Path, limit: int | None = None) -> dict[str, Any]:
    """Its ``spec``; the tables are left in ``folder``. ``limit``: only so many pods arrive."""
    pods = inputs.pod_orders[seed][:limit]
    _write_nodes(folder / _NODES, inputs, inputs.node_orders[seed])
    _write_pods(folder / _PODS, inputs, pods)
    return {
        "seed": seed,
        "duration": f"{len(pods) // _PER_SECOND + 5}s",
        "modules": [str(PLUGINS)],
        "podStatuses": "sparing",
        "eventObjects": "none",
        "schedulers": [
            {
                "name": "default-scheduler",
                "policy": {"disablePreemption": True},
                "config": {"percentageOfNodesToScore": 100, "profiles": [profile(policy, inputs)]},
            }
        ],
        "workloads": [
            {
                "name": WORKLOAD,
                "trace": {
                    "format": "openb",
                    "nodes": _NODES,
                    "pods": _PODS,
                    "speedUp": _PER_SECOND,
                    # No heartbeats: they would be all that 1,213 nodes do.
                    "kubelet": {
                        "nodeLeaseDurationSeconds": 40000,
                        "nodeStatusUpdateFrequency": "10h",
                        "nodeStatusReportFrequency": "10h",
                    },
                },
                "life": {"startSeconds": 0},
            }
        ],
        "expect": [
            {"counter": "admissions_rejected", "equals": 0},
            {"counter": "bind_conflicts", "equals": 0},
            {"check": "no-node-overcommitted", "holds": True},
            {"check": "pod-bound-at-most-once", "holds": True},
        ],
    }


def profile(policy: str, inputs: Inputs) -> dict[str, Any]:
    """Of the scheduler's configuration: the policy alone scores, and the order of names settles ties."""
    plugin = POLICIES[policy]
    kinds = [
        {
            "cpuMilli": kind.cpu_milli,
            "gpuMilli": kind.milli,
            "gpus": kind.cards,
            "pods": kind.pods,
            "models": kind.models,
        }
        for kind in inputs.kinds()
    ]
    scorers = [
        {"name": plugin, "weight": 101 * 101},
        {"name": "gpu_policies:NameOrder", "weight": 101},
        {"name": "gpu_policies:NameOrderFine", "weight": 1},
    ]
    return {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [*scorers, {"name": "gpu_policies:OneAttempt"}]},
            "score": {"disabled": [{"name": "*"}], "enabled": scorers},
            # Before DefaultBinder, which binds whatever comes to it.
            "bind": {"enabled": [{"name": plugin}]},
        },
        "pluginConfig": [{"name": plugin, "args": {"workload": kinds} if policy == "06-FGD" else {}}],
    }


def node_name(rank: int, name: str) -> str:
    return f"{rank:04}-{name}"


def _write_nodes(file: Path, inputs: Inputs, order: Sequence[str]) -> None:
    rows = []
    for rank, name in enumerate(order):
        node = inputs.nodes[name]
        rows.append((node_name(rank, name), node.cpu_milli, node.memory_mib, node.cards, node.model))
    _write(file, ("sn", "cpu_milli", "memory_mib", "gpu", "model"), rows)


def _write_pods(file: Path, inputs: Inputs, order: Sequence[str]) -> None:
    header = (
        "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time",
        "deletion_time", "scheduled_time",
    )  # fmt: skip
    rows = []
    for number, name in enumerate(order):
        pod = inputs.pod(name)
        wanted = (pod.cpu_milli, pod.memory_mib, pod.cards, pod.milli)
        # One class of service: all pods have the same priority.
        rows.append((name, *wanted, pod.models, "BE", "Running", number, number + _NEVER, number))
    _write(file, header, rows)


def _write(file: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(header)
        writer.writerows(rows)
