"""What the threads of a process wait for, and for how long at least."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kemu.lab.hunt import perturbations
from kemu.lab.hunt.projects import Controller, Named, Project, Step
from kemu.lab.hunt.running.trials import Trial
from kemu.lab.hunt.running.waits import Waits

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not Path("/proc/self/syscall").exists(), reason="/proc does not tell it here"
)
_HEAD = "import os, select, socket, subprocess, threading, time; print(end='\\n', flush=True);"


def rest_s(program: str, until: Callable[[float], bool]) -> float:
    """As soon as it is so."""
    command = [sys.executable, "-c", f"{_HEAD} {program}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stdin=pipe, text=True, start_new_session=True) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            waits = Waits(child.pid)
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                found = waits.rest_s()
                # Not known of a thread that goes on while it is looked at.
                if found is not None and until(found):
                    return found
                time.sleep(0.005)
        finally:
            os.killpg(child.pid, signal.SIGKILL)  # with what it has started
    raise AssertionError(f"{program}: not within 30 s; {found} s at last")


def test_a_nap_is_no_habit_before_nothing_has_come_of_it_several_times() -> None:
    """A thread of the machine's own wakes up every 50 ms, as Java's do; a long sleep is no nap at its end."""
    napping = "[time.sleep(0.05) for _ in range(1000)]"
    program = f"threading.Thread(target=lambda: {napping}).start(); [time.sleep(0.35) for _ in range(1000)]"
    told: list[bool] = []
    with subprocess.Popen([sys.executable, "-c", f"{_HEAD} {program}"], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            waits = Waits(child.pid)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and told[-200:] != [False] * 200:
                told.append(waits.naps(0.1))
                time.sleep(0.003)
        finally:
            child.kill()
    assert any(told)
    assert told[-200:] == [False] * 200


def test_a_controller_that_rests_before_it_tries_again_is_waited_for(tmp_path: Path) -> None:
    """For longer than others have to react, in naps of 60 ms."""
    copier = (sys.executable, str(Path(__file__).with_name("copier.py")), "{kubeconfig}", "--careful", "--slow")
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"work": "yes"}}}
    steps = (
        Step("apply", objects=(config_map,)),
        Step("until", Named("ConfigMap", "a-copy"), test="exists", seconds=20),
    )
    project = Project("copier", tmp_path / "hunt.yaml", (Controller("copier", copier),), steps, rest_s=1.0)
    plan = {"kind": "refuse", "object": {"kind": "ConfigMap", "name": "a-copy"}, "nth": 1}
    refuse = perturbations.read(plan, {"copier": None}, "here")
    outcome = Trial(project, tmp_path, steps, (refuse,)).run()
    assert outcome.struck
    assert outcome.stuck == []


@pytest.mark.parametrize(
    "program",
    [
        "time.sleep(100)",
        "threading.Event().wait(100)",
        "select.epoll().poll(100)",
        "select.poll().poll(100_000)",
        "threading.Thread(target=time.sleep, args=[100]).start()",
        "subprocess.run(['sleep', '100'])",
    ],
)
def test_the_end_of_a_timer_is_known(program: str) -> None:
    assert 60 < rest_s(program, lambda found: 60 < found < float("inf")) < 101


@pytest.mark.parametrize(
    "program",
    ["input()", "threading.Event().wait()", "socket.create_server(('127.0.0.1', 0)).accept()", "select.epoll().poll()"],
)
def test_it_waits_for_something_from_outside(program: str) -> None:
    assert rest_s(program, lambda found: found == float("inf")) == float("inf")


@pytest.mark.parametrize("program", ["\nwhile True: pass", "subprocess.run(['sh', '-c', 'while :; do :; done'])"])
def test_it_is_at_work(program: str) -> None:
    assert rest_s(program, lambda found: found == 0) == 0


def test_a_short_timer_is_no_rest() -> None:
    """However often one looks."""
    program = "threading.Thread(target=time.sleep, args=[100]).start()\nwhile True: time.sleep(0.01)"
    assert rest_s(program, lambda found: found > 0) <= 0.01


def test_it_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    waits = Waits(child.pid)
    assert waits.rest_s() is None
    assert not waits.is_busy()
