"""P(failure) over time, and the event that it names."""

from __future__ import annotations

import dataclasses

import pytest

from kemu.exploration import executions, probabilities
from kemu.exploration.explaining import charts, explanations
from kemu.exploration.explaining.explanations import Explanation
from kemu.exploration.probabilities import Curve, Decision, Point
from kemu.runlog.frames import Event
from kemu.scenario.loading import loader
from tests.exploration.explaining import races
from tests.mutants import all_parts


def explained() -> Explanation:
    return explanations.explain(loader.loads(races.STALE))


def test_the_failure_is_decided_when_the_scheduler_looks() -> None:
    """Scheduler red looks at 5.504 s, and says what it has chosen at 6.004 s."""
    curve = probabilities.curve(explained(), instants=6, suffixes=8)
    assert curve.decision is not None
    assert curve.decision.time_ns == 5_504_000_000
    assert curve.decision.text == "scheduler red chose node-1 for red-pod"
    assert curve.decision.before <= 0.5 < curve.decision.after == 1.0
    after = [point.probability for point in curve.points if point.time_ns >= curve.decision.time_ns]
    assert set(after) == {1.0}


def test_the_failure_is_decided_by_what_comes_while_a_request_is_on_its_way() -> None:
    """The binding of a pod that is gone is still on its way when another pod gets the name."""
    explanation = explanations.explain(loader.loads(races.RECREATED))
    curve = probabilities.curve(explanation, instants=7, suffixes=12)
    assert curve.decision is not None
    assert curve.decision.text == "the second db-0 was created"
    assert curve.decision.after == 1.0


def test_a_bug_does_not_change_what_decides() -> None:
    """The kubelet takes everything; the scheduler's view decides all the same."""
    with pytest.MonkeyPatch.context() as patch:
        all_parts.MUTANTS["everything-is-admitted"].plant(patch)
        explanation = explanations.explain(loader.loads(races.STALE), "no-node-overcommitted")
        curve = probabilities.curve(explanation, instants=6, suffixes=8)
    assert curve.decision is not None
    assert curve.decision.text == "scheduler red chose node-1 for red-pod"


def test_where_the_future_changes_nothing_nothing_decides() -> None:
    curve = probabilities.curve(explanations.explain(loader.loads(races.CRASH)), instants=3, suffixes=4)
    assert {point.probability for point in curve.points} == {1.0}
    assert curve.decision is None


def test_the_past_is_kept() -> None:
    """However the future is drawn, the log up to that instant is the same, what a hold let go included."""
    explanation = explained()
    for at_ns in (5_306_000_000, 5_504_000_000, 6_004_000_000):
        plan = probabilities.plan(explanation, at_ns, 7)
        assert plan.chooser is not None
        scenario = dataclasses.replace(explanation.scenario, holds=plan.holds)
        again = executions.execute(scenario, chooser=plan.chooser.make(), keep_log=True).events
        assert _until(again, at_ns) == _until(explanation.telling.events, at_ns)


def _until(events: list[Event], at_ns: int) -> list[Event]:
    return [event for event in events if event.time_ns <= at_ns and not event.kind.startswith("hold.")]


def test_the_same_futures_whoever_draws_them() -> None:
    first = probabilities.curve(explained(), instants=3, suffixes=3)
    assert first == probabilities.curve(explained(), instants=3, suffixes=3)


def test_a_chart_has_a_column_for_each_instant() -> None:
    points = (Point(1_000_000_000, 0.0), Point(1_500_000_000, 0.5), Point(2_000_000_000, 1.0))
    decision = Decision(7, 2_000_000_000, "scheduler/red/0", "scheduler red chose node-1", 0.5, 1.0)
    assert charts.told(Curve(points, decision, 50))[2:4] == ["  ▁▅█", "    ▲"]
    assert charts.summary(Curve(points, decision, 50)) == (
        "Decided at 2.000 s (from 50% to 100%): scheduler red chose node-1 (event 7)."
    )
    assert charts.summary(Curve(points, None, 50)) == ""


def test_a_check_that_is_expected_to_fail_has_a_curve_too() -> None:
    text = races.TWICE + "  expect: [{check: pod-bound-at-most-once, holds: false}]\n"
    curve = probabilities.curve(explanations.explain(loader.loads(text)), instants=3, suffixes=3)
    assert curve.points[-1].probability == 1.0
