"""A campaign finds the same, whoever carries out its runs, and however often it was stopped."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from kemu.errors import KemuError
from kemu.lab.exploration import canaries, results
from kemu.lab.exploration.campaigns import Campaign, Settings
from kemu.lab.exploration.plans import Feedback, Plan, Strategy
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import registry
from kemu.lab.exploration.strategies.seeds import Seeds
from kemu.lab.exploration.workers import Executor, Inline, Workers
from kemu.lab.scenario.loading import loader
from tests.exploration.scenarios import RACE

HOLDS = {"id": "fits", "check": "no-node-overcommitted", "holds": True}


@dataclass(frozen=True)
class Imitates:
    """Runs the seed after the last one that showed something new: it depends on all that earlier generations found."""

    name: str = "imitates"

    def plan(self, number: int, feedback: Feedback) -> Plan:
        news = [record.plan.seed or 0 for record in feedback.records if record.new]
        return Plan(overrides={"timing.schedulingCycle": "30ms"}, seed=1000 * number + (news[-1] % 1000 if news else 0))


def campaign(executor: Executor, runs: int = 24, **settings: Any) -> Campaign:
    strategies: Sequence[Strategy] = [Seeds(5), Imitates()]
    return Campaign(
        loader.loads(RACE), strategies, Settings(seed=5, runs=runs, generation=4, canary=False, **settings), executor
    )


def found(made: Campaign) -> list[Any]:
    return [{**results.as_data(record), "seconds": 0} for record in made.records]


@pytest.fixture(scope="module")
def inline() -> list[Any]:
    made = campaign(Inline())
    assert [record.number for record in made.go()] == list(range(24))
    verdicts = {record.verdict for record in made.records}
    assert verdicts == {"holds", "fails"}
    return found(made)


@pytest.mark.thorough
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_number_of_workers_does_not_matter(jobs: int, inline: list[Any]) -> None:
    with Workers(jobs) as workers:
        made = campaign(workers)
        assert len(list(made.go())) == 24
    assert found(made) == inline


def portfolio(executor: Executor) -> Campaign:
    scenario = loader.loads(RACE)
    strategies = registry.make((), Source.of(scenario), 5)
    return Campaign(scenario, strategies, Settings(seed=5, runs=72, generation=4, canary=False), executor)


@pytest.fixture(scope="module")
def inline_portfolio() -> list[Any]:
    made = portfolio(Inline())
    list(made.go())
    assert {record.strategy for record in made.records} == set(registry.USUAL)
    assert {record.verdict for record in made.records} == {"holds", "fails"}
    # Feedback had something to build upon.
    assert any(len(record.plan.holds or ()) > 1 for record in made.records if record.strategy == "feedback")
    return found(made)


BY_NIGHT = pytest.mark.nightly("72 runs for each number of workers, and two workers do it by day")


@pytest.mark.thorough
@pytest.mark.parametrize("jobs", [pytest.param(1, marks=BY_NIGHT), 2, pytest.param(4, marks=BY_NIGHT)])
def test_so_it_is_with_all_strategies(jobs: int, inline_portfolio: list[Any]) -> None:
    with Workers(jobs) as workers:
        made = portfolio(workers)
        list(made.go())
    assert found(made) == inline_portfolio


@pytest.mark.parametrize("stop", [3, 12, 15])
def test_a_campaign_that_was_stopped_goes_on(stop: int, inline: list[Any], tmp_path: Path) -> None:
    first = campaign(Inline(), out=tmp_path)
    for record in first.go():
        if record.number + 1 == stop:
            break
    second = campaign(Counting(), out=tmp_path)
    assert len(list(second.go())) == 24
    assert found(second) == inline
    executor = second._executor
    assert isinstance(executor, Counting)
    assert executor.runs == 24 - stop
    lines = (tmp_path / "campaign.jsonl").read_text().splitlines()[1:]
    assert [{**json.loads(line), "seconds": 0} for line in lines] == json.loads(json.dumps(inline))


class Counting(Inline):
    runs = 0

    def run(self, source: Any, tasks: Any) -> Iterator[RunRecord]:
        for record in super().run(source, tasks):
            self.runs += 1
            yield record


def test_half_a_line_at_the_end_is_cut_off(inline: list[Any], tmp_path: Path) -> None:
    list(campaign(Inline(), runs=9, out=tmp_path).go())
    file = tmp_path / "campaign.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    again = campaign(Inline(), out=tmp_path)
    list(again.go())
    assert found(again) == inline


def test_another_campaign_is_refused(tmp_path: Path) -> None:
    list(campaign(Inline(), runs=1, out=tmp_path).go())
    other = Settings(seed=6, runs=1, generation=4, out=tmp_path)
    with pytest.raises(KemuError, match="its seed differs"):
        Campaign(loader.loads(RACE), [Seeds(5), Imitates()], other, Inline())


def test_failures_are_clustered_by_check_and_cause(inline: list[Any]) -> None:
    made = campaign(Inline())
    list(made.go())
    (cluster,) = made.clusters
    assert (cluster.id, cluster.check) == ("one-is-bound-1", "one-is-bound")
    failed = [record for record in made.records if record.verdict == "fails"]
    assert cluster.runs == [record.number for record in failed]
    assert cluster.cheapest == min(failed, key=lambda record: len(record.holds))
    assert made.verdict() == "fails"
    data = made.data()
    assert data["failures"][0]["runs"] == len(cluster.runs)
    assert data["strategies"]["seeds"]["runs"] == data["strategies"]["imitates"]["runs"] == 12
    assert "--seed" in data["failures"][0]["command"]
    json.dumps(data)


def test_a_found_failure_runs_again_with_its_command(tmp_path: Path) -> None:
    (tmp_path / "race.yaml").write_text(RACE)
    scenario = loader.load(tmp_path / "race.yaml")
    made = Campaign(scenario, [Imitates()], Settings(runs=40, failures=1, canary=False), Inline())
    list(made.go())
    (cluster,) = made.clusters
    command = shlex.split(made.command(cluster))
    assert main([*command[1:], "--json", "--out", str(tmp_path / "run")]) == 1
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert verdict["digest"] == cluster.first.digest


def test_a_goal_that_no_run_reaches_makes_the_result_unknown() -> None:
    expect = [{"id": "never", "check": "voluntary-evictions-respect-budgets", "holds": True}]
    chaos = [{"id": "late", "at": "15s", "for": "1s", "crash": {"actor": "scheduler/red/0"}}]
    scenario = loader.loads(
        RACE, overrides={"expect": expect, "chaos": chaos, "until": {"pod": "red-pod", "bound": {}}}
    )
    made = Campaign(scenario, [Seeds(1)], Settings(runs=2, canary=False), Inline())
    list(made.go())
    assert [f"{goal.what} {goal.id}" for goal in made.unseen()] == [
        "fault late",
        "check voluntary-evictions-respect-budgets",
    ]
    assert made.verdict() == "unknown"


def test_the_canary_is_found_and_its_absence_is_told() -> None:
    assert canaries.is_found(Inline())
    assert not canaries.is_found(Inline(), canaries.SCENARIO.replace("ablate: [kubelet-admission]", "seed: 1"))

    class Blind(Inline):
        def run(self, source: Any, tasks: Any) -> Iterator[RunRecord]:
            for record in super().run(source, tasks):
                yield RunRecord(record.number, record.strategy, record.plan, "holds", record.digest)

    scenario = loader.loads(RACE, overrides={"nodes[0].allocatable.cpu": "8", "expect": [HOLDS]})
    made = Campaign(scenario, [Seeds(1)], Settings(runs=2), Blind())
    list(made.go())
    assert made.canary is False
    assert made.verdict() == "unknown"


def test_records_survive_the_campaign_file() -> None:
    made = campaign(Inline(), runs=6)
    list(made.go())
    for record in made.records:
        assert results.from_data(json.loads(json.dumps(results.as_data(record)))) == record
