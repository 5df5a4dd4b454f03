"""Strategies: what they plan, that plans are functions of seed and number, and that holds repeat what they find."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kemu.errors import KemuError
from kemu.lab.exploration import results
from kemu.lab.exploration.executions import Execution, execute
from kemu.lab.exploration.plans import Plan
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.runs import Task, carry_out
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import crash, observe_late, registry, situations, swarms, uniform
from kemu.lab.exploration.strategies.registry import STRATEGIES, USUAL
from kemu.lab.exploration.strategies.subjects import Subject
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.faults.kinds import STEPS
from kemu.runtime.sim.steering.messages import Message
from tests.exploration import beds

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
RACE = SCENARIOS / "races" / "two-schedulers-one-node.yaml"
RECREATED = SCENARIOS / "races" / "recreated-pod.yaml"

ONLY_CHECKS = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: only-checks}
spec:
  duration: 20s
  nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "2", memory: 4Gi, pods: "110"}}]
  workloads:
    - name: web
      arrivals: {every: 1s, count: 4}
      pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
  expect:
    - {check: no-node-overcommitted, holds: true}
"""


@dataclass(frozen=True)
class Feedback:
    records: Sequence[RunRecord] = ()
    generation: int = 0


NOTHING = Feedback()


def subject_of(scenario: Scenario) -> Subject:
    return Subject(Source.of(scenario))


@pytest.fixture(scope="module")
def race() -> Subject:
    return subject_of(loader.load(RACE))


@pytest.fixture(scope="module")
def known(race: Subject) -> Feedback:
    """Four runs of a generation before."""
    strategy = STRATEGIES["observe-late"].make(race, 1)
    plans = [strategy.plan(number, NOTHING) for number in range(4)]
    records = [carry_out(race.source, Task(number, plan)) for number, plan in enumerate(plans)]
    return Feedback([dataclasses.replace(record, new=record.orders) for record in records], 1)


def run(subject: Subject, plan: Plan) -> Execution:
    return execute(subject.source.scenario(plan), chooser=plan.chooser and plan.chooser.make())


@pytest.mark.parametrize("name", STRATEGIES)
class TestEveryStrategy:
    def test_plans_what_the_seed_and_the_number_say(self, name: str, race: Subject, known: Feedback) -> None:
        """Whatever was planned before, and in whichever process."""
        one = STRATEGIES[name].make(race, 7)
        other = STRATEGIES[name].make(Subject(race.source), 7)
        forwards = [one.plan(number, known) for number in range(60)]
        backwards = [other.plan(number, known) for number in reversed(range(60))]
        assert forwards == list(reversed(backwards))

    def test_plans_other_runs_for_another_seed(self, name: str, race: Subject, known: Feedback) -> None:
        def plans(seed: int) -> list[Plan]:
            strategy = STRATEGIES[name].make(race, seed)
            return [strategy.plan(number, known) for number in range(6)]

        assert plans(1) != plans(2)

    def test_plans_data_that_a_campaign_file_can_hold(self, name: str, race: Subject, known: Feedback) -> None:
        strategy = STRATEGIES[name].make(race, 7)
        for number in range(30):
            plan = strategy.plan(number, known)
            assert results.plan_from(json.loads(json.dumps(results.plan_data(plan)))) == plan

    def test_goes_new_ways(self, name: str, race: Subject) -> None:
        strategy = STRATEGIES[name].make(race, 3)
        digests = {run(race, strategy.plan(number, NOTHING)).digest for number in range(10)}
        assert len(digests) > 5

    def test_is_repeated_by_holds_alone(self, name: str, race: Subject) -> None:
        strategy = STRATEGIES[name].make(race, 5)
        for number in range(5):
            plan = strategy.plan(number, NOTHING)
            found = run(race, plan)
            repeated = execute(dataclasses.replace(found.scenario, holds=(*found.scenario.holds, *found.deviations)))
            assert repeated.verdict["counts"] == found.verdict["counts"]
            assert repeated.failures == found.failures
            assert repeated.history.now_ns == found.history.now_ns


