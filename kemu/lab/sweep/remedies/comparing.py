"""Remedies side by side: the same seeds for all, differences seed by seed with their intervals, a goal.

Each difference is paired: pods come at the same times as far as the remedy does not change that (docs/sweeps.md), so
what is left is what the remedy does. The interval is that of the mean difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.exploration.processes.tasks import Executor
from kemu.lab.scenario.loading import references
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.sweep.cells import FAILED, CellRecord, Metric
from kemu.lab.sweep.engine.sweeps import Sweep
from kemu.lab.sweep.experiments.experiments import Experiment
from kemu.lab.sweep.remedies.changes import Remedy
from kemu.lab.sweep.statistics import intervals, samples
from kemu.lab.sweep.statistics.intervals import Interval

WITH = "with"
AS_IT_IS = "as it is"
CONFIDENCE = 0.95
_METRICS = (
    "evictions", "oom_kills", "pods_failed", "preemptions", "admissions_rejected", "budget_violations",
    "evictions_beyond_budget", "waiting.p50_s", "waiting.p99_s", "waiting.max_s", "ready.missing_pod_s",
    "ready.fewest", "work.killed_pod_s", "overloaded_s", "eviction_returns", "preemption_returns",
    "condition_changes", "nodes_added", "utilisation.cpu", "utilisation.memory", "pods_succeeded", "pods_running",
)  # fmt: skip
"""Shown where they differ from nothing."""
_MORE_IS_BETTER = {"ready.fewest", "pods_succeeded", "pods_running"}
_NEITHER = {"utilisation.cpu", "utilisation.memory", "nodes_added"}
"""Good or bad, as one sees it."""
_GOAL = re.compile(r"\s*([A-Za-z_.0-9]+)(?:\(priority=(-?\d+)\))?\s*(<=|>=|<|>)\s*(-?[0-9.]+)\s*$")
_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


@dataclass(frozen=True)
class Goal:
    """What a remedy has to reach with every seed: ``evictions < 10``."""

    text: str
    metric: Metric
    sign: str
    bound: float

    def is_met(self, figure: samples.Figure) -> bool:
        worst = figure.most if self.sign.startswith("<") else figure.least
        return _HOLDS[self.sign](worst, self.bound)


@dataclass(frozen=True)
class Figure:
    """A metric of one variant."""

    mean: Interval | None
    difference: Interval | None
    """From the scenario as it is; None for that itself, and where nothing can be compared."""
    outcome: str
    """``better``, ``worse``, ``other`` (neither good nor bad), ``same``, ``unclear`` or empty."""


@dataclass(frozen=True)
class Row:
    """One variant."""

    name: str
    figures: Mapping[str, Figure]
    met: int
    """With how many seeds the goal is met."""
    failed: int
    """Runs without figures."""


@dataclass(frozen=True)
class Comparison:
    scenario: str
    seeds: Sequence[int]
    goal: Goal | None
    metrics: Sequence[str]
    rows: Sequence[Row]
    """The first is the scenario as it is."""

    @property
    def reached(self) -> Sequence[str]:
        """The remedies with which the goal is met with every seed."""
        return [row.name for row in self.rows if row.met == len(self.seeds)] if self.goal is not None else []

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "scenario": self.scenario,
            "seeds": list(self.seeds),
            "goal": None if self.goal is None else self.goal.text,
            "reached": list(self.reached),
            "variants": [
                {
                    "with": row.name,
                    "goal_met_with_seeds": row.met,
                    "failed": row.failed,
                    "metrics": {
                        name: {
                            "mean": None if figure.mean is None else figure.mean.data(),
                            "difference": None if figure.difference is None else figure.difference.data(),
                            "outcome": figure.outcome,
                        }
                        for name, figure in row.figures.items()
                    },
                }
                for row in self.rows
            ],
        }


def goal(text: str) -> Goal:
    """Raises KemuError."""
    match = _GOAL.match(text)
    if match is None:
        raise KemuError(f"--goal {text}: write it as METRIC < NUMBER, such as evictions < 10")
    name, of_priority, sign, bound = match.groups()
    priority = None if of_priority is None else int(of_priority)
    _, message, hint = references.metric_complaint(name, priority)
    if message:
        raise KemuError(f"--goal {text}: {message}{f' ({hint})' if hint else ''}")
    try:
        number = float(bound)
    except ValueError:
        raise KemuError(f"--goal {text}: {bound} is no number") from None
    return Goal(text.strip(), Metric(name, priority), sign, number)


def experiment(scenario: Scenario, remedies: Sequence[Remedy], seeds: int, data_dir: str = "") -> Experiment:
    """All remedies, and the scenario as it is, with as many seeds from its own on. Raises KemuError."""
    if scenario.variants:
        raise KemuError(f"{scenario.name} has a matrix: pin its paths with --set")
    names = [AS_IT_IS, *(remedy.name for remedy in remedies)]
    if len(set(names)) < len(names):
        raise KemuError("two remedies are called alike")
    return Experiment(
        name=f"{scenario.name}-compared",
        description="",
        file="",
        text="",
        scenario=scenario,
        source="",
        settings={},
        data_dir=data_dir,
        varied=(WITH,),
        variants=tuple({WITH: name} for name in names),
        overrides=({}, *(remedy.overrides for remedy in remedies)),
        seeds=tuple(range(scenario.seed, scenario.seed + seeds)),
        metrics=(),
        claims=(),
    )


def compare(
    made: Experiment,
    folder: Path,
    executor: Executor,
    wanted: Goal | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Comparison:
    """Run what is to be run. ``folder``: keeps the results, as that of a sweep."""
    with Sweep(made, folder) as sweep:
        for _ in sweep.go(executor):
            if progress is not None:
                progress(len(sweep.records), made.size)
        sweep.write()
        records = sweep.ordered()
    return judge(made, records, wanted)


def judge(made: Experiment, records: Sequence[CellRecord], wanted: Goal | None) -> Comparison:
    """What the records say."""
    names = [*_METRICS]
    if wanted is not None and wanted.metric.text not in names:
        names.insert(0, wanted.metric.text)
    metrics = {name: wanted.metric if wanted and wanted.metric.text == name else Metric(name) for name in names}
    found = {
        name: [samples.of(records, metric, variant) for variant in made.variants] for name, metric in metrics.items()
    }
    shown = [
        name
        for name, of_all in found.items()
        if (wanted is not None and name == wanted.metric.text)
        or any(figure.least or figure.most for sample in of_all for figure in sample.figures.values())
    ]
    rows = []
    for index, variant in enumerate(made.variants):
        figures = {name: _figure(name, found[name][index], found[name][0], is_base=not index) for name in shown}
        met = 0
        if wanted is not None:
            met = sum(wanted.is_met(one) for one in found[wanted.metric.text][index].figures.values())
        failed = sum(one.status == FAILED and one.cell.index == index for one in records)
        rows.append(Row(str(variant[WITH]), figures, met, failed))
    return Comparison(made.scenario.name, made.seeds, wanted, shown, rows)


def _figure(name: str, sample: samples.Sample, base: samples.Sample, *, is_base: bool) -> Figure:
    mean = samples.mean(sample, CONFIDENCE)
    seeds = [seed for seed in sample.figures if seed in base.figures]
    if is_base or not seeds:
        return Figure(mean, None, "")
    differences = [sample.figures[seed].least - base.figures[seed].least for seed in seeds]
    difference = intervals.of_mean(differences, CONFIDENCE)
    return Figure(mean, difference, _outcome(name, difference))


def _outcome(name: str, difference: Interval) -> str:
    low, high = difference.low, difference.high
    if low == high == 0 or (not difference.estimate and not math.isfinite(low)):
        return "same"
    if low <= 0 <= high:
        return "unclear"
    if name in _NEITHER:
        return "other"
    return "better" if (low > 0) == (name in _MORE_IS_BETTER) else "worse"
