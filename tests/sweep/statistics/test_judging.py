"""Claims whose truth is known, judged; and judges with a flaw, which must be found out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kemu.lab.sweep.cells import FAILED, SATURATED, CellRecord, Metric
from kemu.lab.sweep.statistics import claims, intervals, judging, samples
from kemu.lab.sweep.statistics.judging import FAILS, HOLDS, UNDECIDED, Judgement
from tests.sweep.statistics.planted import QUEUE, VARY, paired, record, waits

THREE_TIMES = "waiting.p99_s(queue=fifo) > 3 * waiting.p99_s(queue=priority)"
MORE = "waiting.p99_s(queue=fifo) > waiting.p99_s(queue=priority)"


def judged(says: str, records: Sequence[CellRecord], confidence: float = 0.99) -> Judgement:
    return judging.judge([claims.parse(says, VARY, confidence=confidence)], records)[0]


class TestWhatWasPlanted:
    @pytest.mark.parametrize(
        ("fifo", "outcome"),
        [(40.0, HOLDS), (20.0, FAILS), (30.0, UNDECIDED)],
    )
    def test_is_found(self, fifo: float, outcome: str) -> None:
        records = waits(paired({"fifo": fifo, "priority": 10.0}, 2.0, 1.0), 30)
        assert judged(THREE_TIMES, records).outcome == outcome
        swapped = "3 * waiting.p99_s(queue=priority) >= waiting.p99_s(queue=fifo)"
        assert judged(swapped, records).outcome == {HOLDS: FAILS, FAILS: HOLDS, UNDECIDED: UNDECIDED}[outcome]

    def test_is_told_with_its_interval(self) -> None:
        found = judged(THREE_TIMES, waits(paired({"fifo": 40.0, "priority": 10.0}, 2.0, 1.0), 30))
        assert found.ratio is not None
        assert found.ratio.low < 4 < found.ratio.high
        assert found.detail == "40.9 s against 10.6 s: 3.86 times as much (99 % interval 3.62 to 4.13)"

    def test_against_a_number(self) -> None:
        records = waits(paired({"fifo": 40.0, "priority": 10.0}, 2.0, 1.0), 30)
        found = judged("waiting.p99_s(queue=fifo) < 50", records)
        assert found.outcome == HOLDS
        assert found.detail.startswith("40.9 s (99 % interval 39.8 to 41.")
        assert judged("50 <= 2 * waiting.p99_s(queue=fifo)", records).outcome == HOLDS

    def test_the_order_of_the_records_is_of_no_matter(self) -> None:
        records = waits(paired({"fifo": 33.0, "priority": 10.0}, 2.0, 1.0), 20)
        assert judged(THREE_TIMES, records[::-1]) == judged(THREE_TIMES, records)

    def test_a_term_speaks_of_the_mean_of_all_variants_that_it_fits(self) -> None:
        records = waits(lambda queue, seed: 10.0 + seed if queue == "fifo" else 20.0 - seed, 10)
        assert judged("waiting.p99_s <= 15", records).outcome == HOLDS
        found = judged("waiting.p99_s < 15", records)
        assert (found.outcome, found.detail) == (FAILS, "15 s (the same in all 10 seeds)")


class TestMoreSeeds:
    def test_as_many_as_are_told_decide(self) -> None:
        def draw(queue: str, seed: int) -> float:
            return 10.0 + (0.5 + (-1) ** seed * 1.5 if queue == "fifo" else 0.0)

        found = judged(MORE, waits(draw, 20), 0.95)
        # Mean 0.5, deviation 1.54: ((1.96 + 0.84) · 1.54 / 0.5)² = 75 seeds.
        assert (found.outcome, found.more_seeds) == (UNDECIDED, 55)
        assert found.text == "undecided (needs about 55 more seeds)"
        assert judged(MORE, waits(draw, 20 + 55), 0.95).outcome == HOLDS

    def test_none_where_the_variants_are_the_same(self) -> None:
        found = judged(MORE, waits(lambda queue, seed: 5.0 + (-1) ** seed if queue == "fifo" else 5.0, 20))
        assert (found.outcome, found.more_seeds) == (UNDECIDED, None)
        assert "the same as far as seeds can tell" in found.detail

    @pytest.mark.parametrize(("confidence", "least"), [(0.9, 5), (0.95, 6), (0.99, 8), (0.5, 2)])
    def test_fewer_than_the_sign_test_needs_decide_nothing(self, confidence: float, least: int) -> None:
        assert judging.least_seeds(confidence) == least
        draw = paired({"fifo": 100.0, "priority": 10.0}, 0.1, 0.1)
        few = judged(MORE, waits(draw, least - 1), confidence)
        assert (few.outcome, few.more_seeds) == (UNDECIDED, 1)
        assert judged(MORE, waits(draw, least), confidence).outcome == HOLDS


class TestLowerBounds:
    """The truth may be any number above them."""

    DRAW = staticmethod(paired({"fifo": 40.0, "priority": 10.0}, 2.0, 1.0))

    def test_on_the_larger_side_they_prove_that_it_is_larger(self) -> None:
        found = judged(THREE_TIMES, waits(self.DRAW, 30, {"fifo": range(10)}))
        assert found.outcome == HOLDS
        assert found.detail == "at least 40.9 s against 10.6 s: at least 3.86 times as much (99 % interval from 3.62)"

    def test_but_never_that_it_is_smaller(self) -> None:
        small = waits(paired({"fifo": 20.0, "priority": 10.0}, 2.0, 1.0), 30, {"fifo": range(3)})
        found = judged(THREE_TIMES, small)
        assert (found.outcome, found.more_seeds) == (UNDECIDED, None)
        assert "waiting.p99_s(queue=fifo) in 3 of 30 seeds" in found.detail
        assert "a longer duration helps" in found.detail

    def test_of_two_lower_bounds_no_difference_is_told(self) -> None:
        both = waits(self.DRAW, 30, {"fifo": range(3), "priority": range(3)})
        found = judged(THREE_TIMES, both)
        assert found.outcome == UNDECIDED
        assert found.detail.startswith("at least 40.9 s against at least 10.6 s; pods still waited at the end")

    def test_on_the_smaller_side_they_prove_nothing(self) -> None:
        found = judged(THREE_TIMES, waits(self.DRAW, 30, {"priority": [3, 7]}))
        assert (found.outcome, found.more_seeds) == (UNDECIDED, None)

    def test_in_one_seed_of_twenty_they_are_taken_as_they_are(self) -> None:
        found = judged(THREE_TIMES, waits(self.DRAW, 40, {"priority": [3, 7]}))
        assert found.outcome == HOLDS
        assert "in 2 of 40 seeds, and taken as it is" in found.detail
        assert judged(THREE_TIMES, waits(self.DRAW, 40, {"priority": [3, 7, 8]})).outcome == UNDECIDED

    def test_with_an_upper_bound_both_sides_may_be_shown(self) -> None:
        """Five pods of a thousand that still wait move the 99th percentile by a few ranks, not to infinity."""

        def bounded(most: float) -> list[CellRecord]:
            records = waits(self.DRAW, 30, {"fifo": range(30), "priority": range(30)})
            for each in records:
                assert each.rows is not None
                each.rows.run["upper_bounds"] = {"waiting.p99_s": each.rows.run["waiting.p99_s"] * most}  # type: ignore[index]
            return records

        found = judged(THREE_TIMES, bounded(1.05))
        assert found.outcome == HOLDS
        assert found.ratio is not None
        assert found.ratio.low < 3.86 / 1.04
        assert found.ratio.high > 3.86 * 1.04
        assert judged(THREE_TIMES, bounded(1.5)).outcome == UNDECIDED
        assert judged("waiting.p99_s(queue=fifo) > 60", bounded(1.3)).outcome == FAILS

    def test_a_saturated_run_has_lower_bounds_of_what_grows_and_nothing_else(self) -> None:
        run = record({QUEUE: "fifo"}, 1, status=SATURATED, waiting__p99_s=3.0, oom_kills=2.0, utilisation__cpu=0.5)
        assert samples.figure(run, Metric("waiting.p99_s")) == samples.Figure(3.0, math.inf)
        assert samples.figure(run, Metric("oom_kills")) == samples.Figure(2.0, math.inf)
        assert samples.figure(run, Metric("refused.Conflict")) == samples.Figure(0.0, math.inf)
        assert samples.figure(run, Metric("utilisation.cpu")) is None


class TestMissing:
    def without(self, seeds: Sequence[int]) -> list[CellRecord]:
        records = waits(paired({"fifo": 40.0, "priority": 10.0}, 2.0, 1.0), 100)
        return [
            dataclasses.replace(each, status=FAILED, rows=None)
            if each.cell.seed in seeds and each.cell.variant[QUEUE] == "fifo"
            else each
            for each in records
        ]

    def test_a_few_seeds_are_left_out_and_told(self) -> None:
        found = judged(THREE_TIMES, self.without(range(5)))
        assert (found.outcome, found.seeds, found.missing) == (HOLDS, 95, 5)

    def test_many_make_it_undecided(self) -> None:
        found = judged(THREE_TIMES, self.without(range(6)))
        assert (found.outcome, found.more_seeds) == (UNDECIDED, None)
        assert "6 of 100 seeds have no figure" in found.detail

    def test_nothing_to_compare(self) -> None:
        found = judged("oom_kills(queue=fifo) < 3", self.without(()))
        assert (found.outcome, found.detail) == (UNDECIDED, "no run has a figure for oom_kills(queue=fifo)")
        assert found.data()["difference"] is None


def test_the_whole_fails_before_it_is_undecided() -> None:
    claim = claims.parse(MORE, VARY)
    outcomes = [Judgement(claim, outcome, "") for outcome in (HOLDS, UNDECIDED, FAILS)]
    assert judging.overall(outcomes) == FAILS
    assert judging.overall(outcomes[:2]) == UNDECIDED
    assert judging.overall(outcomes[:1]) == judging.overall([]) == HOLDS


# Judges with a flaw -------------------------------------------------------------------------------------------------


Flaw = Callable[[pytest.MonkeyPatch], None]


def unpaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds of the right term are shuffled, so that what seeds share does not cancel out."""
    right = samples.of

    def shuffled(records: Sequence[CellRecord], metric: Metric, variant: dict[str, str]) -> samples.Sample:
        found = right(records, metric, variant)
        if variant.get(QUEUE) != "priority":
            return found
        order = np.random.default_rng(1).permutation(list(found.figures))
        return samples.Sample(dict(zip(found.figures, (found.figures[s] for s in order), strict=True)), found.missing)

    monkeypatch.setattr(samples, "of", shuffled)


