"""Workers of Ray that are forked from a process which has imported what they need."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

from kemu.runtime.ray import processes
from kemu.runtime.ray.broker import forks, nodes, workers
from tests.ray.world import until_true

IMPORTS_S = 60
KILLED = """
import os, signal, subprocess, sys
import ray
from kemu.runtime.ray.broker import nodes

node = nodes.Node(sys.argv[1], cpus=1)
ray.init(address=node.address, log_to_driver=False)

@ray.remote(num_cpus=0)
class Worker:
    def start(self):
        return os.getpid(), subprocess.Popen(["sleep", "600"]).pid

worker, started = ray.get(Worker.remote().start.remote())
os.kill(worker, signal.SIGKILL)
print(started, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def raylet() -> Iterator[str]:
    """A name as short as Ray's: that of a socket may have a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="kemu-", dir="/tmp") as folder:
        yield f"{folder}/raylet"


@pytest.fixture
def forking(raylet: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, str(forks.__file__), raylet])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ask(raylet: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(workers.__file__), *arguments, f"--raylet-name={raylet}"]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=IMPORTS_S, check=False
    )


def test_a_worker_has_the_arguments_environment_and_streams_of_who_asked(
    raylet: str, forking: subprocess.Popen[bytes]
) -> None:
    """What Ray's script says of arguments that are no worker's comes where it is asked for; each time anew."""
    lines = []
    for columns in ("60", "200"):
        asked = ask(raylet, f"--node-id={columns}", COLUMNS=columns)
        assert asked.returncode == 0
        assert asked.stderr.startswith("usage: default_worker.py ")
        assert "the following arguments are required: --cluster-id," in asked.stderr
        assert "--node-id" not in asked.stderr.partition("required:")[2]
        lines.append(asked.stderr.count("\n"))
    assert lines[0] > lines[1], "COLUMNS"
    assert forking.poll() is None
    until_true(lambda: not processes.descendants(forking.pid), timeout_s=10)  # no zombies either


def test_others_may_not_ask(raylet: str, forking: subprocess.Popen[bytes]) -> None:
    ask(raylet)
    assert os.stat(workers.socket_of(raylet)).st_mode & 0o077 == 0


def test_where_nobody_forks_the_raylet_learns_it(raylet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_START_S", 0.05)
    with pytest.raises(OSError, match="No such file"):
        workers.ask([f"--raylet-name={raylet}"])


def test_the_process_that_forks_ends_with_its_raylet(raylet: str) -> None:
    starts = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", starts, sys.executable, str(forks.__file__), raylet]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        found = processes.of(int(parent.stdout.readline()))
        ask(raylet)
        assert found is not None
        assert processes.runs(found)
    finally:
        parent.kill()
        parent.communicate()
    until_true(lambda: not processes.runs(found), timeout_s=10)


@pytest.mark.ray
def test_what_a_killed_worker_has_started_ends_too() -> None:
    directory = tempfile.mkdtemp(prefix="kemu-", dir="/tmp")
    environment = {**nodes.environment(local=True), "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    driver = subprocess.Popen(
        [sys.executable, "-c", KILLED, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    try:
        assert driver.stdout is not None
        started = processes.of(int(driver.stdout.readline()))
        until_true(lambda: started is None or not processes.runs(started), timeout_s=10)
    finally:
        running = processes.descendants(driver.pid)
        driver.kill()
        driver.communicate()
        processes.end([*running, *processes.using(directory)], grace_s=0.0)
        processes.remove(directory)
