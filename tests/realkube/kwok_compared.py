"""CPU of ``kemu nodes`` beside KWOK's, for the same nodes and pods on equal real control planes:

    python -m tests.realkube.kwok_compared --nodes 1000 --pods 3000

Each gets a cluster of its own, one after the other; what is compared is the CPU time of the process that plays the
nodes. The pods are bound when they are created, so that no scheduler's pace matters.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.realkube import clusters, processes

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "status": {"allocatable": {"cpu": "32", "memory": "64Gi", "pods": "110"}},
}
WAIT_S = 600.0
AT_ONCE = 500


class Used(NamedTuple):
    """Seconds of CPU."""

    registered: float
    idle: float
    started: float
    deleted: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--idle", type=float, default=30.0, metavar="SECONDS")
    parser.add_argument(
        "--pod-statuses", choices=("exact", "sparing"), default="exact", help="sparing: about as many as KWOK writes"
    )
    options = parser.parse_args()
    found = {who: measure(who, options) for who in ("kwok", "kemu")}
    print(f"{'CPU s':12}" + "".join(f"{name:>12}" for name in Used._fields) + f"{'pods':>12}")
    for who, used in found.items():
        print(f"{who:12}" + "".join(f"{value:12.2f}" for value in used) + f"{used.started + used.deleted:12.2f}")
    pairs = list(zip(found["kwok"], found["kemu"], strict=True))
    pairs.append((sum(found["kwok"][2:]), sum(found["kemu"][2:])))
    print(f"{'kemu / kwok':12}" + "".join(f"{ours / theirs:12.2f}" for theirs, ours in pairs))


def measure(who: str, options: argparse.Namespace) -> Used:
    nodes, pods = options.nodes, options.pods
    with tempfile.TemporaryDirectory() as folder, clusters.Cluster.start(Path(folder) / "cluster") as real:
        names = [f"kemu-{number}" for number in range(1, nodes + 1)]
        player = _kemu(real, nodes, options.pod_statuses) if who == "kemu" else _kwok(real, names)
        try:
            _until(lambda: _ready(real) >= nodes, 120.0)
            registered = _cpu_s(player.pid)
            time.sleep(options.idle)
            idled = _cpu_s(player.pid)
            for begin in range(0, pods, AT_ONCE):
                made = [_pod(number, names[number % nodes]) for number in range(begin, min(begin + AT_ONCE, pods))]
                for pod in made:
                    code, answer = real.request("POST", "/api/v1/namespaces/default/pods", pod)
                    assert code == 201, answer
            _until(lambda: _running(real) == pods)
            started = _cpu_s(player.pid)
            real.request("DELETE", "/api/v1/namespaces/default/pods")
            _until(lambda: _running(real, phase="") == 0)
            return Used(registered, idled - registered, started - idled, _cpu_s(player.pid) - started)
        finally:
            if isinstance(player, subprocess.Popen):
                player.terminate()
                player.wait(60)


def _kemu(real: clusters.Cluster, nodes: int, statuses: str) -> subprocess.Popen[bytes]:
    node = "{allocatable: {cpu: 32, memory: 64Gi}}"
    words = [
        "nodes",
        f"--kubeconfig={real.kubeconfig}",
        f"--count={nodes}",
        f"--node={node}",
        "--quiet",
        f"--set=podStatuses={statuses}",
    ]
    with (real.folder / "kemu.log").open("wb") as log:
        command = [sys.executable, "-m", "kemu.doors.cli.main", *words]
        return subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ))


def _kwok(real: clusters.Cluster, names: list[str]) -> processes.Process:
    for name in names:
        real.request("POST", "/api/v1/nodes", {**NODE, "metadata": {"name": name}})
    return real.start_kwok(clusters.STAGES, "--node-lease-duration-seconds=40")


def _pod(number: int, node: str) -> dict[str, object]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}"},
        "spec": {"nodeName": node, "containers": [container]},
    }


def _ready(real: clusters.Cluster) -> int:
    table = real.kubectl("get", "nodes", "--no-headers", "--chunk-size=0")
    return sum(" Ready " in line for line in table.splitlines())


def _running(real: clusters.Cluster, phase: str = "Running") -> int:
    selector = [f"--field-selector=status.phase={phase}"] if phase else []
    return len(real.kubectl("get", "pods", "--no-headers", "-o", "name", "--chunk-size=0", *selector).splitlines())


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _until(true: Callable[[], bool], wait_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + wait_s
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError("the cluster does not come to rest")
        time.sleep(1.0)


if __name__ == "__main__":
    main()
