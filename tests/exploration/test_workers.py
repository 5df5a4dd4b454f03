"""Workers: records in order, whatever happens to the processes."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kemu.errors import KemuError
from kemu.lab.exploration.plans import ChooserSpec, Plan
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.runs import Task
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.workers import Inline, Workers
from kemu.lab.scenario.loading import loader
from kemu.runtime import threads
from tests.exploration.scenarios import RACE

SOURCE = Source.of(loader.loads(RACE))


def tasks(count: int, **special: Plan) -> list[Task]:
    return [Task(number, special.get(f"n{number}", Plan(seed=number))) for number in range(count)]


def digests(executor: Any, of: list[Task]) -> list[tuple[int, str, str]]:
    return [(record.number, record.verdict, record.digest) for record in executor.run(SOURCE, of)]


@pytest.fixture(scope="module")
def expected() -> list[tuple[int, str, str]]:
    return digests(Inline(), tasks(24))


OTHERS = ("chaos/apiserver-crash-steps", "seeds/hard-eviction-threshold", "races/recreated-pod")
SCENARIOS = Path(__file__).parents[2] / "scenarios"


def test_a_record_is_the_same_whatever_its_worker_has_run_before() -> None:
    plans = [Plan(seed=7), Plan(seed=7, chooser=ChooserSpec("kemu.lab.bench.explorations:Uniform", {"seed": 5}))]

    def the_records(workers: Workers) -> list[RunRecord]:
        return [
            dataclasses.replace(record, seconds=0.0)
            for plan in plans
            for record in workers.run(SOURCE, [Task(0, plan)])
        ]

    with Workers(1) as workers:
        alone = the_records(workers)
        again = the_records(workers)
    with Workers(1) as workers:
        for name in OTHERS:
            _, scenario = next(iter(loader.variants(loader.load(SCENARIOS / f"{name}.yaml"))))
            assert len(list(workers.run(Source.of(scenario), tasks(2)))) == 2
        assert len(list(workers.run(SOURCE, tasks(6)))) == 6
        after_others = the_records(workers)
    assert all(record.orders for record in alone)
    assert alone == again == after_others


def test_a_killed_worker_is_replaced_and_its_runs_are_run_again(expected: list[Any]) -> None:
    with Workers(2) as workers:
        found = []
        for record in workers.run(SOURCE, tasks(24)):
            found.append((record.number, record.verdict, record.digest))
            if record.number in (3, 9):
                os.kill(workers.pids[0], signal.SIGKILL)
        assert found == expected


class Kills:
    """A chooser that ends the process in which it runs: always, or the first time."""

    def __init__(self, once: str = "") -> None:
        if once:
            try:
                Path(once).touch(exist_ok=False)
            except FileExistsError:
                return
        os.kill(os.getpid(), signal.SIGKILL)

    def delay_ns(self, message: Any) -> int:
        return 0


class OutOfMemory:
    def delay_ns(self, message: Any) -> int:
        raise MemoryError


class Sleeps:
    def __init__(self) -> None:
        time.sleep(600)

    def delay_ns(self, message: Any) -> int:
        return 0


class IsWrong:
    def __init__(self) -> None:
        raise RuntimeError("a mistake in a chooser")


def special(name: str, **parameters: Any) -> Plan:
    return Plan(seed=2, chooser=ChooserSpec(f"tests.exploration.test_workers:{name}", parameters))


def test_a_run_with_which_workers_die_is_a_result_and_the_others_go_on(expected: list[Any], tmp_path: Path) -> None:
    once = special("Kills", once=str(tmp_path / "killed"))
    with Workers(2) as workers:
        found = digests(workers, tasks(8, n2=special("Kills"), n4=special("OutOfMemory"), n6=once))
    assert [verdict for _, verdict, _ in found] == [
        *(verdict for _, verdict, _ in expected[:2]),
        "died",
        expected[3][1],
        "died",
        expected[5][1],
        expected[2][1],
        expected[7][1],
    ]


def test_a_run_that_takes_too_long_is_a_result(expected: list[Any]) -> None:
    with Workers(1, limit_s=5) as workers:
        found = digests(workers, tasks(4, n2=special("Sleeps")))
    assert found == [*expected[:2], (2, "slow", ""), expected[3]]


def test_what_cannot_be_run_is_an_error_that_says_why() -> None:
    with Workers(1) as workers:
        with pytest.raises(KemuError, match="nosuch"):
            digests(workers, tasks(2, n1=Plan(overrides={"nosuch": 1})))
        with pytest.raises(KemuError, match="a mistake in a chooser"):
            digests(workers, tasks(2, n1=special("IsWrong")))
        # The workers are still of use.
        assert len(digests(workers, tasks(2))) == 2


def test_whoever_stops_asking_leaves_the_workers_for_the_next(expected: list[Any]) -> None:
    with Workers(2) as workers:
        for record in workers.run(SOURCE, tasks(24)):
            if record.number == 2:
                break
        assert digests(workers, tasks(6)) == expected[:6]


@pytest.mark.parametrize("how", ["gc.collect(0)", "gc.collect(0); gc.collect(2)", "gc.collect()", "pass"])
def test_what_a_run_leaves_in_cycles_is_gone_before_the_next(how: str) -> None:
    """Also where the run has collected by itself, and so made it older. In a process of its own: its garbage is its
    own."""
    script = f"""
