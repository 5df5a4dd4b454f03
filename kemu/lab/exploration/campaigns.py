"""A campaign: many runs of one scenario, planned by a portfolio of strategies, to find the ones that fail.

    with workers.Workers(jobs=2) as executor:
        campaign = Campaign(scenario, [Seeds(1)], Settings(seed=1, runs=500), executor)
        for record in campaign.go():
            ...
        print(campaign.verdict(), campaign.data())

Runs come in generations, whose sizes are fixed beforehand: 32 runs, then twice as many each time, up to 512. The
strategies take turns, and see the records of all generations but the last one before theirs: that one may still be
running, so its end is not waited for. Hence run n is the same run whatever the number of workers, on one machine or
many, and in a campaign that was stopped and taken up again.

Neighbours: :mod:`plans` (what a strategy decides), :mod:`workers` (who runs it), :mod:`clusters` and :mod:`coverage`
(what was found), :mod:`files` (a campaign on disk).
"""

from __future__ import annotations

import dataclasses
import itertools
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from kemu.lab.exploration import canaries, files
from kemu.lab.exploration.clusters import Cluster, Clusters
from kemu.lab.exploration.coverage import Coverage
from kemu.lab.exploration.executions import FAILS, HOLDS, UNKNOWN, Failure
from kemu.lab.exploration.plans import Strategy
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.runs import Task
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.workers import Executor
from kemu.lab.scenario.expectations import CheckIs
from kemu.lab.scenario.scenarios import Scenario

GENERATION = 32
"""Runs of the first generation."""
LARGEST = 16
"""How many times as large the largest generation is."""


@dataclass(frozen=True)
class Settings:
    """How far to search. The first of the limits that is reached ends the campaign."""

    seed: int = 0
    """The seed of the campaign, from which its strategies draw."""
    runs: int = 0
    """0: no limit."""
    seconds: float = 0.0
    """Real time; 0: no limit."""
    seconds_if_found: float = 0.0
    """The same, once a run has failed; 0: ``seconds``."""
    _: KW_ONLY
    failures: int = 0
    """Stop when so many clusters of failures are known; 0: no limit."""
    generation: int = GENERATION
    """Runs of the first generation."""
    canary: bool = True
    checks: tuple[str, ...] = ()
    """Only these checks and expectations count; none: all."""
    out: Path | None = None
    """Folder of the campaign file. A campaign that stands there goes on."""


@dataclass(frozen=True)
class Goal:
    """Something that has to happen in some run, or the campaign has shown nothing."""

    what: str
    """``check``, ``expectation`` or ``fault``."""
    id: str


@dataclass
class _Tally:
    """Tally of one strategy."""

    runs: int = 0
    found: int = 0
    """Runs that fail."""
    firsts: list[int] = dataclasses.field(default_factory=list)
    """After how many of the strategy's runs each cluster showed for the first time."""


