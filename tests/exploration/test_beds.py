"""The beds on which strategies are compared, and the figures that come of it."""

from __future__ import annotations

import json
import math

import pytest

from kemu.exploration import executions
from kemu.exploration.strategies.registry import STRATEGIES
from tests.exploration import beds, mutants, strategies
from tests.mutants import all_parts


@pytest.mark.parametrize("bed", beds.BEDS.values(), ids=lambda bed: bed.name)
def test_the_bug_of_a_bed_does_not_show_in_its_ordinary_run(bed: beds.Bed) -> None:
    with bed.planted():
        assert executions.execute(beds.scenario(bed)).outcome == executions.HOLDS


def test_a_portfolio_takes_strategies_in_turn() -> None:
    """The third strategy at its second run: after three runs of the first round, and three of the second."""
    assert strategies.portfolio([math.inf, 9, 2]) == 6
    assert strategies.portfolio([1, 1, 1]) == 1
    assert strategies.portfolio([math.inf, math.inf]) == math.inf


def test_what_was_not_found_is_more_than_the_limit() -> None:
    found = strategies.figures([3, 4, 5, math.inf, math.inf])
    assert (found["median"], found["found"]) == (5, 3)
    assert found["high"] is None
    assert strategies.figures([math.inf] * 3)["median"] is None


def test_runs_to_the_first_failure_are_counted() -> None:
    bed = beds.BEDS["assume-cache"]
    runs = strategies.runs_to_first(bed, "observe-late", 1, 30)
    assert 1 < runs <= 30
    assert strategies.runs_to_first(bed, "seeds", 1, 3) == math.inf


def test_the_table_is_of_beds_and_strategies_that_there_are() -> None:
    recorded = json.loads(strategies.FILE.read_text())
    for name, row in recorded["bugs"].items():
        assert name in beds.BEDS
        assert set(row) == {"check", "says", "portfolio", *STRATEGIES}


def test_twenty_planted_bugs_are_searched_and_what_is_recorded_was_found() -> None:
    assert len(set(mutants.TWENTY)) == 20
    assert set(mutants.TWENTY) <= set(all_parts.MUTANTS)
    recorded = json.loads(mutants.FILE.read_text())
    assert set(recorded) <= set(mutants.TWENTY)
    assert all(found["by"] and found["cpu_s"] <= mutants.CPU_S for found in recorded.values())
