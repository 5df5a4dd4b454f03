"""The published Omega experiment: its job lists, its model, and the same on kemu, transaction by transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from experiments.published.omega import clusters, figures, jobs, models
from experiments.published.omega.configurations import ALL_OR_NOTHING, COARSE, FINE, INCREMENTAL, Configuration
from experiments.published.omega.java_random import JavaRandom
from experiments.published.omega.outcomes import Transaction
from kemu.api import scenario_forms
from kemu.exploration import executions


def test_java_random_draws_what_java_draws() -> None:
    random = JavaRandom(42)
    assert [random.next_int(10) for _ in range(5)] == [0, 3, 8, 4, 0]
    random = JavaRandom(42)
    assert [random.next_int(16) for _ in range(4)] == [11, 0, 10, 0], "powers of two take the high bits"
    assert JavaRandom(42).next_double() == 0.7275636800328681


def small(detection: str, mode: str, **changes: object) -> Configuration:
    """So few machines that conflicts are frequent from the start."""
    one = Configuration("mode", "0.1", 1, 14, detection, mode, batch_schedulers=3, machines=60)
    return dataclasses.replace(one, **changes)  # type: ignore[arg-type]


LENGTH_S = 5.0
SMALL = [
    small(FINE, INCREMENTAL),
    small(FINE, ALL_OR_NOTHING),
    small(COARSE, INCREMENTAL),
    small(COARSE, ALL_OR_NOTHING),
]
MANY = small(FINE, INCREMENTAL, batch_schedulers=4, machines=120)


def placed(transactions: Sequence[Transaction]) -> list[tuple[object, ...]]:
    return [(*one[:3], round(one.ended_s, 6), *one[5:]) for one in transactions]


def modelled(configuration: Configuration, length_s: float) -> tuple[list[jobs.Job], list[Transaction]]:
    arrivals = jobs.drawn(configuration.duration_mean, configuration.seed, length_s)
    outcome = models.run(configuration, arrivals, length_s)
    return arrivals, [one for one in outcome.transactions if one.ended_s <= length_s]


@pytest.mark.parametrize("configuration", SMALL, ids=lambda one: f"{one.detection}-{one.transaction_mode}")
def test_on_kemu_each_transaction_is_that_of_the_model(configuration: Configuration) -> None:
    arrivals, expected = modelled(configuration, LENGTH_S)
    found = clusters.run(configuration, arrivals, LENGTH_S).outcome().transactions
    assert placed(found) == placed(expected)
    assert any(one.conflicts for one in found), "nothing that could differ has happened"


@pytest.mark.parametrize("check", ["capacity", "none"])
def test_many_schedulers_conflict_as_in_the_model_whoever_refuses(check: str) -> None:
    """With ``none`` the kubelets reject the pods that came second; all checks of kemu hold in the end."""
    length_s = 6.0
    arrivals, expected = modelled(MANY, length_s)
    scenario = scenario_forms.load(
        clusters.spec(MANY, length_s, variant={"capacity": "", "none": clusters.KUBELETS}[check])
    )
    watcher = clusters.Watcher(MANY, arrivals, length_s)
    execution = executions.execute(scenario, watcher=watcher.take)
    assert execution.outcome == "holds", execution.failures
    assert placed(watcher.outcome().transactions) == placed(expected)
    conflicts = sum(one.conflicts for one in expected)
    assert conflicts > 10
    assert watcher.rejected == (conflicts if check == "none" else 0)


def test_useful_and_wasted_time_is_the_time_that_schedulers_decide() -> None:
    arrivals, expected = modelled(SMALL[1], LENGTH_S)
    found = figures.of(models.run(SMALL[1], arrivals, LENGTH_S))
    for name in (jobs.BATCH, jobs.SERVICE):
        claimed_s = sum(one.decision_s for one in expected if one.scheduler_class == name and one.machines)
        schedulers = SMALL[1].batch_schedulers if name == jobs.BATCH else 1
        assert found[name].busyness * LENGTH_S * schedulers == pytest.approx(claimed_s)


def test_one_scheduler_alone_never_conflicts() -> None:
    arrivals = [one for one in jobs.drawn(10, 1, 30.0) if one.scheduler_class == jobs.BATCH]
    alone = small(FINE, INCREMENTAL, batch_schedulers=1, duration_mean=10)
    assert not any(one.conflicts for one in models.run(alone, arrivals, 30.0).transactions)


def test_the_lists_begin_as_the_published_ones() -> None:
    first, second = jobs.drawn(100, 1, 60.0)[:2]
    assert first == jobs.Job("batch", 1.308936, 4, 65.582537)
    assert second == jobs.Job("batch", 4.086296, 1, 52.425513)
    longer = jobs.drawn(140, 1, 60.0)
    assert [one.tasks for one in longer] == [one.tasks for one in jobs.drawn(100, 1, 60.0)]
    begin = jobs.drawn(10, 2, 5.0)
    assert jobs.drawn(10, 2, 9.0)[: len(begin)] == begin
