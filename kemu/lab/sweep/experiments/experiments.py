"""An experiment as data: a scenario, what varies in it, and with which seeds each variant runs.

Every variant runs with the same seeds. Random streams are named and seeded by seed and name, so in two variants with
one seed the same pods come at the same times as far as the variants do not change that themselves: common random
numbers. Differences between variants are therefore taken seed by seed (docs/sweeps.md).
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu import errors
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.sweep.cells import Cell, Metric
from kemu.lab.sweep.statistics.claims import Claim

SIM = "sim"
Variant = Mapping[str, Any]
"""What makes it: value by path, or label by parameter."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run is not waited for any longer."""

    events: int = 10_000_000
    waiting: int = 0
    """Pods that wait at once; 0: there is no limit."""
    cpu_s: float = 600.0


@dataclass(frozen=True)
class Experiment:
    """Everything a sweep needs to know."""

    name: str
    description: str
    file: str
    text: str
    """As its author wrote it."""
    scenario: Scenario
    """With what ``set`` says, before anything varies."""
    source: str
    """The scenario as ``kemu run`` takes it: a file, or a shipped name; empty where it stands in the experiment."""
    settings: Mapping[str, Any]
    """What ``set`` says."""
    data_dir: str
    """Where the files of a trace are; empty: nowhere."""
    varied: tuple[str, ...]
    """What varies, in the order of the file: paths, and names of parameters."""
    variants: tuple[Variant, ...]
    """All combinations, the last of what varies changing fastest."""
    overrides: tuple[Mapping[str, Any], ...]
    """The values of each variant by path, those of parameters included."""
    seeds: tuple[int, ...]
    metrics: tuple[Metric, ...]
    claims: tuple[Claim, ...]
    limits: Limits = Limits()
    warnings: tuple[errors.Problem, ...] = ()
    runtime: str = SIM
    """Where its cells run: ``sim`` or ``real``."""
    kubeconfig: Path | None = None
    """A cluster in which each cell is a guest (``real``); None: each has a control plane of its own."""
    context: str = ""

    def cells(self) -> Iterator[Cell]:
        """In the order in which they are carried out: all variants with the first seed, then with the next, so that
        whatever is known so far compares them fairly."""
        for seed in self.seeds:
            for index, variant in enumerate(self.variants):
                yield Cell(variant, index, seed)

    def identity(self) -> dict[str, Any]:
        """What a journal of cells belongs to. Seeds may be added, and other metrics and claims looked at, without
        running any cell again."""
        return {
            "name": self.name,
            "scenario": hashlib.sha256(self.scenario.to_yaml().encode()).hexdigest(),
            "vary": [dict(each) for each in self.overrides],
            "limits": dataclasses.asdict(self.limits),
            **({} if self.runtime == SIM else {"runtime": self.runtime}),
            **({} if self.kubeconfig is None else {"cluster": f"{self.kubeconfig} {self.context}"}),
        }

    def on(self, runtime: str, kubeconfig: Path | None = None, context: str = "") -> Experiment:
        """The same experiment with its cells in another runtime."""
        return dataclasses.replace(self, runtime=runtime, kubeconfig=kubeconfig, context=context)

    @property
    def size(self) -> int:
        """How many cells it has."""
        return len(self.variants) * len(self.seeds)
