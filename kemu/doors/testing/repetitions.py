"""Runs a test again and again: first what failed before, then as its strategies plan; the first failure ends it.

    found = search(runnable, shelf, "tests/test_race.py::test_race", Settings(runs=200))

Everything is a function of the settings and the number of the run, so workers of xdist find the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from kemu.doors.testing.runnables import Outcome, Runnable
from kemu.doors.testing.tapes import Shelf, Tape


@dataclass(frozen=True)
class Settings:
    """How far to search, and how."""

    runs: int = 1
    strategies: tuple[str, ...] = ()
    """Their names; none: all that fit. The first run is always the one without any."""
    seed: int = 0
    """The strategies draw from it."""
    shrink: bool = False


@dataclass(frozen=True)
class Found:
    """A run that failed."""

    outcome: Outcome
    tape: Tape
    number: int
    """Number of the run, from 1; 0: it was an older tape."""
    strategy: str = ""
    executions: int = 0
    """How many runs shrinking took."""


def search(runnable: Runnable, shelf: Shelf, test: str, settings: Settings) -> Found | Outcome:
    """The first failure; or the last run, if none failed, rather one in which everything could be judged."""
    for tape in shelf.of(test):
        outcome = runnable.play(tape)
        if outcome.key is not None:
            return Found(outcome, tape, 0)
        shelf.remove(tape)
    best: Outcome | None = None
    for number, (strategy, outcome) in enumerate(runnable.runs(settings.runs, settings.strategies, settings.seed), 1):
        if outcome.key is not None:
            return _kept(runnable, shelf, test, settings, outcome, number, strategy)
        if best is None or outcome.is_judged:
            best = outcome
    assert best is not None
    return best


def _kept(
    runnable: Runnable, shelf: Shelf, test: str, settings: Settings, outcome: Outcome, number: int, strategy: str
) -> Found:
    """Put a failure on its tape, shrunk if that is wanted."""
    asked = 0
    if settings.shrink:
        outcome, asked = runnable.shrink(outcome)
    return Found(outcome, shelf.put(outcome.tape(test)), number, strategy, asked)
