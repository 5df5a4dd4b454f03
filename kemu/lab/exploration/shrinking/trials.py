"""Trials: does a candidate fail in the same way?

Every candidate runs once at most, within a budget of executions and of time. Candidates that are independent of each
other run at the same time, and the first of them, in order, that fails in the same way is taken: with any number of
jobs the result is that of one. So is the number of executions, which counts those that one job would have needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kemu.errors import KemuError
from kemu.lab.exploration import workers
from kemu.lab.exploration.executions import Failure
from kemu.lab.exploration.meters import Meter, TooLongError
from kemu.lab.exploration.plans import ChooserSpec, Plan
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.runs import Task
from kemu.lab.exploration.shrinking.candidates import Candidate
from kemu.lab.exploration.sources import Source
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import LogSink
from kemu.runtime.holds import Hold, Label
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.sim.steering.choosers import Chooser
from kemu.runtime.sim.steering.messages import Message

Failures = tuple[Failure, ...]


class Seen(Protocol):
    """An execution, as far as trials look at it."""

    @property
    def failures(self) -> Failures: ...

    @property
    def events(self) -> list[Entry]: ...

    @property
    def messages(self) -> list[tuple[Message, tuple[Label, ...]]]: ...

    @property
    def deviations(self) -> tuple[Hold, ...]: ...


class Execute(Protocol):
    """:func:`kemu.lab.exploration.executions.execute`, or what stands in for it."""

    def __call__(
        self,
        scenario: Scenario,
        *,
        keep_log: bool = False,
        chooser: Chooser | None = None,
        watcher: LogSink | None = None,
    ) -> Seen: ...


Found = tuple[Failures, tuple[Hold, ...]]
"""How a run fails, and the holds of the scenario that make it again."""


class Runner(Protocol):
    """Runs scenarios, as many at a time as it has jobs."""

    jobs: int

    def run(self, scenarios: Sequence[Scenario]) -> list[Failures]:
        """How they fail, in their order; what cannot run at all does not fail."""
        ...

    def search(self, scenario: Scenario, choosers: Sequence[ChooserSpec]) -> list[Found]:
        """The same with other delays, and those that each chooser has made, as holds."""
        ...


class _OneByOne:
    """In this process."""

    jobs = 1

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._most_events = 0

    def run(self, scenarios: Sequence[Scenario]) -> list[Failures]:
        return [self._run(scenario)[0] for scenario in scenarios]

    def search(self, scenario: Scenario, choosers: Sequence[ChooserSpec]) -> list[Found]:
        return [self._run(scenario, one.make()) for one in choosers]

    def _run(self, scenario: Scenario, chooser: Chooser | None = None) -> Found:
        meter = Meter(self._most_events)
        try:
            seen = self._execute(scenario, watcher=meter, chooser=chooser)
        except (KemuError, TooLongError):
            return (), ()
        if meter.is_over:
            return (), ()
        self._most_events = self._most_events or _most(meter.events)
        return seen.failures, (*scenario.holds, *seen.deviations) if chooser is not None else ()


_LONGER, _MORE_EVENTS = 3, 20_000
"""A smaller scenario may have so many times the events of the first, and so many more."""


def _most(events: int) -> int:
    return _LONGER * events + _MORE_EVENTS


class _Executed:
    """By what carries out the runs of campaigns: worker processes, or a cluster."""

    def __init__(self, executor: workers.Executor, jobs: int, original: Scenario, data_dir: str) -> None:
        self.jobs = jobs
        self._executor = executor
        # A document comes as an override of the whole specification, so that the workers need one source only.
        self._source = Source(_EMPTY, original.file, data_dir)
        self._most_events = 0

    def run(self, scenarios: Sequence[Scenario]) -> list[Failures]:
        found: list[Failures] = []
        while self._most_events == 0 and len(found) < len(scenarios):
            # The first that runs sets the limit of all others.
            (record,) = self._records(scenarios[len(found) : len(found) + 1])
            found.append(record.failures)
            if record.events:
                self._most_events = _most(record.events)
        return found + [record.failures for record in self._records(scenarios[len(found) :])]

    def search(self, scenario: Scenario, choosers: Sequence[ChooserSpec]) -> list[Found]:
        plan = _plan(scenario, self._most_events)
        plans = [dataclasses.replace(plan, chooser=chooser) for chooser in choosers]
        return [(record.failures, record.holds) for record in self._carried_out(plans)]

    def _records(self, scenarios: Sequence[Scenario]) -> list[RunRecord]:
        return self._carried_out([_plan(scenario, self._most_events) for scenario in scenarios])

    def _carried_out(self, plans: Sequence[Plan]) -> list[RunRecord]:
        return list(self._executor.run(self._source, [Task(number, plan) for number, plan in enumerate(plans)]))


_EMPTY = "{apiVersion: kemu.dev/v1, kind: Scenario, spec: {}}\n"


def _plan(scenario: Scenario, most_events: int) -> Plan:
    spec = scenario.resolved["spec"]
    return Plan({"spec": spec}, scenario.seed, holds=scenario.holds, most_events=most_events, may_be_impossible=True)


@contextlib.contextmanager
def runner(
    execute: Execute, jobs: int, executor: workers.Executor | None, original: Scenario, data_dir: str
) -> Iterator[Runner]:
    if executor is not None:
        yield _Executed(executor, jobs, original, data_dir)
    elif jobs > 1:
        with workers.Workers(jobs) as processes:
            yield _Executed(processes, jobs, original, data_dir)
    else:
        yield _OneByOne(execute)


class BudgetSpentError(Exception):
    """There are no executions left, or there is no time."""


Twin = Callable[[Candidate], Candidate | None]


@dataclass
class Trials:
    """Trials of one failure."""

    failure: Failure
    execute: Execute
    runner: Runner
    most_executions: int
    most_s: float
    twin: Twin | None = None
    """The run that has to go well beside the one that fails: the same without what makes it fail. See ``twins``."""
    counted_anew: Callable[[Candidate, Failure, Failure], Candidate | None] | None = None
    """A candidate that expects the number that its twin has; asked with how it fails, and how its twin does."""

    def __post_init__(self) -> None:
        self.executions = 0
        self._began = time.monotonic()
        self._known: dict[object, Failures] = {}
        self._counted: set[object] = set()
        self._logs: dict[object, list[Entry]] = {}
        """The last."""

    @property
    def spent_s(self) -> float:
        return time.monotonic() - self._began

    def first(self, candidates: Iterable[Candidate | None]) -> tuple[int, Candidate] | None:
        """The first that fails in the same way, and its place. Raises BudgetSpentError."""
        asked = list(candidates)
        for start in range(0, len(asked), self.runner.jobs):
            batch = asked[start : start + self.runner.jobs]
            self.run_ahead(batch)
            for index, candidate in enumerate(batch, start):
                found = None if candidate is None else self.failing(candidate)
                if found is not None:
                    return index, found
        return None

    def failing(self, candidate: Candidate) -> Candidate | None:
        """The candidate, if it fails in the same way; or with the number that its twin has in the place of the expected
        one, which is that of a larger scenario. None: neither fails. Raises BudgetSpentError."""
        if self.fails(candidate):
            return candidate
        here = self._same(self._failures(candidate))
        twin = self.twin(candidate) if here is not None and self.twin is not None else None
        there = self._same(self._failures(twin)) if twin is not None else None
        if here is None or there is None or self.counted_anew is None:
            return None
        other = self.counted_anew(candidate, here, there)
        return other if other is not None and self.fails(other) else None

    def again(self, candidate: Candidate, choosers: Sequence[ChooserSpec]) -> Candidate | None:
        """A candidate with the holds of the first run, with other delays, that fails in the same way; None: none does.
        Raises BudgetSpentError."""
        jobs = self.runner.jobs
        for start in range(0, len(choosers), jobs):
            for failures, holds in self.runner.search(candidate.scenario, choosers[start : start + jobs]):
                self._spend()
                found = candidate.with_holds(holds)
                if self.is_same(failures) and self.fails(found):
                    return found
        return None

    def fails(self, candidate: Candidate) -> bool:
        """In the same way, and its twin does not. Raises BudgetSpentError."""
        if not self.is_same(self._failures(candidate)):
            return False
        twin = self.twin(candidate) if self.twin is not None else None
        return twin is None or not self.is_same(self._failures(twin))

    def is_same(self, failures: Failures) -> bool:
        return self._same(failures) is not None

    def _same(self, failures: Failures) -> Failure | None:
        of_id = (found for found in failures if found.id == self.failure.id)
        return next((found for found in of_id if found.cause == self.failure.cause), None)

    def failure_of(self, candidate: Candidate, check: str) -> Failure | None:
        """Whether and how a candidate fails another check."""
        return next((found for found in self._failures(candidate) if found.id == check), None)

    def log(self, candidate: Candidate) -> list[Entry]:
        """The run log of a candidate."""
        if candidate.key not in self._logs:
            self._spend()
            self._logs = {candidate.key: self.execute(candidate.scenario, keep_log=True).events}
        return self._logs[candidate.key]

    def messages(self, candidate: Candidate, still: Chooser) -> list[tuple[Message, tuple[Label, ...]]]:
        """All of a candidate, under a chooser that delays none."""
        self._spend()
        return self.execute(candidate.scenario, chooser=still).messages

    def detail(self, candidate: Candidate) -> str:
        """What the failure says of a candidate that has run."""
        return next(found.detail for found in self._known[candidate.key] if found.id == self.failure.id)

    def run_ahead(self, candidates: Iterable[Candidate | None]) -> None:
        """The first that are not known yet, at the same time. They count once they are asked for."""
        jobs = self.runner.jobs
        if jobs == 1:
            return
        unknown = [one for one in candidates if one is not None and one.key not in self._known]
        fresh = {one.key: one for one in unknown[:jobs]}
        if len(fresh) > 1:
            self._known.update(zip(fresh, self.runner.run([one.scenario for one in fresh.values()]), strict=True))

    def _failures(self, candidate: Candidate) -> Failures:
        key = candidate.key
        if key not in self._counted:
            self._spend()
            self._counted.add(key)
        if key not in self._known:
            (self._known[key],) = self.runner.run([candidate.scenario])
        return self._known[key]

    def _spend(self) -> None:
        if self.executions >= self.most_executions or self.spent_s > self.most_s:
            raise BudgetSpentError
        self.executions += 1