class Campaign:
    """One search."""

    def __init__(
        self,
        scenario: Scenario,
        strategies: Sequence[Strategy],
        settings: Settings,
        executor: Executor,
        data_dir: Path | None = None,
    ) -> None:
        """Raises KemuError for a scenario with a matrix, and for a folder that holds another campaign."""
        names = [strategy.name for strategy in strategies]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"strategies need names of their own: {names}")
        if not (settings.runs or settings.seconds or settings.failures):
            raise ValueError("a campaign needs a limit: runs, seconds or failures")
        self.scenario = scenario
        self.strategies = tuple(strategies)
        self.settings = settings
        self.source = Source.of(scenario, data_dir)
        self._executor = executor
        self.records: list[RunRecord] = []
        """Records of all runs, in their order."""
        self.clusters = Clusters()
        self.coverage = Coverage()
        self.canary: bool | None = None
        """Whether it was found; None: it was not looked for."""
        self.seconds = 0.0
        """Real time, this time and before."""
        self._tallies = {name: _Tally() for name in names}
        self._known: dict[str, set[str]] = {name: set() for name in names}
        self._goals = [
            goal
            for goal in _goals(scenario)
            if goal.what == "fault" or not settings.checks or goal.id in settings.checks
        ]
        self._file = None if settings.out is None else files.CampaignFile(settings.out, self._header(), self.source)

    def _header(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.name,
            "seed": self.settings.seed,
            "generation": self.settings.generation,
            "strategies": [strategy.name for strategy in self.strategies],
            "checks": list(self.settings.checks),
        }

    def go(self) -> Iterator[RunRecord]:
        """Carry out all runs; each record when it and those before it are known.

        A caller that stops asking has stopped the campaign; what it found until then stands.
        """
        if self._is_over():
            return
        begun, before = time.monotonic(), self.seconds
        if self.settings.canary and self.canary is None:
            self.canary = canaries.is_found(self._executor)
        try:
            for record in self._all():
                self._take(record)
                self.seconds = before + time.monotonic() - begun
                yield record
                if self._is_over():
                    return
        finally:
            self.seconds = before + time.monotonic() - begun
            if self._file is not None:
                self._file.write()

    def _all(self) -> Iterator[RunRecord]:
        """What the campaign file holds already, then the rest."""
        if self._file is not None:
            while (known := self._file.records.get(len(self.records))) is not None:
                yield known
        for record in self._executor.run(self.source, self._tasks(len(self.records))):
            made = dataclasses.replace(self._counted(record), new=self.coverage.news(record.orders), orders=())
            if self._file is not None:
                self._file.append(made)
            yield made

    def _counted(self, record: RunRecord) -> RunRecord:
        """The record without failures that do not count."""
        failures = tuple(failure for failure in record.failures if counts(failure, self.settings.checks))
        if len(failures) == len(record.failures):
            return record
        return dataclasses.replace(record, failures=failures, verdict=record.verdict if failures else HOLDS)

    def _tasks(self, number: int) -> Iterator[Task | None]:
        """From that number on; None while the records that the next one depends on are not known."""
        begins = list(itertools.islice(_begins(self.settings.generation), 2))
        later = itertools.islice(_begins(self.settings.generation), 2, None)
        feedback: _Feedback | None = None
        while not self.settings.runs or number < self.settings.runs:
            while begins[-1] <= number:
                begins.append(next(later))
                feedback = None
            generation = len(begins) - 2
            known = begins[generation - 1] if generation else 0
            while len(self.records) < known:
                yield None
            feedback = feedback or _Feedback(generation, self.records[:known])
            turn, which = divmod(number, len(self.strategies))
            strategy = self.strategies[which]
            yield Task(number, strategy.plan(turn, feedback), strategy.name)
            number += 1

    def _take(self, record: RunRecord) -> None:
        self.records.append(record)
        tally = self._tallies[record.strategy]
        tally.runs += 1
        tally.found += record.is_found
        for failure in record.failures:
            key = f"{failure.id}\0{failure.cause}"
            if key not in self._known[record.strategy]:
                self._known[record.strategy].add(key)
                tally.firsts.append(tally.runs)
        self.clusters.add(record)
        if record.signature:
            self.coverage.add(
                record.new, record.signature, record.checks, record.expectations, record.faults, record.steps
            )

    def _is_over(self) -> bool:
        settings = self.settings
        seconds = (settings.seconds_if_found if len(self.clusters) else 0.0) or settings.seconds
        return bool(
            (settings.runs and len(self.records) >= settings.runs)
            or (seconds and self.seconds >= seconds)
            or (settings.failures and len(self.clusters) >= settings.failures)
        )

    # What came of it

    def unseen(self) -> list[Goal]:
        """The goals that no run has reached."""
        seen = {"check": self.coverage.checks, "expectation": self.coverage.expectations, "fault": self.coverage.faults}
        return [goal for goal in self._goals if not _is_seen(goal, seen[goal.what])]

    def verdict(self) -> str:
        """``fails`` where a run failed; ``unknown`` where the canary lives, a goal was not reached, or nothing ran;
        else ``holds``."""
        if len(self.clusters):
            return FAILS
        return UNKNOWN if self.canary is False or self.unseen() or not self.records else HOLDS

    def strategy_data(self) -> dict[str, dict[str, Any]]:
        """By name: its runs, those that failed, and after how many a cluster showed for the first time (median)."""
        return {
            name: {
                "runs": tally.runs,
                "found": tally.found,
                "median_runs_to_first": median(tally.firsts) if tally.firsts else None,
            }
            for name, tally in self._tallies.items()
        }

    def data(self, command: Callable[[Cluster], str] | None = None) -> dict[str, Any]:
        """The result as JSON has it; ``command`` reproduces the first run of a cluster (default: where seed and
        settings do it alone, ``kemu run``)."""
        command = command or self.command
        runs_per_s = round(len(self.records) / self.seconds, 1) if self.seconds else 0.0
        return {
            "scenario": self.scenario.name,
            "seed": self.settings.seed,
            "runs": len(self.records),
            "runs_per_s": runs_per_s,
            "strategies": self.strategy_data(),
            "coverage": {
                "timelines": len(self.coverage.timelines),
                "orders": len(self.coverage.orders),
                "checks": dict(self.coverage.checks),
                "faults": dict(self.coverage.faults),
                "steps": dict(self.coverage.steps),
                "unseen": [f"{goal.what} {goal.id}" for goal in self.unseen()],
            },
            "unfinished": {
                verdict: sum(record.verdict == verdict for record in self.records) for verdict in ("slow", "died")
            },
            "canary": self.canary,
            "failures": [
                {
                    "id": cluster.check,
                    "cluster": cluster.id,
                    "detail": cluster.failure.detail,
                    "cause": cluster.cause,
                    "runs": len(cluster.runs),
                    "first_run": cluster.first.number,
                    "seed": self.seed_of(cluster.first),
                    "strategy": cluster.first.strategy,
                    "strategies": dict(cluster.strategies),
                    "holds": len(cluster.first.holds),
                    "command": command(cluster),
                }
                for cluster in self.clusters
            ],
            "verdict": self.verdict(),
        }

    def seed_of(self, record: RunRecord) -> int:
        return self.scenario.seed if record.plan.seed is None else record.plan.seed

    def command(self, cluster: Cluster) -> str:
        """``kemu run`` with the settings and the seed of the first run. Holds need a file: see :mod:`files`."""
        record = cluster.first
        words = ["kemu", "run", self.scenario.file]
        for path, value in record.plan.overrides.items():
            words += ["--set", f"{path}={files.text_of(value)}"]
        words += ["--seed", str(self.seed_of(record))]
        return shlex.join(words)


