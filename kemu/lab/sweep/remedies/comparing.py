"""Remedies side by side: the same seeds for all, differences seed by seed with their intervals, a goal.

Each difference is paired: pods come at the same times as far as the remedy does not change that (docs/sweeps.md), so
what is left is what the remedy does. The interval is that of the mean difference.
"""

from __future__ import annotations

import json
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
from kemu.runtime.words import counted

FILE = "comparison.json"
"""What a comparison comes to, in the folder of its results."""
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
_MORE_IS_BETTER = {"ready.fewest", "pods_succeeded"}
_NEITHER = {"utilisation.cpu", "utilisation.memory", "nodes_added", "pods_running"}
"""Good or bad, as one sees it: pods that are evicted start often."""
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
    changes: Sequence[str] = ()
    """What it changes, one thing each."""

    def count(self, outcome: str) -> int:
        """How many figures are ``better``, ``worse`` …"""
        return sum(figure.outcome == outcome for figure in self.figures.values())


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

    @property
    def best(self) -> tuple[str, str]:
        """The remedy to begin with, and why; two empty texts where none helps.

        First counts with how many seeds it meets the goal, then how little it makes worse, then how much it makes
        better, then how little it changes.
        """
        helps = [row for row in self.rows[1:] if row.count("better") and not row.failed]
        if self.goal is not None:
            # Of those that meet a goal that is met anyway, those that make something better.
            was = self.rows[0].met
            helps = [row for row in self.rows[1:] if row.met > was or (row.met == was > 0 and row in helps)]
        else:
            helps = [row for row in helps if row.count("better") > row.count("worse")]
        if not helps:
            return "", ""
        best = min(helps, key=lambda row: (-row.met, row.count("worse"), -row.count("better"), len(row.changes)))
        said = []
        if self.goal is not None:
            said.append(
                f"meets the goal with {'every seed' if best.met == len(self.seeds) else counted(best.met, 'seed')}"
            )
        said.append(f"{counted(best.count('better'), 'figure')} better")
        worse = best.count("worse")
        said.append(f"{counted(worse, 'figure')} worse" if worse else "none worse")
        return best.name, ", ".join(said)

    def data(self) -> dict[str, Any]:
        """For JSON."""
        best, why = self.best
        return {
            "scenario": self.scenario,
            "best": best,
            "why": why,
            "seeds": list(self.seeds),
            "goal": None if self.goal is None else self.goal.text,
            "reached": list(self.reached),
            "variants": [
                {
                    "with": row.name,
                    "changes": list(row.changes),
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
    remedies: Sequence[Remedy] = (),
    *,
    force: bool = False,
) -> Comparison:
    """Run what is to be run. ``folder``: keeps the results, as that of a sweep, and what they come to; ``force``:
    replace what it holds. ``remedies``: those of the experiment, for what they change."""
    with Sweep(made, folder, force=force) as sweep:
        for _ in sweep.go(executor):
            if progress is not None:
                progress(len(sweep.records), made.size)
        sweep.write()
        records = sweep.ordered()
    found = judge(made, records, wanted, remedies)
    (folder / FILE).write_text(json.dumps(found.data(), indent=1) + "\n", encoding="utf-8")
    return found


def judge(
    made: Experiment, records: Sequence[CellRecord], wanted: Goal | None, remedies: Sequence[Remedy] = ()
) -> Comparison:
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
    changes = {remedy.name: remedy.details for remedy in remedies}
    for index, variant in enumerate(made.variants):
        figures = {name: _figure(name, found[name][index], found[name][0], is_base=not index) for name in shown}
        met = 0
        if wanted is not None:
            met = sum(wanted.is_met(one) for one in found[wanted.metric.text][index].figures.values())
        failed = sum(one.status == FAILED and one.cell.index == index for one in records)
        name = str(variant[WITH])
        rows.append(Row(name, figures, met, failed, changes.get(name, ())))
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
