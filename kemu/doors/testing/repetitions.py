"""Runs a test again and again: first what failed before, then as its strategies plan; the first failure ends it.

    found = search(runnable, shelf, "tests/test_race.py::test_race", Settings(runs=200))

Everything is a function of the settings and the number of the run, so workers of xdist find the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kemu.doors.testing.runnables import Outcome, Runnable
from kemu.doors.testing.tapes import Shelf, Tape
from kemu.runtime.words import listed


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
    said: str = ""
    """Of an older tape whose inputs have changed: what, and what came of both."""


def stored(runnable: Runnable, tape: Tape, tell: Callable[[str], object]) -> Found | None:
    """A failure that was kept, run again. Where what the test runs has changed since, it runs with the inputs of then
    and with those of today, and it is the latter that count: None where they pass, which is told."""
    outcome = runnable.play(tape)
    changed = tape.changed(runnable.inputs)
    if not changed:
        return Found(outcome, tape, 0) if outcome.key is not None else None
    what = f"its inputs have changed since it failed ({listed(changed, 4)})"
    anew = runnable.anew(tape)
    if anew is None:
        return Found(outcome, tape, 0, said=what) if outcome.key is not None else None
    today = runnable.play(anew)
    then = "it fails with those of then" if outcome.key is not None else "it passes with those of then"
    if today.key is not None:
        alike = ", in the same way" if today.key == outcome.key else ""
        return Found(today, tape, 0, said=f"{what}: {then}, and fails with those of today{alike}")
    if outcome.key is not None:
        tell(f"a stored failure: {what}: {then}, and passes with those of today")
    return None


def search(
    runnable: Runnable,
    shelf: Shelf,
    test: str,
    settings: Settings,
    tell: Callable[[str], object] = lambda text: None,
) -> Found | Outcome:
    """The first failure; or the last run, if none failed, rather one in which everything could be judged. ``tell``: is
    told what a passing test has to say."""
    for tape in shelf.of(test):
        found = stored(runnable, tape, tell)
        if found is not None:
            return found
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
    return Found(outcome, shelf.put(replace(outcome.tape(test), inputs=runnable.inputs)), number, strategy, asked)
