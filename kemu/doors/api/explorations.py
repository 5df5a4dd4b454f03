"""Search for the run of a scenario that fails.

    exploration = kemu.explore("races/two-schedulers-one-node", runs=500)
    for failure in exploration.failures:
        print(failure.check, failure.shrink().explain())

Role: ``kemu explore`` for programs, on :mod:`kemu.lab.exploration.campaigns`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kemu.doors.api import reports, runs
from kemu.lab.exploration import campaigns, executions, workers
from kemu.lab.exploration.clusters import Cluster
from kemu.lab.exploration.executions import Failure
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.shrinking import shrinker
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import registry
from kemu.lab.scenario import forms
from kemu.lab.scenario.scenarios import Scenario

DEFAULT_RUNS = 1000


def explore(
    scenario: forms.Source,
    *,
    runs: int | None = None,
    time: float | None = None,
    strategy: str | Iterable[str] = (),
    seed: int = 0,
    jobs: int = 1,
    failures: int = 0,
    settings: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Exploration:
    """Run a scenario again and again in virtual time, each run different, and collect the ways in which it fails.

    ``scenario``, ``settings``, ``data``: as for :func:`kemu.run`; a matrix has to be pinned. ``runs``: how many; 1,000
    if neither this nor ``time`` (real seconds) says. ``strategy``: one or several by name (``observe-late``,
    ``uniform``, ``pct``, ``pos``, ``walk``, ``crash``, ``feedback``, ``seeds``); none: all, in turn. ``seed``: of the
    search; equal searches find the same, whatever the number of ``jobs``: processes; with 1 all happens here.
    ``failures``: stop when so many ways of failing are known. ``out``: a folder in which the search can be taken up
    again. ``progress`` is called with the number of runs so far.

    Raises ScenarioError, and KemuError for a name that no strategy has.
    """
    loaded = forms.load(scenario, settings, data=data)
    folder = None if data is None else Path(data)
    names = [strategy] if isinstance(strategy, str) else list(strategy)
    strategies = registry.make(names, Source.of(loaded, folder), seed)
    limit = DEFAULT_RUNS if runs is None and time is None else runs or 0
    wanted = campaigns.Settings(seed, limit, time or 0.0, failures=failures, out=None if out is None else Path(out))
    executor: workers.Executor = workers.Workers(jobs, copies=True) if jobs > 1 else workers.Inline()
    try:
        campaign = campaigns.Campaign(loaded, strategies, wanted, executor, folder)
        for record in campaign.go():
            if progress is not None:
                progress(record.number + 1)
    finally:
        executor.close()
    return Exploration(campaign)


class Exploration:
    """A search that is over."""

    def __init__(self, campaign: campaigns.Campaign) -> None:
        self._campaign = campaign
        self.scenario = campaign.scenario

    @property
    def verdict(self) -> str:
        """``fails`` if any run failed; ``unknown`` if something that had to happen never did; else ``holds``."""
        return self._campaign.verdict()

    @property
    def holds(self) -> bool:
        return self.verdict == executions.HOLDS

    @property
    def runs(self) -> int:
        """How many there were."""
        return len(self._campaign.records)

    @cached_property
    def failures(self) -> tuple[FailureFound, ...]:
        """One for each way of failing: for each check and cause, the first run that failed so."""
        return tuple(FailureFound(self._campaign, cluster) for cluster in self._campaign.clusters)

    @property
    def strategies(self) -> Mapping[str, Mapping[str, Any]]:
        """By name: ``runs``, ``found`` (runs that failed), ``median_runs_to_first``."""
        return self._campaign.strategy_data()

    @property
    def unseen(self) -> list[str]:
        """What had to happen in some run, and did not: ``expectation it-runs``, ``fault crash-0``."""
        return [f"{goal.what} {goal.id}" for goal in self._campaign.unseen()]

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """Records of all runs, in their order; not a stable interface."""
        return tuple(self._campaign.records)

    @property
    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return self._campaign.data()

    def check(self) -> None:
        """Raises :class:`kemu.RunFailed` for the first failure, or where something that had to happen never did."""
        for failure in self.failures:
            failure.run().check()
        if not self.holds:
            what = ", ".join(self.unseen) or "the planted bug was not found"
            raise reports.RunFailed(f"{self.scenario.name} {self.verdict} after {self.runs} runs: {what}")

    def __repr__(self) -> str:
        found = f"{self.verdict}, {self.runs} runs, {len(self.failures)} failures"
        return f"<kemu.Exploration of {self.scenario.name}: {found}>"


@dataclass(frozen=True)
class Shrunk:
    """The least that fails as a run that was found."""

    yaml: str
    """A scenario that stands alone."""
    run: runs.Run
    pods: int
    nodes: int
    schedulers: int
    faults: int
    events: int
    """Events of the scenario, without those that create pods."""
    messages: int
    """That have to be late."""
    executions: int
    """How many runs that took."""
    minimal: bool
    """Without any single part it holds, or fails otherwise."""

    def explain(self) -> str:
        """Why it fails, in sentences and a picture, beside a run that passes."""
        return self.run.explain()


class FailureFound:
    """A way of failing: a check or an expectation, and a cause."""

    def __init__(self, campaign: campaigns.Campaign, cluster: Cluster) -> None:
        self._source = campaign.source
        self._record = cluster.first
        self._failure = cluster.failure
        self.check: str = cluster.check
        """Its id, or that of the expectation; ``the-run-broke`` where the run did not come to its end."""
        self.detail: str = cluster.failure.detail
        """What was found in the first such run."""
        self.cause: str = cluster.cause
        """The same without names, numbers and times."""
        self.runs: tuple[int, ...] = tuple(cluster.runs)
        """Which runs failed so, from 0."""
        self.strategy: str = cluster.first.strategy
        self.seed: int = campaign.seed_of(cluster.first)

    @cached_property
    def scenario(self) -> Scenario:
        """Stands alone: with its seed, and what has to be late (``spec.holds``)."""
        plan = dataclasses.replace(self._record.plan, chooser=None, holds=self._record.holds)
        return forms.with_holds(self._source.scenario(plan), self._record.holds)

    @property
    def yaml(self) -> str:
        """YAML of :attr:`scenario`: ``kemu run`` fails in the same way."""
        return self.scenario.to_yaml()

    def run(self) -> runs.Run:
        """The first run that failed so, once more. Raises what it raised where it broke."""
        return runs.in_memory(self.scenario)

    def shrink(self) -> Shrunk:
        """The least that fails so. Takes up to 200 runs."""
        found = shrinker.shrink(self.scenario, Failure(self.check, self.detail, self.cause))
        return Shrunk(
            found.yaml,
            runs.in_memory(found.scenario),
            found.pods,
            found.nodes,
            found.schedulers,
            found.faults,
            found.events,
            found.holds,
            found.executions,
            found.minimal,
        )

    def __repr__(self) -> str:
        return f"<{self.check}: {self.detail} ({len(self.runs)} runs, {self.strategy}, seed {self.seed})>"


__all__ = ["Exploration", "FailureFound", "Shrunk", "explore"]
