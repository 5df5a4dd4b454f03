"""The beds on which strategies are compared, and the figures that come of it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest

from kemu.lab.exploration import executions
from kemu.lab.exploration.strategies.registry import USUAL
from tests.exploration import beds, mutants, strategies
from tests.mutants import all_parts


@pytest.mark.parametrize("bed", beds.BEDS.values(), ids=lambda bed: bed.name)
def test_the_bug_of_a_bed_does_not_show_in_its_ordinary_run(bed: beds.Bed) -> None:
    with bed.planted():
        assert executions.execute(beds.scenario(bed)).outcome == executions.HOLDS


class TestTheFigures:
    def cell(self, firsts: Sequence[int], runs: int, block: int = 0) -> strategies.Cell:
        rest: list[int | None] = [None] * (strategies.TRIALS - len(firsts))
        return strategies.Cell(block, runs, [*firsts, *rest])

    def test_the_fortieth_and_the_sixty_first_bound_the_median(self) -> None:
        """Of 100 trials, fewer than 40 or more than 60 lie below the median with a probability of less than 5 %."""
        outside = [n for n in range(strategies.TRIALS + 1) if not strategies.LOW <= n < strategies.HIGH]
        assert sum(math.comb(strategies.TRIALS, n) for n in outside) / 2**strategies.TRIALS < 0.05
        assert self.cell(range(1, 101), 100).figures() == (50, 40, 61)

    def test_a_cell_is_over_when_more_runs_change_nothing(self) -> None:
        assert not self.cell([5] * 60, 5).is_over()
        assert self.cell([5] * 61, 5).is_over()
        assert self.cell([5] * 61, 5).figures() == (5, 5, 5)

    def test_what_was_not_found_takes_more_than_the_runs_that_there_were(self) -> None:
        assert strategies.told(self.cell([7] * 45, 30)) == ">30 (7 to >30)"
        assert strategies.told(self.cell([7] * 50, 30)) == "7 (7 to >30)"

    def test_a_block_tells_of_all_blocks(self) -> None:
        """Where half of the trials fail within a block, the median is a block; where a quarter does, 2.4 blocks."""
        assert self.cell([3] * 50, 16, 16).median == pytest.approx(16)
        median, low, high = self.cell([3] * 25, 16, 16).figures()
        assert median == pytest.approx(16 * 2.409, rel=1e-3)
        assert low < median < high

    def test_a_block_in_which_nothing_failed_tells_how_rare_failures_are(self) -> None:
        """A share of 3.7 % would have shown."""
        cell = self.cell([], 16, 16)
        assert math.isinf(cell.median)
        assert strategies.told(cell) == ">294"
        assert cell.not_enough == pytest.approx(16 * math.log(0.5) / math.log(1 - 0.037), rel=0.01)


class TestSearches:
    def test_count_runs_to_the_first_failure_that_is_the_bugs(self) -> None:
        cells = {name: strategies.cell(name) for name in strategies.SEARCHERS}
        searches = strategies.Searches(beds.BEDS["assume-cache"], cells)
        first, seed = min((first, seed) for seed, first in enumerate(recorded("assume-cache", "pct"), 1) if first)
        outcomes = searches.trial("pct", seed, 0)
        assert [next(outcomes) for _ in range(first)] == [False] * (first - 1) + [True]
        outcomes = searches.trial("seeds", 1, 0)
        assert not any(next(outcomes) for _ in range(3))

    def test_of_the_portfolio_are_those_of_its_strategies(self) -> None:
        """What the trials of the strategies tell of the portfolio's is what its campaign does."""
        row = strategies.load()["assume-cache"]
        searches = strategies.Searches(beds.BEDS["assume-cache"], row.cells)
        told, made = searches.trial(strategies.PORTFOLIO, 2, 0), searches._learning(strategies.PORTFOLIO, 2, 0)
        assert [next(told) for _ in range(16)] == [next(made) for _ in range(16)]


def recorded(bug: str, searcher: str) -> list[int | None]:
    return strategies.load()[bug].cells[searcher].firsts


ALL = strategies.load()
KNOWN = {name: row.cells for name, row in ALL.items() if row.is_known}
"""Of the bugs that have been searched."""


class TestTheRecord:
    def test_is_of_ten_bugs(self) -> None:
        assert len(ALL) == 10
        assert len(KNOWN) >= 8

    @pytest.mark.parametrize("name", KNOWN)
    def test_can_be_repeated(self, name: str) -> None:
        """By the strategy that is best at the bug. If not: ``python -m tests.exploration.strategies`` makes it anew."""
        cells = KNOWN[name]
        best = min(USUAL, key=lambda each: cells[each].median)
        assert strategies.Searches(beds.BEDS[name], cells).still_fails(best), best

    @pytest.mark.parametrize("name", KNOWN)
    def test_the_portfolio_takes_as_many_times_the_best_as_it_has_strategies_at_most(self, name: str) -> None:
        assert strategies.times_the_best(KNOWN[name]) <= len(USUAL)

    def test_the_portfolio_is_better_than_the_median_strategy_on_most_bugs(self) -> None:
        better = [
            name
            for name, cells in KNOWN.items()
            if cells[strategies.PORTFOLIO].median < strategies.median_strategy(cells)
        ]
        assert len(better) > len(KNOWN) / 2


def test_twenty_planted_bugs_are_searched_and_what_is_recorded_was_found() -> None:
    assert len(set(mutants.TWENTY)) == 20
    assert set(mutants.TWENTY) <= set(all_parts.MUTANTS)
    known = json.loads(mutants.FILE.read_text())
    assert set(known) <= set(mutants.TWENTY)
    assert all(found["by"] and found["cpu_s"] <= mutants.CPU_S for found in known.values())
