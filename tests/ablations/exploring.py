"""Exploration finds the loss of a safeguard, and shrinking makes a minimal scenario of it.

Each trial is a campaign of its own seed, with all strategies in turn, over a shipped scenario at the times it states.
What counts is the first run that breaks what the safeguard protects, and does not with the safeguard.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.exploration import campaigns, executions, workers
from kemu.lab.exploration.executions import Failure
from kemu.lab.exploration.plans import Plan
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.shrinking import shrinker
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import registry
from kemu.lab.scenario import catalog
from kemu.lab.scenario.expectations import CheckIs
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import explanations
from tests.ablations.candidates import CANDIDATES

MINIMAL = Path(__file__).parent / "minimal"
"""The shrunk scenarios, by safeguard."""
TRIALS = 5
MOST_RUNS = 200
"""Of one campaign."""
MOST_SHRINKING_S = 900.0
"""Real time, on a machine that others use too; the executions are what is limited."""


@dataclass(frozen=True)
class Loss:
    """The loss of one safeguard in one scenario."""

    name: str
    scenario: Scenario
    lacking: Source
    sound: Source
    ids: frozenset[str]
    """What must break: the check or expectation, or an expectation that the check holds."""

    @classmethod
    def of(cls, name: str) -> Loss:
        candidate = CANDIDATES[name]
        path = catalog.find(candidate.runs[0].split()[0])
        scenario, sound = loader.load(path, None, {"ablate": [name]}), loader.load(path)
        expected = {
            one.id
            for one in scenario.expectations
            if isinstance(one.subject, CheckIs) and one.subject.check == candidate.breaks
        }
        return cls(name, scenario, Source.of(scenario), Source.of(sound), frozenset({candidate.breaks, *expected}))

    def first(self, seed: int) -> tuple[RunRecord, Failure] | None:
        """The first run of a campaign that shows the loss."""
        settings = campaigns.Settings(seed=seed, runs=MOST_RUNS, canary=False)
        strategies = registry.make((), self.lacking, seed)
        for record in campaigns.Campaign(self.scenario, strategies, settings, workers.Inline()).go():
            failure = self._in(record.failures)
            if failure is not None and not self._in(executions.execute(self.sound.scenario(_again(record))).failures):
                return record, failure
        return None

    def _in(self, failures: tuple[Failure, ...]) -> Failure | None:
        return next((failure for failure in failures if failure.id in self.ids), None)

    def shrunk(self, record: RunRecord, failure: Failure) -> shrinker.Shrunk:
        scenario = self.lacking.scenario(_again(record))
        return shrinker.shrink(scenario, failure, most_s=MOST_SHRINKING_S)


def _again(record: RunRecord) -> Plan:
    """The same run without its chooser."""
    return Plan(record.plan.overrides, record.plan.seed, None, record.holds)


def explore(name: str) -> Mapping[str, Any] | None:
    """What exploration makes of the loss of a safeguard; writes the minimal scenario. None: it is not found."""
    loss = Loss.of(name)
    firsts = [loss.first(seed) for seed in range(1, TRIALS + 1)]
    found = next((first for first in firsts if first is not None), None)
    if found is None:
        return None
    runs = [MOST_RUNS if first is None else first[0].number + 1 for first in firsts]
    shrunk = loss.shrunk(*found)
    MINIMAL.mkdir(exist_ok=True)
    (MINIMAL / f"{name}.yaml").write_text(shrunk.yaml)
    return {
        "scenario": loss.scenario.name,
        "runs": runs,
        "median_runs": statistics.median_low(runs),
        "strategy": found[0].strategy,
        "shrunk": shrunk.counts(),
        "why_not_minimal": shrunk.why_not,
        "breaks": shrunk.failure.id,
        "story": story(shrunk.scenario, shrunk.failure.id),
    }


def story(scenario: Scenario, failure: str) -> list[str]:
    """Why it fails, without the sentence that names the safeguard."""
    try:
        chain = explanations.explain(scenario, failure).chain
    except KemuError:
        return []
    return [one.text for one in chain.sentences if not one.text.startswith("The safeguard ")]
