"""Run an experiment: variants of a scenario with many seeds.

    sweep = kemu.experiment("experiments/queue-under-load.yaml", jobs=2)
    for claim in sweep.claims:
        print(claim.id, claim.outcome, claim.detail)
    sweep.sql("SELECT variant, avg(preemptions) FROM runs GROUP BY variant")

Role: ``kemu sweep`` for programs, on :mod:`kemu.lab.sweep.engine`.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from kemu.doors.api import reports
from kemu.emulated.objects.plain import Json
from kemu.lab.exploration import workers
from kemu.lab.scenario import forms
from kemu.lab.sweep.engine import summaries, sweeps
from kemu.lab.sweep.experiments import loader
from kemu.lab.sweep.experiments.experiments import Experiment
from kemu.lab.sweep.remedies import changes, comparing


def experiment(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Sweep:
    """Run every variant of an experiment with every seed in virtual time, and judge its claims.

    ``source``: a path, YAML text (with a line break), or a document as a dictionary. ``jobs``: processes; the results
    do not depend on it; with 1 all happens here. ``out``: a folder that keeps the results, and in which a sweep that
    was stopped goes on. ``data``: the folder of a trace's files. ``progress`` is called with the number of cells that
    are over, and of all.

    Raises ScenarioError with every mistake, and KemuError for a folder that holds something else.
    """
    loaded = _load(source, None if data is None else Path(data))
    kept = tempfile.TemporaryDirectory(prefix="kemu-sweep-") if out is None else None
    folder = Path(kept.name if kept is not None else os.fspath(out or ""))
    limit_s = sweeps.limit_s(loaded)
    executor: workers.Executor = workers.Workers(jobs, limit_s=limit_s) if jobs > 1 else workers.Inline()
    try:
        with sweeps.Sweep(loaded, folder) as sweep:
            for _ in sweep.go(executor):
                if progress is not None:
                    progress(len(sweep.records), loaded.size)
            return Sweep(summaries.of(sweep, sweep.write()), kept)
    finally:
        executor.close()


Given: TypeAlias = "str | os.PathLike[str] | Json"
"""A remedy: a path, or what such a file holds."""


def compare(
    scenario: forms.Source,
    remedies: Mapping[str, Given],
    *,
    seeds: int = 10,
    seed: int | None = None,
    goal: str = "",
    jobs: int = 1,
    settings: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Run a scenario as it is and with each remedy, with the same seeds.

    ``scenario``: as in :func:`kemu.run`. ``remedies``: name → a path, or what such a file holds as a dictionary (or
    a list of them): Kubernetes objects, which are added or change those of the scenario, or ``{"spec": …}`` with parts
    of a scenario. ``seed``: the first one; None: the scenario's. ``goal``: what has to hold with every seed, such as
    ``evictions < 10``. ``out``: a folder that keeps the results.

    Raises ScenarioError with every mistake, and KemuError for a goal that is none.
    """
    wanted = comparing.goal(goal) if goal else None
    loaded = forms.load(scenario, {**({} if seed is None else {"seed": seed}), **(settings or {})})
    spec = yaml.safe_load(loaded.to_yaml())["spec"]
    read = [_remedy(name, given, spec) for name, given in remedies.items()]
    made = comparing.experiment(loaded, read, seeds)
    executor: workers.Executor = workers.Workers(jobs, limit_s=sweeps.limit_s(made)) if jobs > 1 else workers.Inline()
    with tempfile.TemporaryDirectory(prefix="kemu-compare-") as temporary:
        try:
            folder = Path(temporary if out is None else os.fspath(out))
            return Comparison(comparing.compare(made, folder, executor, wanted, remedies=read))
        finally:
            executor.close()


def _remedy(name: str, given: Given, spec: Mapping[str, Any]) -> changes.Remedy:
    if isinstance(given, str | os.PathLike):
        return dataclasses.replace(changes.read(os.fspath(given), spec), name=name)
    return changes.of_data(name, given, spec)


class Comparison:
    """A scenario beside the same with remedies."""

    def __init__(self, found: comparing.Comparison) -> None:
        self.data = found.data()
        """As ``kemu compare --json`` prints it."""
        self._found = found

    @property
    def reached(self) -> tuple[str, ...]:
        """The remedies (and ``as it is``) with which the goal is met with every seed."""
        return tuple(self._found.reached)

    def outcome(self, remedy: str, metric: str) -> str:
        """``better``, ``worse``, ``other``, ``same`` or ``unclear``, beside the scenario as it is. Raises KeyError."""
        rows = {row.name: row for row in self._found.rows}
        return rows[remedy].figures[metric].outcome

    def check(self) -> None:
        """Raises :class:`kemu.RunFailed` unless a remedy reaches the goal."""
        goal = self._found.goal
        if goal is not None and not self.reached:
            told = [f"{row.name}: with {row.met} of {len(self._found.seeds)} seeds" for row in self._found.rows]
            raise reports.RunFailed("\n".join([f"{goal.text}: reached by none", *told]))


def _load(source: str | os.PathLike[str] | Mapping[str, Any], data: Path | None) -> Experiment:
    if isinstance(source, Mapping):
        return loader.loads(yaml.safe_dump(dict(source), sort_keys=False), data_dir=data)
    if isinstance(source, str) and "\n" in source:
        return loader.loads(source, data_dir=data)
    return loader.load(os.fspath(source), data)


@dataclass(frozen=True)
class Claim:
    """A claim, and what the results say of it."""

    id: str
    says: str
    outcome: str
    """``holds``, ``fails`` or ``undecided``."""
    detail: str
    more_seeds: int | None
    """More seeds of an undecided claim: about how many more would decide; None: seeds do not help."""


class Sweep:
    """An experiment that was run."""

    def __init__(self, found: dict[str, Any], kept: object = None) -> None:
        """``kept``: a folder that goes with this object."""
        self.data = found
        """As ``kemu sweep --json`` prints it."""
        self._kept = kept

    @property
    def verdict(self) -> str:
        """``holds`` if all claims do, ``fails`` if one does, else ``unknown``."""
        return str(self.data["verdict"])

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"

    @property
    def claims(self) -> tuple[Claim, ...]:
        return tuple(Claim(**{name: each[name] for name in Claim.__annotations__}) for each in self.data["claims"])

    @property
    def variants(self) -> tuple[Mapping[str, Any], ...]:
        """Each with ``variant`` (path → value), ``name``, how its cells ended, and ``metrics``."""
        return tuple(self.data["variants"])

    @property
    def file(self) -> Path:
        """The Parquet file, for polars, pandas and DuckDB; without ``out`` it is gone with this object."""
        return Path(self.data["results"])

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Rows of one SELECT over the tables that docs/results.md lists."""
        from kemu.lab.sweep.results import folders, queries

        answer = queries.Database(folders.of(self.file)).ask(query)
        return [dict(zip(answer.names, row, strict=True)) for row in answer.rows]

    def check(self) -> None:
        """Raises :class:`kemu.RunFailed` unless all claims hold."""
        if not self.holds:
            told = [f"{each.id} {each.outcome}: {each.detail}" for each in self.claims if each.outcome != "holds"]
            raise reports.RunFailed("\n".join([f"{self.data['experiment']} {self.verdict}", *told]))

    def __repr__(self) -> str:
        cells = self.data["cells"]
        return (
            f"<kemu.Sweep of {self.data['experiment']}: {self.verdict}, {cells['done']} of {cells['total']} cells done>"
        )


__all__ = ["Claim", "Comparison", "Sweep", "compare", "experiment"]
