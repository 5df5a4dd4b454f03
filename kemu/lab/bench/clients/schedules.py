"""The real kube-scheduler: how fast it binds, with `kemu up` or with a real API server and etcd.

Nodes and pods are there when the scheduler starts. The rate counts from the first binding to the last one, as a watch
sees them, so the scheduler's own start does not count; CPU is that of the API server, and of what stands behind it.
With kubelets the pods are run meanwhile, by kemu's own or by KWOK; then the CPU is also theirs, until the last pod
runs.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.real import executables
from kemu.lab.bench.clients import kwok, parts, servers, watches

DEFAULT_QPS, DEFAULT_BURST = 50, 100
"""As kube-scheduler's client has them."""


def measure(kind: str, folder: Path, qps: int, nodes: int, pods: int, kubelets: bool) -> dict[str, float]:
    without = "schedulers,controllers" if kubelets else "schedulers,controllers,kubelets"
    options = ("--nodes", str(nodes), "--without", without)
    with servers.start(kind, folder, options) as server, contextlib.ExitStack() as ends:
        kubelet: parts.Process | None = None
        if kind == servers.REAL:
            server.access.create_all("/api/v1/nodes", [node(f"node-{number}") for number in range(nodes)])
            if kubelets:
                kubelet = kwok.start(server, folder)
                ends.callback(kubelet.stop)

        def cpu_s() -> float:
            return server.cpu_s() + (0.0 if kubelet is None else kubelet.cpu_s())

        running = watches.Watch(server.access, "/api/v1/pods?", watches.running_pod) if kubelets else None
        server.access.create_all("/api/v1/namespaces/default/pods", [pod(f"pod-{number}") for number in range(pods)])
        bound = watches.Watch(server.access, "/api/v1/pods?fieldSelector=spec.nodeName!%3D&", watches.any_name)
        before_s = cpu_s()
        scheduler = start_scheduler(server, folder, qps)
        try:

            def check() -> None:
                server.check()
                scheduler.check()

            bound.wait_for(pods, check)
            if running is not None:
                running.wait_for(pods, check)
            used_s = cpu_s() - before_s
        finally:
            scheduler.stop()
    times = sorted(bound.times.values())
    found = {
        "pods_per_s": round((pods - 1) / (times[-1] - times[0]), 1),
        "cpu_ms_per_pod": round(used_s * 1000 / pods, 2),
    }
    if running is not None:
        found["running_per_s"] = round((pods - 1) / (max(running.times.values()) - times[0]), 1)
    return found


def start_scheduler(server: servers.Server, folder: Path, qps: int) -> parts.Process:
    """With its defaults, but for the limits of its client."""
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(server.kubeconfig),
            "qps": qps,
            "burst": DEFAULT_BURST if qps == DEFAULT_QPS else qps,
        },
    }
    file = folder / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    command: list[str | Path] = [
        executables.find("kube-scheduler")["kube-scheduler"],
        f"--config={file}",
        "--secure-port=0",
    ]
    return parts.Process("kube-scheduler", command, folder)


def node(name: str) -> dict[str, Any]:
    """One that a scheduler takes: with a status, but without a kubelet."""
    amounts = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [
                {"name": "main", "image": "pause:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
            ]
        },
    }
