"""The time of a cluster in a controller in Python: its sleeps, waits and loops end when the cluster has come so far."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.lab.hunt.projects import Controller, Named, Project, Step
from kemu.lab.hunt.running import clocks
from kemu.lab.hunt.running.trials import Trial

EPOCH_S = 1_767_225_600
_PROGRAMS = {
    "sleep": "time.sleep(100)",
    "event": "assert not threading.Event().wait(100)",
    "queue": """
        import queue
        try:
            queue.Queue().get(timeout=100)
        except queue.Empty:
            pass
        else:
            raise AssertionError
    """,
    "asyncio": "import asyncio; asyncio.run(asyncio.sleep(100))",
    "notified": """
        found = threading.Event()
        threading.Timer(100, found.set).start()
        assert found.wait(1000)
    """,
}
_HEAD = """
import datetime, threading, time
began = time.time(), time.monotonic(), datetime.datetime.now(datetime.timezone.utc).timestamp()
"""
_TAIL = """
ended = time.time(), time.monotonic(), datetime.datetime.now(datetime.timezone.utc).timestamp()
print(*(round(after - before) for before, after in zip(began, ended)), round(began[0]))
"""


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    here.settimeout(30)
    with here, there:
        yield here, there


@pytest.mark.parametrize("what", _PROGRAMS)
def test_time_passes_when_the_cluster_says_so(
    tmp_path: Path, what: str, ends: tuple[socket.socket, socket.socket]
) -> None:
    here, there = ends
    clock = tmp_path / "clock"
    clock.write_text(f"{EPOCH_S}.000000000\n")
    lines = _PROGRAMS[what].splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    program = _HEAD + "\n".join(line[indent:] for line in lines) + _TAIL
    path = Path(clocks.__file__).parent
    env = {**os.environ, "PYTHONPATH": str(path), "KEMU_CLOCK": str(clock), "KEMU_TIMERS": str(there.fileno())}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=env, pass_fds=[there.fileno()], stdout=subprocess.PIPE, text=True
    ) as child:
        there.close()
        wanted = (EPOCH_S + 100) * 1_000_000_000
        while int.from_bytes(here.recv(8), "little") != wanted:
            assert child.poll() is None
        clock.write_text(f"{EPOCH_S + 100}.000000000\n")
        here.send(wanted.to_bytes(8, "little"))
        assert child.stdout is not None
        assert child.stdout.read() == f"100 100 100 {EPOCH_S}\n"
    assert child.returncode == 0


def test_without_a_cluster_nothing_is_changed(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.found = 'the usual one'\n")
    path = os.pathsep.join([str(Path(clocks.__file__).parent), str(tmp_path)])
    program = "import sys, time; time.sleep(0.1); print(sys.found, abs(time.time() - time.clock_gettime(0)) < 5)"
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "the usual one True\n"


@pytest.mark.parametrize("clock", ["python", ""])
def test_a_controller_that_waits_for_a_minute(tmp_path: Path, clock: str) -> None:
    """With timers of the machine the five minutes of the step are over long before its minute."""
    command = (sys.executable, str(Path(__file__).with_name("later.py")), "{kubeconfig}")
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"work": "yes"}}}
    steps = (
        Step("apply", objects=(config_map,)),
        Step("until", Named("ConfigMap", "a"), test=".data.done=yes", seconds=300),
    )
    project = Project("later", tmp_path / "hunt.yaml", (Controller("later", command, clock=clock),), steps, rest_s=1.0)
    folder = tmp_path / "trial"
    folder.mkdir()
    outcome = Trial(project, folder, steps).run()
    assert outcome.stuck == ([] if clock else [1])
    minute = outcome.now_s - outcome.begun_ns / 1e9
    assert (60 < minute < 65) if clock else minute > 300