def bounds_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pod had waited when the run ended counts as its wait."""
    right = samples.figure

    def exact(run: CellRecord, metric: Metric) -> samples.Figure | None:
        found = right(run, metric)
        return None if found is None else samples.Figure(found.least, found.least)

    monkeypatch.setattr(samples, "figure", exact)


def by_the_mean_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        judging, "_mean_of", lambda v, c: intervals.Interval(np.mean(v), np.mean(v), np.mean(v), c, len(v))
    )


def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "least_seeds", lambda confidence: 2)


def failed_runs_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "MOST_INEXACT", 1.0)


CASES: dict[str, tuple[Callable[[], Judgement], str]] = {
    # The seeds differ by far more than the queues: only pairs show that the queues differ.
    "paired": (lambda: judged(MORE, waits(paired({"fifo": 11.0, "priority": 10.0}, 20.0, 0.5), 30)), HOLDS),
    "censored": (
        lambda: judged(
            THREE_TIMES, waits(paired({"fifo": 40.0, "priority": 10.0}, 2.0, 1.0), 30, {"priority": range(15)})
        ),
        UNDECIDED,
    ),
    "equal": (lambda: judged(MORE, waits(paired({"fifo": 10.0, "priority": 10.0}, 2.0, 1.0), 30)), UNDECIDED),
    "few": (lambda: judged(MORE, waits(paired({"fifo": 100.0, "priority": 10.0}, 2.0, 1.0), 4)), UNDECIDED),
    "missing": (lambda: judged(THREE_TIMES, TestMissing().without(range(50))), UNDECIDED),
}


@pytest.mark.parametrize("case", CASES)
def test_the_judge_decides_as_it_should(case: str) -> None:
    decide, outcome = CASES[case]
    assert decide().outcome == outcome


@pytest.mark.parametrize(
    ("flaw", "case"),
    [
        (unpaired, "paired"),
        (bounds_are_exact, "censored"),
        (by_the_mean_alone, "equal"),
        (few_are_enough, "few"),
        (failed_runs_do_not_count, "missing"),
    ],
)
def test_a_judge_with_a_flaw_is_found_out(monkeypatch: pytest.MonkeyPatch, flaw: Flaw, case: str) -> None:
    flaw(monkeypatch)
    decide, outcome = CASES[case]
    assert decide().outcome != outcome