class TestObserveLate:
    def test_finds_what_a_late_watch_does(self) -> None:
        """Somebody creates a pod anew; a scheduler that hears of it late makes no stale binding."""
        subject = subject_of(loader.load(RECREATED))
        strategy = observe_late.ObserveLate(subject, 1)
        failed = [
            failure.id for number in range(20) for failure in run(subject, strategy.plan(number, NOTHING)).failures
        ]
        assert "the-old-binding-is-refused" in failed

    def test_finds_what_news_does_that_comes_during_a_decision(self) -> None:
        """A scheduler needs 300 us to find no room. That it hears just then of a pod that ends has to be planned."""
        bed = beds.BEDS["in-flight-events"]
        subject = subject_of(beds.scenario(bed))
        plans = [Plan(holds=(group[0].hold(),)) for group in situations.situations(subject.baseline()).values()]
        failed = [plan for plan in plans if bed.check in [failure.id for failure in run(subject, plan).failures]]
        assert failed
        assert not run(subject_of(beds.scenario(bed, is_ablated=False)), failed[0]).failures

    def test_keeps_no_message_for_a_time_that_makes_everything_late(self) -> None:
        scenario = beds.scenario(beds.BEDS["controller-expectations"])
        groups = situations.situations(subject_of(scenario).baseline())
        kept_ns = [one.for_ns for group in groups.values() for one in group if one.until is None]
        assert kept_ns
        assert max(kept_ns) <= scenario.duration_ns / swarms.SLOWEST

    def test_names_messages_that_are_sent_and_events_that_happen(self, race: Subject) -> None:
        """A hold keeps its message, and few of the events need the message that waits for them."""
        groups = situations.situations(race.baseline())
        waiting = [group for group in groups.values() if group[0].until is not None]
        released = 0
        for group in waiting:
            plan = Plan(holds=(group[0].hold(),))
            execution = execute(race.source.scenario(plan), keep_log=True)
            kinds = [event.kind for event in execution.events]
            assert kinds.count("hold.kept") == 1, group[0]
            released += any(
                event.kind == "hold.released" and event.data["why"] == "event" for event in execution.events
            )
        assert released > 0.7 * len(waiting)

    def test_tries_every_single_hold_of_the_scenario_before_pairs(self, race: Subject) -> None:
        strategy = observe_late.ObserveLate(race, 1)
        total = sum(map(len, situations.situations(race.baseline()).values()))
        plans = [strategy.plan(2 * number, NOTHING) for number in range(total + 10)]
        singles = {plan.holds for plan in plans[:total]}
        assert len(singles) == total
        assert {len(holds or ()) for holds in singles} == {1}
        assert 2 in {len(plan.holds or ()) for plan in plans[total:]}


class TestCrash:
    def test_strikes_every_step_of_every_actor(self, race: Subject) -> None:
        strategy = crash.Crash(race, 1)
        struck = set()
        for number in range(400):
            for fault in strategy.plan(number, NOTHING).overrides.get("chaos", NOTHING):
                if "crash" in fault and "step" in fault["crash"]:
                    struck.add((situations.role(fault["crash"]["actor"]), fault["crash"]["step"]))
        assert struck == {(role, step) for role, steps in STEPS.items() for step in steps}

    def test_keeps_the_faults_of_the_scenario(self) -> None:
        scenario = loader.load(RACE, None, {"chaos": [{"id": "mine", "at": "50s", "crash": {"actor": "store"}}]})
        subject = subject_of(scenario)
        for number in range(10):
            planned = subject.source.scenario(crash.Crash(subject, 1).plan(number, NOTHING))
            assert planned.chaos[0].id == "mine"
            assert len(planned.chaos) > 1

    def test_does_not_strike_the_operator_of_the_machines(self) -> None:
        """It adds nodes, so it sends messages; no fault can name it."""
        subject = subject_of(loader.load(SCENARIOS / "autoscaler" / "cut-off.yaml"))
        strategy = crash.Crash(subject, 1)
        assert "operator" in situations.actors(subject.baseline())
        for number in range(60):
            subject.source.scenario(strategy.plan(number, NOTHING))


class TestTheSwarm:
    def drawn(self, subject: Subject) -> set[str]:
        strategy = STRATEGIES["uniform"].make(subject, 1)
        return {path for number in range(300) for path in strategy.plan(number, NOTHING).overrides}

    def test_of_a_scenario_that_expects_something_of_its_pods_is_of_times(self, race: Subject) -> None:
        assert self.drawn(race) == {"timing", "timing.apiLatency", "timing.watchLatency", "timing.storeLatency"}

    def test_of_a_scenario_that_only_asks_checks_has_replicas_and_sizes(self) -> None:
        subject = subject_of(loader.loads(ONLY_CHECKS))
        drawn = self.drawn(subject)
        assert {"apiServers.replicas", "schedulers", "workloads[0].arrivals.count"} <= drawn


class TestTheTable:
    def test_makes_the_strategies_that_were_named_or_all(self, race: Subject) -> None:
        assert [one.name for one in registry.make(["pct", "walk"], race.source, 1)] == ["pct", "walk"]
        assert [one.name for one in registry.make([], race.source, 1)] == list(USUAL)

    def test_refuses_a_name_that_no_strategy_has(self, race: Subject) -> None:
        with pytest.raises(KemuError, match="no strategy is called pst; there are observe-late"):
            registry.make(["pst"], race.source, 1)
        with pytest.raises(KemuError, match=r"^no strategy is called observe_late; did you mean observe-late\?$"):
            registry.make(["observe_late"], race.source, 1)


def test_a_chooser_draws_for_each_link_by_itself() -> None:
    """One more message on a link shifts nothing on others."""

    def message(target: str) -> Message:
        end: Any = SimpleNamespace(method="/kemu.v1.Api/Get", is_client=True)
        return Message("user", target, end, b"", None, 1, 0)

    def drawn(*targets: str) -> list[int]:
        chooser = uniform.Widths(10**9, 1.0, 1.0, 7)
        return [chooser.delay_ns(message(target)) for target in targets]

    few, many = drawn("a", "b", "a", "b"), drawn("a", "b", "b", "b", "a")
    assert few[0] == many[0]
    assert few[2] == many[4]
    assert (few[1], few[3]) == (many[1], many[2])
