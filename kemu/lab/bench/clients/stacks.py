"""The whole way of a pod, from its creation to Running: what it costs the real stack, and kemu in virtual time.

The real stack is etcd, kube-apiserver, kube-scheduler, nearly without limits of its client, and KWOK, which plays the
kubelets without their heartbeats. Who creates the pods is not counted there; kemu's own workload is.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.bench.clients import kwok, schedules, servers, watches

QPS = 5000
STATUSES = "exact"
_SYNC_S = 3.0
"""For scheduler and KWOK to list what is there, before the pods come."""


def measure(kind: str, folder: Path, nodes: int, pods: int) -> dict[str, float]:
    """CPU time of all parts, in ms for each pod."""
    if kind == servers.KEMU:
        return {"cpu_ms_per_pod": round(_in_sim(nodes, pods)["cpu_us_per_pod"] / 1000, 2)}
    with servers.start(kind, folder) as server:
        server.access.create_all("/api/v1/nodes", [schedules.node(f"node-{number}") for number in range(nodes)])
        kubelets = kwok.start(server, folder)
        scheduler = schedules.start_scheduler(server, folder, QPS)
        parts = (server, kubelets, scheduler)
        try:

            def check() -> None:
                for part in parts:
                    part.check()

            running = watches.Watch(server.access, "/api/v1/pods?", watches.running_pod)
            time.sleep(_SYNC_S)
            before_s = sum(part.cpu_s() for part in parts)
            all_pods = [schedules.pod(f"pod-{number}") for number in range(pods)]
            server.access.create_all("/api/v1/namespaces/default/pods", all_pods)
            running.wait_for(pods, check)
            used_s = sum(part.cpu_s() for part in parts) - before_s
        finally:
            scheduler.stop()
            kubelets.stop()
    return {"cpu_ms_per_pod": round(used_s * 1000 / pods, 2)}


def _in_sim(nodes: int, pods: int) -> dict[str, Any]:
    """Figures of ``kemu bench sim-pods``."""
    main = "from kemu.doors.cli.main import main; main()"
    size = ["--nodes", str(nodes), "--pods", str(pods)]
    done = subprocess.run(
        [sys.executable, "-c", main, "bench", "sim-pods", *size, "--json"], capture_output=True, text=True
    )
    if done.returncode:
        raise KemuError(f"bench sim-pods failed:\n{done.stderr.strip()[-2000:]}")
    rows: list[dict[str, Any]] = json.loads(done.stdout)["sim-pods"]
    return next(row for row in rows if row["statuses"] == STATUSES)
