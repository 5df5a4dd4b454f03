"""KWOK: how long it takes until it has brought all nodes to Ready, and until pods on them run."""

from __future__ import annotations

import time
from pathlib import Path

from kemu.lab.bench.clients import kwok, schedules, servers, watches


def measure(kind: str, folder: Path, nodes: int, pods: int) -> dict[str, float]:
    """Seconds from KWOK's start until the last node is Ready, and from the first pod's creation until the last runs."""
    options = ("--set", "nodes=[]", "--set", "schedulers=[]", "--set", "controllers=[]")
    with servers.start(kind, folder, options) as server:
        names = [f"node-{number}" for number in range(nodes)]
        bare = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in names]
        server.access.create_all("/api/v1/nodes", bare)
        ready = watches.Watch(server.access, "/api/v1/nodes?", watches.ready_node)
        started = time.monotonic()
        process = kwok.start(server, folder)
        try:

            def check() -> None:
                server.check()
                process.check()

            ready.wait_for(nodes, check)
            ready_s = max(ready.times.values()) - started
            running = watches.Watch(server.access, "/api/v1/pods?", watches.running_pod)
            begun = time.monotonic()
            assigned = [schedules.pod(f"pod-{number}") for number in range(pods)]
            for number, one in enumerate(assigned):
                one["spec"]["nodeName"] = names[number % nodes]
            server.access.create_all("/api/v1/namespaces/default/pods", assigned)
            running.wait_for(pods, check)
            running_s = max(running.times.values()) - begun
        finally:
            process.stop()
    return {"nodes_ready_s": round(ready_s, 2), "pods_running_s": round(running_s, 2)}
