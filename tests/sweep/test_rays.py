"""A sweep on a Ray cluster gives the bytes that it gives on this machine, whatever happens to its cells' processes, to
nodes, and to the process that speaks with Ray."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu.lab.exploration.processes.rays import RayWorkers
from kemu.lab.exploration.workers import Inline, Workers
from kemu.lab.sweep.cells import DONE, FAILED
from kemu.lab.sweep.engine.sweeps import Sweep
from kemu.runtime.ray import processes
from kemu.runtime.ray.broker import nodes
from kemu.runtime.runlog import folders
from tests.sweep import test_needs, test_sweeps

pytestmark = pytest.mark.ray

MIB = 1 << 20
NODE = {"num_cpus": 1, "memory": 400 * MIB, "object_store_memory": nodes.OBJECT_STORE_BYTES}
SLOW_PLUGIN = """
import os, select
from kemu.emulated.scheduler.framework import NodeFilterPlugin

class Slow(NodeFilterPlugin):
    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.file = args["file"]
        self.has_begun = False

    def filter(self, pod, node):
        if not self.has_begun:
            self.has_begun = True
            with open(self.file, "a") as file:
                file.write(f"{os.getppid()}\\n")
        if os.path.exists(self.file + ".slow"):
            select.select([], [], [], 0.25)  # time.sleep is refused in virtual time
        for _ in range(1200):  # a cell of the node that will be lost is under way when that happens
            if not os.path.exists(f"{self.file}.held.{os.getppid()}"):
                break
            select.select([], [], [], 0.05)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Of one node with one CPU; no process of it is left at the end."""
    from ray.cluster_utils import Cluster

    directory = tempfile.mkdtemp(prefix="kemu-", dir="/tmp")
    os.mkdir(os.path.join(directory, "ray"))
    token = {"RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN", secrets.token_hex(32))}
    handler = signal.getsignal(signal.SIGTERM)  # Ray puts its own in its place
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**nodes.QUIET, **nodes.LOCAL, **token, "RAY_TMPDIR": directory}.items():
            patch.setenv(name, value)
        made = Cluster()
        try:
            made.add_node(**NODE, include_dashboard=False)
            yield made
        finally:
            made.shutdown()
            signal.signal(signal.SIGTERM, handler)
            processes.end(processes.using(directory), grace_s=0.0)
            shutil.rmtree(directory, ignore_errors=True)


def test_ray_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "moody_on_ray.py").write_text(test_sweeps.PLUGIN)
    text = test_sweeps.MOODY.replace("moody:", "moody_on_ray:")
    experiment = test_sweeps.experiment(text, str(tmp_path / "e.yaml"))
    results = []
    with Workers(2) as here, RayWorkers("local") as there:
        for number, executor in enumerate((here, there)):
            with Sweep(experiment, tmp_path / str(number)) as sweep:
                list(sweep.go(executor))
                assert sweep.is_over
                results.append(sweep.write().read_bytes())
    assert results[0] == results[1]


def test_a_node_and_the_broker_are_lost_and_the_bytes_are_the_same(tmp_path: Path, cluster: Any) -> None:
    """Only cells that ran there run again."""
    other = cluster.add_node(**NODE)
    raylet = other.all_processes["raylet"][0].process.pid
    (tmp_path / "slow_on_ray.py").write_text(SLOW_PLUGIN)
    begun, slow = tmp_path / "begun", tmp_path / "begun.slow"
    begun.touch()
    slow.touch()
    held = tmp_path / f"begun.held.{raylet}"
    held.touch()
    text = test_sweeps.MOODY.replace("moody:Moody", "slow_on_ray:Slow").replace("does: nothing", f"file: {begun}")
    text = text.replace("poisson: {rate: 1/s}, count: 6", "count: 6").partition("  vary:")[0]
    text += '  vary: {"workloads[0].arrivals.count": [5, 6]}\n  seeds: 12\n'
    experiment = test_sweeps.experiment(text, str(tmp_path / "e.yaml"))
    lost_at = 0
    with RayWorkers(cluster.address) as executor, Sweep(experiment, tmp_path / "ray") as sweep:
        for number, _record in enumerate(sweep.go(executor), 1):
            if not lost_at and str(raylet) in begun.read_text().split():
                assert executor.running == 2
                cluster.remove_node(other, allow_graceful=False)
                held.unlink()
                lost_at = number
            if lost_at and number == lost_at + 3:
                os.kill(executor.broker, signal.SIGKILL)
                slow.unlink()
        found = sweep.write().read_bytes()
        assert {(record.status, record.detail) for record in sweep.ordered()} == {(DONE, "")}
    assert lost_at
    # At each loss, on each node, one cell ran, and the next may have begun before its result was heard of.
    assert 1 <= len(begun.read_text().split()) - experiment.size <= 4
    with Sweep(experiment, tmp_path / "here") as sweep:
        list(sweep.go(Inline()))
        assert sweep.write().read_bytes() == found


def test_a_killed_sweep_goes_on_and_a_cell_without_room_fails_alone(tmp_path: Path, cluster: Any) -> None:
    file, out = tmp_path / "sizes.yaml", tmp_path / "out"
    file.write_text(test_needs.SIZES.replace("seeds: 2", "seeds: 6"))
    command = [sys.executable, "-m", "kemu.doors.cli.main", "sweep", str(file), "--out", str(out)]
    command += ["--ray", cluster.address, "--json"]
    journal = out / folders.CELLS_FILE
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        deadline_s = time.monotonic() + 100
        while not journal.exists() or journal.stat().st_size < 3000:
            assert process.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        process.kill()
    before = test_sweeps.keys(out)
    assert 0 < len(before) < 6
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith('{"experiment": "sizes"')
    assert test_sweeps.keys(out) == [(0, seed) for seed in range(1, 7)]
    with Sweep(test_sweeps.experiment(file.read_text(), str(file)), out) as sweep:
        assert sweep.found == 6
    for told in (
        '"done": 6, "saturated": 0, "failed": 6',
        "needs 958 MiB of memory",
        "no machine has more than 400 MiB",
    ):
        assert told in done.stdout
    assert FAILED in done.stdout
