"""The scenario of a soak: many nodes, pods that arrive at random times and end."""

from __future__ import annotations

from typing import Any

QUIET_S = 30
"""At the end no pod arrives and nobody attacks, so that all pods can be bound."""
SHORT_QUIET_S = 8


def quiet_s(duration_s: float) -> float:
    return QUIET_S if duration_s >= 60 else SHORT_QUIET_S


def scenario(seed: int, duration_s: float, nodes: int, etcd: str = "") -> dict[str, Any]:
    """``etcd``: ``host:port`` of one that takes the place of the store."""
    until = f"{duration_s - quiet_s(duration_s):g}s"
    container = {"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}
    workloads = [
        {
            "name": name,
            "arrivals": {"poisson": {"rate": rate}, "until": until},
            "pods": {"spec": {"priorityClassName": name, "containers": [container]}},
            "life": {
                "startSeconds": 1,
                "runSeconds": {"exponential": {"mean": 20}},
                "shutdownSeconds": {"uniform": {"min": 0, "max": 3}},
            },
        }
        for name, rate in (("low", "2/s"), ("high", "1/s"))
    ]
    allocatable = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "soak", "description": "Processes are killed and stopped from outside."},
        "spec": {
            "seed": seed,
            "duration": f"{duration_s:g}s",
            "runtime": "ray",
            "nodes": [{"namePrefix": "node-", "count": nodes, "allocatable": allocatable}],
            "apiServers": {"replicas": 2},
            "schedulers": [{"name": "default-scheduler", "replicas": 2}],
            "priorityClasses": {"low": 0, "high": 100},
            "workloads": workloads,
            "expect": [{"pods": {"workload": name}, "all": {"bound": {}}} for name in ("low", "high")],
            **({"store": {"etcd": etcd}} if etcd else {}),
        },
    }