import gc, weakref
from kemu.lab.exploration.processes import worker

class Left: pass

def run():
    left = Left()
    left.itself = left
    {how}
    return weakref.ref(left)

collector = worker.Collector()
kept = []
for number in range(worker.Collector.ALL_EVERY + 3):
    gone = run()
    collector.after_a_run()
    assert gone() is None, number
    kept.append([number])
assert gc.get_freeze_count() and not gc.isenabled()

# What a later run has kept, in a cycle, and lets go of: seen when all is looked at.
kept.append(Left())
kept[-1].itself = kept[-1]
late = weakref.ref(kept[-1])
collector.after_a_run()
kept.pop()
for _ in range(worker.Collector.ALL_EVERY):
    collector.after_a_run()
assert late() is None
"""
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)


@pytest.mark.thorough
def test_a_worker_that_begins_as_a_copy_makes_the_same_records(tmp_path: Path) -> None:
    """Where nobody else runs in the process, and it ends with that process, whatever becomes of it."""
    script = """
import os, signal, sys, threading, time
from pathlib import Path
from kemu.lab.exploration.workers import Inline, Workers
from tests.exploration import test_workers as here

def argv(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()

once = here.special("Kills", once=sys.argv[1])
tasks = here.tasks(8, n2=here.special("Kills"), n6=once)
print("said once")
with Workers(2) as started, Workers(2, copies=True) as copies:
    assert here.digests(copies, here.tasks(6)) == here.digests(Inline(), here.tasks(6))
    first = copies.pids
    assert [argv(pid) == argv(os.getpid()) for pid in first] == [True, True]
    found = here.digests(copies, tasks)
    assert [verdict for _, verdict, _ in found][2] == "died"
    assert set(copies.pids) != set(first)
    os.unlink(sys.argv[1])
    assert found == here.digests(started, tasks)
    assert not any(argv(pid) == argv(os.getpid()) for pid in started.pids)

ending = threading.Event()
other = threading.Thread(target=ending.wait, daemon=True)
other.start()
with Workers(1, copies=True) as beside_a_thread:
    assert here.digests(beside_a_thread, here.tasks(1)) == here.digests(Inline(), here.tasks(1))
    assert argv(beside_a_thread.pids[0]) != argv(os.getpid())
ending.set()
other.join()

left = Workers(2, copies=True)
here.digests(left, here.tasks(2))
print(*left.pids, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "killed")]
    env = os.environ | threads.ONE
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)
    assert done.returncode == -signal.SIGKILL, done.stderr
    said, pids = done.stdout.splitlines()
    assert said == "said once"
    deadline_s = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids.split()):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
