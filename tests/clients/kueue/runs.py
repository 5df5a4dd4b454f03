"""The whole: a cluster with kube-scheduler and Kueue, its queues and Jobs, what was seen of them, and the figures."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kemu.lab.bench.clients import connections, watches
from tests.clients import emulated
from tests.clients.emulated import eventually
from tests.clients.kueue import ledger, manager, queues
from tests.realkube import clusters, processes

NODES, NODE_CPU = 10, "8"
KEMU, REAL = "kemu", "real"
_WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads?"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_PODS = "/api/v1/namespaces/default/pods?"
_CONTROLLERS = (*clusters.CONTROLLERS, "serviceaccount-controller", "root-ca-certificate-publisher-controller")


class Found(NamedTuple):
    ledger: ledger.Ledger
    broken: list[str]
    """What was not as it should be, of quotas and of what the Jobs came to."""
    figures: dict[str, float]


@contextlib.contextmanager
def cluster(kind: str, folder: Path, port: int) -> Iterator[clusters.Components]:
    """Ten nodes and the real kube-scheduler; webhooks of Kueue are asked at ``port`` of loopback."""
    if kind == KEMU:
        service = f"{manager.NAMESPACE}/{manager.SERVICE}={port}"
        options = (f"--nodes={NODES}", "--without=schedulers", f"--service={service}")
        with emulated.start(folder, *options) as found:
            found.start_scheduler(None, "--kube-api-qps=1000", "--kube-api-burst=2000")
            yield found
        return
    with clusters.Cluster.start(folder) as real:
        real.start_controller_manager(
            _CONTROLLERS, f"--root-ca-file={real.authority}", "--kube-api-qps=1000", "--kube-api-burst=2000"
        )
        real.start_scheduler(None, "--kube-api-qps=1000", "--kube-api-burst=2000")
        real.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(_node(f"node-{one}") for one in range(NODES)))
        real.start_kwok(_stages(folder))
        real.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
        yield real


def run(cluster: clusters.Components, jobs: int) -> Found:
    """Make the queues and so many Jobs, and wait until all have completed."""
    settings = yaml.safe_dump_all(queues.setting())
    cluster.kubectl("create", "-f", "-", stdin=settings)
    eventually("queues are active", lambda: _are_active(cluster), 60.0)
    access = connections.Access(cluster.kubeconfig)
    workloads = _Record(access, _WORKLOADS, b'"type":"Finished"')
    pods = _Record(access, _PODS, b'"phase":"Succeeded"')
    done = watches.Watch(access, f"{_JOBS}?", _completed)
    before = _cpu_s(cluster)
    begun = time.monotonic()
    access.create_all(_JOBS, (queues.job(number) for number in range(jobs)), 1)
    created_s = time.monotonic() - begun

    def check() -> None:
        for process in cluster.processes:
            process.check()

    done.wait_for(jobs, check)
    used = {name: seconds - before.get(name, 0.0) for name, seconds in _cpu_s(cluster).items()}
    workloads.wait_for(jobs, check)
    judged = ledger.judge(workloads.events(), pods.events(), queues.QUOTAS)
    times = sorted(judged.admitted.values())
    figures = {
        "created_s": created_s,
        "wall_s": max(done.times.values()) - begun,
        "admitted_per_s": (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0,
        "most_waiting": judged.most_waiting,
        "most_held_cpu": judged.peak / 1000,
        **{f"most_{team}_cpu": judged.peaks[team] / 1000 for team in queues.QUOTAS},
        **{f"cpu_s_{name}": seconds for name, seconds in used.items()},
    }
    broken = judged.broken + outcomes(cluster, jobs, judged) + pressure(judged, jobs)
    return Found(judged, broken, {name: round(value, 1) for name, value in figures.items()})


def outcomes(cluster: clusters.Components, jobs: int, judged: ledger.Ledger) -> list[str]:
    """A sentence for each Job that did not come to what it should, and for what did not happen at all."""
    broken = []
    found = json.loads(cluster.kubectl("get", "jobs,pods,workloads", "--namespace=default", "-o", "json"))["items"]
    made: dict[str, dict[str, Any]] = {}
    phases: dict[str, list[str]] = {}
    for one in found:
        if one["kind"] == "Job":
            made[one["metadata"]["name"]] = one
        elif one["kind"] == "Pod":
            phases.setdefault(one["metadata"]["labels"]["batch.kubernetes.io/job-name"], []).append(
                one["status"]["phase"]
            )
    if len(made) != jobs:
        broken.append(f"{len(made)} Jobs of {jobs} are there")
    for name, one in made.items():
        wanted = one["spec"]["completions"]
        if one["status"].get("succeeded") != wanted or phases.get(name) != ["Succeeded"] * wanted:
            broken.append(f"Job {name} of {wanted} pods: {one['status']}, pods {phases.get(name)}")
    for what, seen in (("admitted", judged.admitted), ("finished", judged.finished)):
        if len(seen) != jobs:
            broken.append(f"{len(seen)} Workloads of {jobs} were {what}")
    return broken


def pressure(judged: ledger.Ledger, jobs: int) -> list[str]:
    """A sentence for each way in which quota was not tried: a run without pressure proves nothing."""
    broken = []
    if judged.most_waiting < jobs // 4:
        broken.append(
            f"{len(judged.admitted)} Workloads were admitted, and {judged.most_waiting} waited at most: quota held "
            "nobody back"
        )
    cohort = sum(one.nominal for one in queues.QUOTAS.values())
    if judged.peak < cohort * 9 // 10:
        broken.append(f"all held {judged.peak}m at most of {cohort}m")
    broken += [
        f"{team} held {judged.peaks[team]}m at most and borrowed nothing"
        for team in ("amber", "cyan")
        if judged.peaks[team] <= queues.QUOTAS[team].nominal
    ]
    return broken


class _Record(watches.Watch):
    """A watch that keeps what it reads; an object is done when its line has ``done``."""

    def __init__(self, access: connections.Access, path: str, done: bytes) -> None:
        self._lines: list[tuple[float, bytes]] = []
        self._done = done
        super().__init__(access, path, self._keep)

    def _keep(self, line: bytes) -> str | None:
        self._lines.append((time.monotonic(), line))
        return watches.name_of(line) if self._done in line else None

    def events(self) -> Iterator[ledger.Event]:
        for at, line in self._lines:
            if not line.startswith((b'{"type":"ERROR"', b'{"type":"BOOKMARK"')):
                yield ledger.Event.read(at, line)


def _completed(line: bytes) -> str | None:
    if b'"Complete"' not in line:
        return None
    status = json.loads(line)["object"].get("status", {})
    finished = {one["type"] for one in status.get("conditions") or () if one["status"] == "True"}
    return watches.name_of(line) if "Complete" in finished else None


def _are_active(cluster: clusters.Components) -> bool:
    found = json.loads(cluster.kubectl("get", "clusterqueues,localqueues", "-A", "-o", "json"))["items"]
    return all(
        any(one["type"] == "Active" and one["status"] == "True" for one in each.get("status", {}).get("conditions", ()))
        for each in found
    )


def _cpu_s(cluster: clusters.Components) -> dict[str, float]:
    """CPU seconds of each process so far."""
    running = list(cluster.processes)
    if isinstance(cluster, emulated.Emulated):
        running.append(cluster.up)
    return {one.name: _cpu_s_of(one) for one in running}


def _cpu_s_of(process: processes.Process) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _node(name: str) -> dict[str, Any]:
    amounts = {"cpu": NODE_CPU, "memory": "32Gi", "pods": "110"}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def _stages(folder: Path) -> Path:
    """Those of the tests, but pods of Jobs run as long as their command says."""
    stages = list(yaml.safe_load_all(clusters.STAGES.read_text()))
    for one in stages:
        if one["metadata"]["name"] == "pod-of-job-completes":
            one["spec"]["delay"] = {"durationMilliseconds": queues.RUN_S * 1000}
    file = folder / "stages.yaml"
    file.write_text(yaml.safe_dump_all(stages))
    return file
