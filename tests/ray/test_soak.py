"""A short soak: cells are killed and stopped from outside, and the run comes to nothing bad."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak import attacks, processes, witnesses

ROOT = Path(__file__).parents[2]


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.nightly("most of a minute; what attacks do to cells, tests/ray tries one by one")
def test_twenty_seconds_under_attack() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.soak",
        "--minutes",
        "0.35",
        "--nodes",
        "30",
        "--etcd",
        "never",
        "--raylets",
        "0",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "acknowledged writes" in done.stdout


def test_attacks_are_those_of_the_seed_and_spare_who_was_just_killed() -> None:
    def drawn(seed: int) -> list[attacks.Attack]:
        attacker = attacks.Attacker(seed)
        return [attacker.draw(["cell/a", "cell/b"], float(second)) for second in range(200)]

    assert drawn(3) == drawn(3) != drawn(4)
    killed = [second for second, one in enumerate(drawn(3)) if (one.target, one.how) == ("cell/a", "kill")]
    assert all(after - before >= attacks.KILLED_AGAIN_S for before, after in itertools.pairwise(killed))
    assert {one.how for one in drawn(3)} == {"kill", "stop"}


def test_a_write_that_is_neither_there_nor_replaced_is_lost() -> None:
    acknowledged = [(5, "/a", "user"), (6, "/b", "user"), (7, "/c", "user"), (8, "/d", "user")]
    held = {"/a": 9, "/b": 4}  # overwritten; an older one came back
    deleted = {"/c": 10}
    found = witnesses.lost_of(acknowledged, held, deleted)
    assert [text.split(",")[0] for text in found] == ["revision 6 of /b", "revision 8 of /d"]


@pytest.mark.parametrize(("slow", "leaks", "expected"), [(1, 0, 0.0), (6, 0, 0.0), (1, 60, 60.0), (6, 60, 10.0)])
def test_caches_that_fill_slowly_on_a_busy_machine_are_no_leak(slow: int, leaks: int, expected: float) -> None:
    """Caches have what they hold once the process has taken 2 s of CPU; a leak is as large as the work."""
    traces = processes.Traces(())
    work_s = [when / 30 / slow for when in range(0, 1000, 2)]
    samples = [(2.0 * number, cpu, int((min(cpu, 2) + leaks * cpu / 2) * 2**20)) for number, cpu in enumerate(work_s)]
    traces._memory["cell"] = {1: samples}
    assert traces.growth(30, 2.0) == {"cell": pytest.approx(expected, abs=0.01)}
