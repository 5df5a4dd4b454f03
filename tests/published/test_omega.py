"""The published Omega experiment: its job lists, its model, and the same on kemu, transaction by transaction."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.published.omega import (
    clusters,
    configurations,
    figures,
    inputs,
    jobs,
    models,
    pages,
    results,
    tolerances,
)
from experiments.published.omega.configurations import ALL_OR_NOTHING, COARSE, FINE, INCREMENTAL, Configuration
from experiments.published.omega.java_random import JavaRandom
from experiments.published.omega.outcomes import Transaction
from kemu.lab.exploration import executions
from kemu.lab.scenario import forms
from kemu.runtime.sim.steering.messages import Message


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
    scenario = forms.load(clusters.spec(MANY, length_s, variant={"capacity": "", "none": clusters.KUBELETS}[check]))
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


# --- the published table ----------------------------------------------------------------------------------------------

PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "published" / "omega"
ROWS = configurations.all_rows()
IN_SHORT = [row for row in ROWS if row.seed == 2 and (row.duration_mean, row.parameter) in ((140, "15.0"), (14, "4"))]


@pytest.mark.parametrize("row", ROWS if "KEMU_NIGHTLY" in os.environ else IN_SHORT, ids=str)
def test_the_model_gives_the_published_counts(row: Configuration) -> None:
    (stored,) = (one for one in results.read(results.MODEL) if results.key_of(one) == row.key)
    arrivals = jobs.drawn(row.duration_mean, row.seed)
    own = figures.row(models.run(row, arrivals, jobs.WORKLOADS[row.duration_mean].length_s))
    assert own == {name: stored[name] for name in own}
    assert {name: own[name] for name in figures.COUNTS} == {
        name: stored[name + results.PUBLISHED_SUFFIX] for name in figures.COUNTS
    }


def test_the_page_says_what_the_stored_results_say() -> None:
    assert not pages.complaints()
    assert not list(pages.violations(results.read(results.MODEL), results.read(results.KEMU)))


def test_stored_results_are_of_all_rows() -> None:
    assert {results.key_of(row) for row in results.read(results.MODEL)} == {row.key for row in ROWS}
    if PUBLISHED.is_dir():
        published = configurations.published(PUBLISHED)
        for row in results.read(results.MODEL):
            for name in figures.COUNTS:
                assert row[name + results.PUBLISHED_SUFFIX] == published[results.key_of(row)][name]


@pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="not beside the project: the published lists, ../shared/published/omega"
)
@pytest.mark.parametrize("mean", jobs.WORKLOADS)
def test_the_lists_are_the_published_ones(mean: int) -> None:
    assert jobs.drawn(mean, 2) == jobs.read(PUBLISHED, mean, 2)


def test_without_the_files_the_command_says_what_it_needs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.published.omega", "--data", str(tmp_path)]
    root = Path(__file__).resolve().parents[2]
    told = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert told.stderr.startswith(f"{inputs.EXPECTED} and {inputs.SPREAD} are not there: looked in {tmp_path}")


# --- tolerances -------------------------------------------------------------------------------------------------------


def stored_row(mode: str, experiment: str = "mode", mean: str = "140") -> dict[str, str]:
    for row in results.read(results.MODEL):
        if (row["experiment"], row["transaction_mode"], row["duration_mean"]) == (experiment, mode, mean):
            return dict(row)
    raise AssertionError


def test_the_model_is_within_the_tolerances_of_other_choices() -> None:
    complaints = [one for row in results.read(results.MODEL) for one in tolerances.complaints(row, row)]
    assert len(complaints) <= 2, complaints  # as many as the published text expects


@pytest.mark.parametrize(
    ("mode", "column", "value"),
    [
        (INCREMENTAL, "conflict_fraction_service", "2.0"),
        (INCREMENTAL, "conflict_fraction_batch", "0.004"),
        (INCREMENTAL, "busyness_service", "0.5"),
        (INCREMENTAL, "utilisation", "0.77"),
        (INCREMENTAL, "mean_wait_service_s", "6.0"),
        (ALL_OR_NOTHING, "mean_wait_service_s", "29"),
        (ALL_OR_NOTHING, "busyness_batch", "0.2"),
    ],
)
def test_tolerances_tell_what_is_too_far_away(mode: str, column: str, value: str) -> None:
    row = stored_row(mode)
    changed = {**row, column: value}
    new = set(tolerances.complaints(changed, row)) - set(tolerances.complaints(row, row))
    assert len(new) == 1
    assert value.rstrip("0").rstrip(".") in new.pop()


def test_few_conflicts_are_compared_as_counts() -> None:
    row = stored_row(INCREMENTAL, "tjob_service", "100")
    assert row["parameter"] == "0.1"
    assert any(
        "conflicts of service" in one
        for one in tolerances.complaints({**row, "transactions_conflicted_service": "40"}, row)
    )


def test_transactions_are_equal_up_to_the_first_difference() -> None:
    _, expected = modelled(SMALL[0], LENGTH_S)
    other = [*expected[:3], expected[3]._replace(placed=99), *expected[4:]]
    assert results.equal(expected, expected) == len(expected)
    assert results.equal(other, expected) == 3
    assert results.equal([expected[0]._replace(ended_s=expected[0].ended_s + 1e-5)], expected) == 0


class Prompt:
    """A chooser that delays nothing."""

    def delay_ns(self, message: Message) -> int:
        return 0


def test_exploration_sees_each_pod_of_a_commit() -> None:
    """A hold can keep the commit back that binds a pod, and its answer tells which pods were bound."""
    scenario = forms.load(clusters.spec(dataclasses.replace(MANY, machines=30), 2.0))
    messages = executions.execute(scenario, chooser=Prompt()).messages
    seen = {label.what for _, labels in messages for label in labels if label.kind == "Pod"}
    assert {"bind", "bind-answered", "bind-refused"} <= seen
    asked, told = (
        [label.name for _, labels in messages for label in labels if label.what in whats]
        for whats in (("bind",), ("bind-answered", "bind-refused"))
    )
    assert sorted(asked) == sorted(told)
