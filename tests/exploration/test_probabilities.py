"""P(failure) over time, and the event that it names."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kemu.lab.exploration import executions
from kemu.lab.scenario.loading import loader
from kemu.lab.tell.explaining import explanations, probabilities
from kemu.lab.tell.explaining.drawings import charts
from kemu.lab.tell.explaining.explanations import Explanation
from kemu.lab.tell.explaining.probabilities import Curve, Decision, Point
from kemu.runtime.random_streams import Redraw
from kemu.runtime.runlog.frames import Entry
from tests.exploration.explaining import races
from tests.mutants import all_parts


def explained() -> Explanation:
    return explanations.explain(loader.loads(races.STALE))


@pytest.mark.thorough
def test_the_failure_is_decided_when_the_scheduler_looks() -> None:
    """Scheduler red looks at 5.504 s, and says what it has chosen at 6.004 s."""
    curve = probabilities.curve(explained(), instants=6, suffixes=8)
    assert curve.decision is not None
    assert curve.decision.time_ns == 5_504_000_000
    assert curve.decision.text == "scheduler red chose node-1 for red-pod"
    assert curve.decision.before <= 0.5 < curve.decision.after == 1.0
    after = [point.probability for point in curve.points if point.time_ns >= curve.decision.time_ns]
    assert set(after) == {1.0}


@pytest.mark.nightly("five seconds, as for each of twenty planted bugs (tests.mutants.decisions)")
def test_the_failure_is_decided_by_what_comes_while_a_request_is_on_its_way() -> None:
    """The binding of a pod that is gone is still on its way when another pod gets the name."""
    explanation = explanations.explain(loader.loads(races.RECREATED))
    curve = probabilities.curve(explanation, instants=7, suffixes=12)
    assert curve.decision is not None
    assert curve.decision.text == "the second db-0 was created"
    assert curve.decision.after == 1.0


@pytest.mark.nightly("five seconds, as for each of twenty planted bugs (tests.mutants.decisions)")
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


def _until(events: list[Entry], at_ns: int) -> list[Entry]:
    return [event for event in events if event.time_ns <= at_ns and not event.kind.startswith("hold.")]


def test_the_same_futures_whoever_draws_them() -> None:
    first = probabilities.curve(explained(), instants=3, suffixes=3)
    assert first == probabilities.curve(explained(), instants=3, suffixes=3)


def test_a_chart_has_a_column_for_each_instant() -> None:
    points = (Point(1_000_000_000, 0.0), Point(1_500_000_000, 0.5), Point(2_000_000_000, 1.0))
    decision = Decision(7, 2_000_000_000, "scheduler/red/0", "scheduler red chose node-1", 0.5, 1.0)
    assert charts.told(Curve(points, decision, 50))[2:4] == ["  ▁▅█", "    ▲"]
    assert charts.summary(Curve(points, decision, 50)) == (
        "Decided at 2.000 s (from 50 % to 100 %): scheduler red chose node-1 (event 7)."
    )
    assert charts.summary(Curve(points, None, 50)) == ""


@pytest.mark.thorough
def test_a_check_that_is_expected_to_fail_has_a_curve_too() -> None:
    text = races.TWICE + "  expect: [{check: pod-bound-at-most-once, holds: false}]\n"
    curve = probabilities.curve(explanations.explain(loader.loads(text)), instants=3, suffixes=3)
    assert curve.points[-1].probability == 1.0


DRAWN = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: drawn}
spec:
  seed: 2
  duration: 20s
  timing: {watchLatency: {uniform: {min: 20ms, max: 22ms}}}
  nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  events:
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: web},
       spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
  expect: [{id: on-node-2, pod: web, bound: {node: node-2}}]
"""
"""Which of two equal nodes it is, the scheduler draws."""


@pytest.mark.thorough
def test_random_ties_are_drawn_anew() -> None:
    explanation = explanations.explain(loader.loads(DRAWN))
    curve = probabilities.curve(explanation, instants=5, suffixes=16)
    assert curve.decision is not None
    assert curve.decision.text == "the scheduler chose node-1 for web"
    assert 0.2 < curve.decision.before < 0.8
    assert curve.decision.after == 1.0


def test_what_is_drawn_anew_is_the_future() -> None:
    """Of messages, too: one that is on its way at the instant takes another time, and is not there before."""
    scenario = loader.loads(DRAWN)
    events = executions.execute(scenario, keep_log=True).events
    requests = [event for event in events if event.kind == "api.request" and event.time_ns]
    (sent_ns,) = (event.time_ns for event in requests if event.data["verb"] == "create")
    at_ns = sent_ns + 1_000_000
    heard = set()
    for seed in range(4):
        again = executions.execute(scenario, keep_log=True, redraw=Redraw(at_ns, seed)).events
        assert _until(again, at_ns) == _until(events, at_ns)
        heard.add(next(event.time_ns for event in again if event.kind == "sched.queued"))
    assert len(heard) == 4
    assert all(sent_ns + 20_000_000 <= time_ns <= sent_ns + 22_000_000 for time_ns in heard)


def test_a_rise_that_looks_like_another_gets_more_futures() -> None:
    """Two rises of 0.45 and 0.55 cannot be told apart with ten futures each."""
    true = {0: 0.0, 1: 0.45, 2: 1.0}
    drawn: dict[int, int] = {}

    class Toy:
        def __init__(self) -> None:
            self.known: dict[int, probabilities._Estimate] = {}

        jumps = probabilities._Estimates.jumps

        def at(self, times: list[int], suffixes: int) -> None:
            for time_ns in times:
                drawn[time_ns] = suffixes
                self.known[time_ns] = probabilities._Estimate(round(true[time_ns] * suffixes), suffixes)

    toy: Any = Toy()
    toy.at([0, 2], 10)
    jump = probabilities._largest_jump(toy, [0, 1, 2], 10)
    assert jump is not None
    assert (jump.low_ns, jump.high_ns) == (1, 2)
    assert drawn[1] == 80
