"""Measures which event decides that a bug shows itself: ``python -m tests.mutants.decisions [ID …]``.

For every mutant whose file names the deciding event, P(failure) over time is estimated in the run of its scenario
(:mod:`tests.mutants.chances`) at the first seed that shows the bug. The event at which P(failure) rises most must be
the named one, or its neighbour in the run log.

Writes ``decisions.json``; exit code 1 when one is another event.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from kemu.lab.exploration import executions
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import explanations, probabilities
from kemu.lab.tell.explaining.probabilities import INSTANTS, SUFFIXES, Curve
from tests import json_files
from tests.mutants import all_parts, chances
from tests.mutants.planting import Decides, Mutant

FILE = Path(__file__).parent / "decisions.json"
SEEDS = 50
"""Within which the bug has to show itself."""


@dataclass(frozen=True)
class Measured:
    seed: int
    place: int
    """Of the named event in the run log."""
    curve: Curve

    @property
    def is_right(self) -> bool:
        decision = self.curve.decision
        return is_near(None if decision is None else decision.event, self.place)


def is_near(found: int | None, named: int) -> bool:
    """The same event, or its neighbour."""
    return found is not None and abs(found - named) <= 1


def named() -> dict[str, Mutant]:
    """Those whose files name the deciding event."""
    return {name: one for name, one in all_parts.MUTANTS.items() if one.decides is not None}


def decides(planted: Mutant) -> Decides:
    assert planted.decides is not None, "asked for those that have one"
    return planted.decides


def fails(scenario: Scenario, check: str) -> bool:
    return any(one.id == check for one in executions.execute(scenario).failures)


def first_seed(planted: Mutant) -> int:
    """At which the bug shows itself. Raises ValueError where it does not, and where it is not the bug that does."""
    of = decides(planted)
    for seed in range(1, SEEDS + 1):
        scenario = chances.load(of.bed, seed)
        with pytest.MonkeyPatch.context() as patch:
            planted.plant(patch)
            is_shown = fails(scenario, of.check)
        if is_shown:
            if fails(scenario, of.check):
                raise ValueError(f"{of.check} fails in {of.bed} without {planted.id}, too, at seed {seed}")
            return seed
    raise ValueError(f"{of.check} does not fail in {of.bed} at {SEEDS} seeds with {planted.id}")


def measure(planted: Mutant, seed: int, instants: int = INSTANTS, suffixes: int = SUFFIXES) -> Measured:
    of = decides(planted)
    with pytest.MonkeyPatch.context() as patch:
        planted.plant(patch)
        explanation = explanations.explain(chances.load(of.bed, seed), of.check)
        curve = probabilities.curve(explanation, instants=instants, suffixes=suffixes)
    return Measured(seed, of.place(explanation.telling.events), curve)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("id", nargs="*", help="default: all that name their event")
    parser.add_argument("--instants", type=int, default=INSTANTS)
    parser.add_argument("--suffixes", type=int, default=SUFFIXES)
    options = parser.parse_args(arguments)
    table = json_files.load(FILE)
    wrong = []
    for name in options.id or named():
        begun_s = time.process_time()
        planted = all_parts.MUTANTS[name]
        found = measure(planted, first_seed(planted), options.instants, options.suffixes)
        decision = found.curve.decision
        table[name] = {
            "bed": decides(planted).bed,
            "seed": found.seed,
            "named": found.place,
            "found": None if decision is None else decision.event,
            "text": "" if decision is None else decision.text,
            "before": None if decision is None else round(decision.before, 3),
            "after": None if decision is None else round(decision.after, 3),
        }
        if not found.is_right:
            wrong.append(name)
        spent_s = time.process_time() - begun_s
        print(f"{name}: {'right' if found.is_right else 'WRONG'}, {spent_s:.0f} CPU s, {table[name]}", flush=True)
        json_files.write(FILE, {each: table[each] for each in named() if each in table})
    print(f"{len(wrong)} wrong: {', '.join(wrong)}" if wrong else "all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
