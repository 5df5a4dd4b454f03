"""Carries out one planned run; what every worker does, in whichever process."""

from __future__ import annotations

import time
from dataclasses import dataclass

from kemu.exploration import coverage, executions, plans
from kemu.exploration.executions import Execution
from kemu.exploration.plans import Plan
from kemu.exploration.results import RunRecord
from kemu.exploration.sources import Source
from kemu.runtime.holds import Hold


@dataclass(frozen=True, slots=True)
class Task:
    """A run that is to be carried out."""

    number: int
    plan: Plan
    strategy: str = ""


def carry_out(source: Source, task: Task) -> RunRecord:
    """Raises ScenarioError and KemuError for a plan that cannot be run."""
    begun = time.perf_counter()
    plan = task.plan
    timeline = coverage.Timeline()
    chooser = None if plan.chooser is None else plan.chooser.make()
    execution = executions.execute(source.scenario(plan), chooser=chooser, watcher=timeline)
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
        seconds=time.perf_counter() - begun,
    )


def holds_of(execution: Execution) -> tuple[Hold, ...]:
    """All holds with which the scenario makes the same run without a chooser."""
    return (*execution.scenario.holds, *execution.deviations)
