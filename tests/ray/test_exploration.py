"""A campaign on a Ray cluster finds what it finds on this machine, also when a machine dies in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kemu.lab.exploration.campaigns import Campaign, Settings
from kemu.lab.exploration.plans import Plan
from kemu.lab.exploration.processes.rays import RayWorkers
from kemu.lab.exploration.runs import Task
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import registry
from kemu.lab.exploration.workers import Executor, Inline
from kemu.lab.scenario.loading import loader
from tests.exploration import test_workers
from tests.exploration.scenarios import RACE
from tests.ray import clusters

pytestmark = pytest.mark.ray
RUNS = 120
SETTINGS = Settings(seed=5, runs=RUNS, generation=8)


def campaign(executor: Executor) -> Campaign:
    """Of all strategies: from the third generation on, feedback builds upon what the first ones found."""
    scenario = loader.loads(RACE)
    return Campaign(scenario, registry.make((), Source.of(scenario), 5), SETTINGS, executor)


def found(made: Campaign) -> list[Any]:
    return [(record.number, record.digest, record.verdict, record.failures, record.new) for record in made.records]


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    made = campaign(Inline())
    list(made.go())
    assert {record.verdict for record in made.records} == {"holds", "fails"}
    return found(made)


def test_three_raylets_find_the_same_and_one_may_die(expected: list[Any]) -> None:
    with clusters.started([{}, {}, {}]) as raylets, RayWorkers(raylets.address) as executor:
        made = campaign(executor)
        for record in made.go():
            if record.number == 20:
                # Not the first one: with it the broker ends.
                os.kill(raylets.pids[-1], signal.SIGKILL)
        assert made.canary is True
        assert found(made) == expected


def test_a_run_that_kills_or_sleeps_is_a_result(tmp_path: Path) -> None:
    source = Source.of(loader.loads(RACE))
    special = {2: test_workers.special("Kills"), 4: test_workers.special("Sleeps")}
    tasks = [Task(number, special.get(number, Plan(seed=number))) for number in range(6)]
    expected = [record.digest for record in Inline().run(source, [tasks[0], tasks[5]])]
    with RayWorkers("local", limit_s=5) as executor:
        records = list(executor.run(source, tasks))
    assert [record.number for record in records] == list(range(6))
    assert (records[2].verdict, records[4].verdict) == ("died", "slow")
    assert [records[0].digest, records[5].digest] == expected
