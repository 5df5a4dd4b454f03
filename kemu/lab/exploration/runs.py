"""Carries out one planned run; what every worker does, in whichever process."""

from __future__ import annotations

import time
from collections.abc import Generator, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.errors import KemuError
from kemu.lab.exploration import branches, coverage, plans
from kemu.lab.exploration.branches import Begun
from kemu.lab.exploration.executions import Execution, Request
from kemu.lab.exploration.meters import Meter, TooLongError
from kemu.lab.exploration.plans import Plan
from kemu.lab.exploration.processes.tasks import DIED, LOST, SLOW
from kemu.lab.exploration.results import IMPOSSIBLE, RunRecord
from kemu.lab.exploration.sources import Source
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.holds import Hold


@dataclass(frozen=True, slots=True)
class Task:
    """A run that is to be carried out."""

    number: int
    plan: Plan
    strategy: str = ""

    is_searched = True

    @property
    def kin(self) -> Hashable:
        """None: whether it begins as others do is for them to find."""
        return None

    def carry_out(self, source: Source) -> RunRecord:
        """See :func:`carry_out`."""
        found: RunRecord | None = branches.carried_out(source, self)
        return found or carry_out(source, self)

    def scenario(self, source: Source) -> Scenario | None:
        """None: other runs of a search hardly ever begin so."""
        plan = self.plan
        alone = plan.seed is not None or plan.overrides or plan.redraw is not None
        return None if alone else source.scenario(plan)

    def steps(self, source: Source, begun: Begun) -> Generator[Request, Execution, RunRecord]:
        return _steps(source, self, begun)

    def given_up(self, why: str, seconds: float) -> RunRecord:
        verdict = DIED if why == LOST else why
        return RunRecord(self.number, self.strategy, self.plan, verdict, seconds=seconds)

    def refused(self, why: str) -> RunRecord:
        raise KemuError(f"run {self.number} cannot be carried out: {why}")


def carry_out(source: Source, task: Task) -> RunRecord:
    """From the start. Raises ScenarioError and KemuError for a plan that cannot be run."""
    record: RunRecord = branches.by_itself(task, source)
    return record


def _steps(source: Source, task: Task, begun: Begun) -> Generator[Request, Execution, RunRecord]:
    begun_s = time.perf_counter()
    plan = task.plan
    timeline = coverage.Timeline()
    chooser = None if plan.chooser is None else plan.chooser.make()
    meter = Meter(plan.most_events)

    def watch(time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        meter(time_ns, actor, kind, data)
        timeline(time_ns, actor, kind, data)

    watcher = watch if plan.most_events else timeline
    execution: Execution | None
    try:
        scenario = source.scenario(plan)
        judge = begun.judge(scenario)
        execution = yield Request(scenario, judge, watcher, chooser=chooser, redraw=plan.redraw)
    except TooLongError:
        execution = None
    except KemuError:
        if not plan.may_be_impossible:
            raise
        return RunRecord(task.number, task.strategy, plan, IMPOSSIBLE, seconds=_since_s(begun_s))
    if execution is None or meter.is_over:
        return RunRecord(task.number, task.strategy, plan, SLOW, events=meter.events, seconds=_since_s(begun_s))
    if execution.error is not None and isinstance(execution.error.__cause__, MemoryError):
        raise execution.error.__cause__  # of this machine, not of the run
    failures = execution.failures
    return RunRecord(
        task.number,
        task.strategy,
        plan,
        execution.outcome,
        execution.digest,
        failures,
        holds_of(execution) if failures else (),
        timeline.orders(),
        signature=timeline.signature(),
        checks=tuple(check.id for check in execution.judged.checks if check.holds is not None),
        expectations=tuple(one.id for one in execution.judged.judgements if one.holds is not None),
        faults=coverage.faults_hit(execution.history),
        steps=tuple(timeline.steps),
        probed=plans.resolve(plan.probe)(execution) if plan.probe else None,
        events=execution.event_count,
        seconds=_since_s(begun_s),
    )


def _since_s(begun_s: float) -> float:
    return time.perf_counter() - begun_s


def holds_of(execution: Execution) -> tuple[Hold, ...]:
    """All holds with which the scenario makes the same run without a chooser."""
    return (*execution.scenario.holds, *execution.deviations)