def counts(failure: Failure, checks: Sequence[str]) -> bool:
    """Whether it is one of those that are looked for; none: all are."""
    return not checks or failure.id in checks


@dataclass(frozen=True, slots=True)
class _Feedback:
    """Implements :class:`~kemu.lab.exploration.plans.Feedback`."""

    generation: int
    records: Sequence[RunRecord]


def _begins(first: int) -> Iterator[int]:
    """The number of the first run of each generation."""
    begin, size = 0, first
    while True:
        yield begin
        begin += size
        size = min(2 * size, LARGEST * first)


def _goals(scenario: Scenario) -> list[Goal]:
    """The expectations must be judged, the checks that they name exercised, and the faults strike."""
    goals = [Goal("fault", fault.id) for fault in scenario.chaos]
    for expectation in scenario.expectations:
        if isinstance(expectation.subject, CheckIs):
            goals.append(Goal("check", expectation.subject.check))
        else:
            goals.append(Goal("expectation", expectation.id))
    return list(dict.fromkeys(goals))


def _is_seen(goal: Goal, counts: Mapping[str, int]) -> bool:
    """One that recurs has a number behind its id each time."""
    if goal.id in counts:
        return True
    prefix = f"{goal.id}-"
    return goal.what == "fault" and any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in counts)
