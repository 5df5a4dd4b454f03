"""Trials: does a candidate fail in the same way?

Every candidate runs once at most, within a budget of executions and of time. Candidates that are independent of each
other run at the same time, and the first of them, in order, that fails in the same way is taken: with any number of
jobs the result is that of one. So is the number of executions, which counts those that one job would have needed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kemu.errors import KemuError
from kemu.exploration import workers
from kemu.exploration.executions import Failure
from kemu.exploration.meters import Meter, TooLongError
from kemu.exploration.plans import Plan
from kemu.exploration.results import RunRecord
from kemu.exploration.runs import Task
from kemu.exploration.shrinking.candidates import Candidate
from kemu.exploration.sources import Source
from kemu.runlog.frames import Event
from kemu.runtime.env import LogSink
from kemu.runtime.holds import Label
from kemu.runtime.sim.steering.choosers import Chooser
from kemu.runtime.sim.steering.messages import Message
from kemu.scenario.scenarios import Scenario

Failures = tuple[Failure, ...]


class Seen(Protocol):
    """An execution, as far as trials look at it."""

    @property
    def failures(self) -> Failures: ...

    @property
    def events(self) -> list[Event]: ...

    @property
    def messages(self) -> list[tuple[Message, tuple[Label, ...]]]: ...


class Execute(Protocol):
    """:func:`kemu.exploration.executions.execute`, or what stands in for it."""

    def __call__(
        self,
        scenario: Scenario,
        *,
        keep_log: bool = False,
        chooser: Chooser | None = None,
        watcher: LogSink | None = None,
    ) -> Seen: ...


class Runner(Protocol):
    """Runs scenarios, as many at a time as it has jobs."""

    jobs: int

    def run(self, scenarios: Sequence[Scenario]) -> list[Failures]:
        """How they fail, in their order; what cannot run at all does not fail."""
        ...


class _OneByOne:
    """In this process."""

    jobs = 1

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._most_events = 0

    def run(self, scenarios: Sequence[Scenario]) -> list[Failures]:
        return [self._run(scenario) for scenario in scenarios]

    def _run(self, scenario: Scenario) -> Failures:
        meter = Meter(self._most_events)
        try:
            failures = self._execute(scenario, watcher=meter).failures
        except (KemuError, TooLongError):
            return ()
        if meter.is_over:
            return ()
        self._most_events = self._most_events or _most(meter.events)
        return failures


_LONGER, _MORE_EVENTS = 3, 20_000
"""A smaller scenario may have so many times the events of the first, and so many more."""


def _most(events: int) -> int:
    return _LONGER * events + _MORE_EVENTS


class _Executed:
    """By whoever carries out the runs of campaigns: worker processes, or a cluster."""

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

    def _records(self, scenarios: Sequence[Scenario]) -> list[RunRecord]:
        tasks = [Task(number, _plan(scenario, self._most_events)) for number, scenario in enumerate(scenarios)]
        return list(self._executor.run(self._source, tasks))


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
    """Of one failure."""

    failure: Failure
    execute: Execute
    runner: Runner
    most_executions: int
    most_s: float
    twin: Twin | None = None
    """The run that has to go well beside the one that fails: the same without what makes it fail. See ``twins``."""

    def __post_init__(self) -> None:
        self.executions = 0
        self._began = time.monotonic()
        self._known: dict[object, Failures] = {}
        self._counted: set[object] = set()
        self._logs: dict[object, list[Event]] = {}
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
                if candidate is not None and self.fails(candidate):
                    return index, candidate
        return None

    def fails(self, candidate: Candidate) -> bool:
        """In the same way, and its twin does not. Raises BudgetSpentError."""
        if not self.is_same(self._failures(candidate)):
            return False
        twin = self.twin(candidate) if self.twin is not None else None
        return twin is None or not self.is_same(self._failures(twin))

    def is_same(self, failures: Failures) -> bool:
        return any(found.id == self.failure.id and found.cause == self.failure.cause for found in failures)

    def failure_of(self, candidate: Candidate, check: str) -> Failure | None:
        """Whether and how a candidate fails another check."""
        return next((found for found in self._failures(candidate) if found.id == check), None)

    def log(self, candidate: Candidate) -> list[Event]:
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
        """The first that are not known yet, at the same time. They count once somebody asks."""
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
