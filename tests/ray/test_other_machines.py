"""What other machines of a joined Ray cluster keep, and what becomes of them: network namespaces, each with an address,
a disk and a boot of its own, stand in for the machines."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli import exits
from kemu.errors import RunLogError
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from tests.ray import namespaces
from tests.ray.namespaces import Machine

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: other-machines}
spec:
  duration: 10m
  nodes:
    - {namePrefix: node-, count: 2, allocatable: {cpu: "100", memory: 64Gi, pods: "110"}}
  workloads:
    - name: small
      arrivals: {count: 200, every: 1s}
      pods: {spec: {containers: [{name: main, resources: {requests: {cpu: 100m}}}]}}
"""
KUBELETS = "cell/kubelets"


class Cluster:
    def __init__(self, machines: list[Machine], environment: Mapping[str, str], folder: Path) -> None:
        """``folder``: the run's, at one path and on three disks."""
        self.head, *self.workers = machines
        self.address = environment["RAY_ADDRESS"]
        self.environment = {name: value for name, value in environment.items() if name != "RAY_ADDRESS"}
        self.folder = folder

    def kemu(self, *arguments: str) -> subprocess.Popen[str]:
        command = self.head.command(str(Path(sys.executable).parent / "kemu"), *arguments)
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def recover(self, *arguments: str) -> dict[str, Any]:
        with self.kemu("recover", str(self.folder), "--json", *arguments) as process:
            text, errors = process.communicate(timeout=120)
        assert process.returncode in exits.BY_VERDICT.values(), errors
        found: dict[str, Any] = json.loads(text)
        return found

    def cells(self, machine: Machine) -> list[int]:
        """Pids of the cells there."""
        told = subprocess.run(["ip", "netns", "pids", machine.namespace], capture_output=True, text=True).stdout
        return [int(pid) for pid in told.split() if "KemuCell" in _name(int(pid))]

    def where(self) -> Machine:
        """The worker with the kubelets."""
        return next(machine for machine in self.workers if self.cells(machine))

    def events(self) -> list[Any]:
        """Those that are in the log so far."""
        with contextlib.suppress(RunLogError), Reader(self.folder / FILE_NAME) as reader:
            return list(reader)
        return []

    def of(self, kind: str) -> list[str]:
        return [event.actor for event in self.events() if event.kind == kind]


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def until(condition: Callable[[], object], within_s: float = 120.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s:g} s"
        time.sleep(0.5)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster | None]:
    why = namespaces.obstacle()
    if why:
        print(f"not tested here: {why}")
        yield None
        return
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    with (
        namespaces.machines((0.0, 0.0, 0.0)) as machines,
        namespaces.cluster(machines, own_disk=folder) as environment,
    ):
        yield Cluster(machines, environment, folder)


@pytest.mark.nightly("a minute; tests/ray/test_recoveries.py and test_clusters.py try its parts one by one")
def test_events_of_other_machines_are_fetched_and_lost_machines_are_told(
    cluster: Cluster | None, tmp_path: Path
) -> None:
    if cluster is None:
        return
    run = ("run", str(tmp_path / "scenario.yaml"), "--ray", cluster.address, "--speed", "2", "--force")
    with cluster.kemu(*run, "--out", str(cluster.folder)) as process:
        try:
            until(lambda: "kubelet.running" in {event.kind for event in cluster.events()} or process.poll() is not None)
            assert process.poll() is None, process.communicate()
            for pid in cluster.cells(cluster.where()):
                os.kill(pid, signal.SIGKILL)
            # Its last events were on another disk.
            until(lambda: KUBELETS in cluster.of("process.started"))
            assert not cluster.of("log.missing")
            # With its machine they are lost.
            machine = cluster.where()
            namespaces._end([machine])
            until(lambda: cluster.of("process.started").count(KUBELETS) == 2)
            until(lambda: f"raylet/{machine.address}" in cluster.of("process.died"))
            assert cluster.of("log.missing") == [KUBELETS]
            # The driver's last events are in its segment alone.
            process.kill()
        finally:
            process.kill()
            process.communicate()
    until(lambda: not cluster.cells(cluster.head) and not any(map(cluster.cells, cluster.workers)))
    first = cluster.recover()
    assert any("name the Ray cluster of the run (--ray)" in missing for missing in first["incomplete"])
    second = cluster.recover("--ray", cluster.address)
    assert {missing.split(":")[0] for missing in second["incomplete"]} == {KUBELETS}
    assert all(f"the Ray cluster has no node at {machine.address}" in missing for missing in second["incomplete"])
