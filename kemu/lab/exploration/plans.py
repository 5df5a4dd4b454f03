"""Plans: what a strategy decides about one run, and what it may know when it decides.

A plan is plain data, so it can travel to another process and be written to a campaign file. It must be a pure function
of the campaign's seed, the number of the run, and what earlier generations found: then the number of workers cannot
matter, and a campaign that was stopped goes on as if it had not been.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kemu.lab.exploration.executions import Failure
from kemu.runtime.holds import Hold
from kemu.runtime.random_streams import Redraw
from kemu.runtime.sim.steering.choosers import Chooser


@dataclass(frozen=True, slots=True)
class ChooserSpec:
    """How to make a chooser, in whichever process the run takes place."""

    factory: str
    """``module:callable``"""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Its keyword arguments: numbers, texts, lists and mappings."""

    def make(self) -> Chooser:
        chooser: Chooser = resolve(self.factory)(**self.parameters)
        return chooser


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: what differs from the scenario."""

    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Values for paths below spec, as ``--set`` takes them; not ``seed`` and ``holds``, which stand below."""
    seed: int | None = None
    """None: the scenario's."""
    chooser: ChooserSpec | None = None
    holds: tuple[Hold, ...] | None = None
    """In place of those of the scenario; None: the scenario's."""
    redraw: Redraw | None = None
    """From when on chance is that of another seed."""
    most_events: int = 0
    """A run with so many is broken off, and finds nothing; 0: there is no limit."""
    may_be_impossible: bool = False
    """What cannot be run at all finds nothing; otherwise that is an error."""
    probe: str = ""
    """``module:function`` that takes the :class:`~kemu.lab.exploration.executions.Execution` after the run, and returns
    plain data for the strategy: :attr:`~kemu.lab.exploration.results.RunRecord.probed`."""


class Feedback(Protocol):
    """What earlier generations found; the same whatever the number of workers. The generation just before this one is
    not among them, as it may still be running."""

    @property
    def generation(self) -> int:
        """Generation of the run that is planned, from 0. In the first two nothing is known yet."""
        ...

    @property
    def records(self) -> Sequence[Record]:
        """Records of all runs of earlier generations, in their order."""
        ...


class Record(Protocol):
    """One run of an earlier generation, as a strategy may see it."""

    @property
    def number(self) -> int: ...

    @property
    def strategy(self) -> str: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def verdict(self) -> str:
        """``holds fails unknown``, or why there is none."""
        ...

    @property
    def failures(self) -> tuple[Failure, ...]: ...

    @property
    def new(self) -> tuple[int, ...]:
        """Orders of events that no run before it had shown."""
        ...

    @property
    def signature(self) -> tuple[int, ...]:
        """Signature of its timeline: :func:`kemu.lab.exploration.coverage.similarity` compares two."""
        ...

    @property
    def probed(self) -> Any:
        """What the plan's probe returned."""
        ...


class Strategy(Protocol):
    """Plans runs."""

    @property
    def name(self) -> str: ...

    def plan(self, number: int, feedback: Feedback) -> Plan:
        """The plan of the strategy's n-th run of the campaign, from 0. Pure: equal arguments give equal plans."""
        ...


def resolve(name: str) -> Any:
    """``module:name``. Raises ValueError, ImportError or AttributeError."""
    module, separator, attribute = name.partition(":")
    if not separator:
        raise ValueError(f"not module:name: {name!r}")
    return getattr(importlib.import_module(module), attribute)
