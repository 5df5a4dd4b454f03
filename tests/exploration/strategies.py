"""After how many runs does each strategy find each bug? ``python -m tests.exploration.strategies``.

``strategies.json`` holds, for each bed (:mod:`beds`), each strategy and the portfolio of all, in which run each of 100
trials failed for the first time because of the bug. A trial is a search with a seed of its own. All trials of a cell
advance in step, and stop when 61 of them have failed: then the 40th and the 61st, which bound the median with a
confidence of 95 % whatever the distribution, cannot change. Where they do not come so far, figures are censored: more
than so many runs.

A strategy that does not learn makes blocks of runs that have nothing to do with each other, as the swarm draws one
variant for each block. So one block of each trial is enough: if a share *s* of them passes, a share of *s*:sup:`n`
passes *n* blocks, and the interval of *s* (Wilson's) gives that of the median. A part of a block does as well for a
first look: runs of one variant are more alike than others, so the figure is too low, if anything.

The portfolio takes strategies in turn, so most of its runs are those of their trials with the same seed, which are
known.

The search goes on from its record, in rounds: all cells to 2 runs, then all that are left to 4, 8, 16 and so on.
First it repeats a run of each cell; one that does not fail any more makes it begin that cell anew.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.exploration import campaigns
from kemu.lab.exploration.campaigns import Campaign, Settings
from kemu.lab.exploration.plans import Strategy
from kemu.lab.exploration.results import RunRecord, plan_data
from kemu.lab.exploration.runs import Task, carry_out
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import swarms
from kemu.lab.exploration.strategies.registry import STRATEGIES, USUAL
from kemu.lab.exploration.strategies.subjects import Subject
from kemu.lab.exploration.workers import Inline
from kemu.lab.sweep.statistics import intervals
from tests.exploration import beds

FILE = Path(__file__).parent / "strategies.json"
TRIALS = 100
LOW, HIGH = 40, 61
"""Of 100 values in order, these bound the median: fewer than 40, or more than 60, of 100 tosses of a coin come up with
a probability of 3.5 %."""
LIMIT = 2000
FIRST_ROUND = 2
PORTFOLIO = "portfolio"
SEARCHERS = (*USUAL, PORTFOLIO)
LEARNS = "feedback"
"""What a run is depends on what came of the runs before it."""
KNOWS_NOTHING = 3 * campaigns.GENERATION
"""So many runs of a search, in which there is nothing to learn from yet."""
ENUMERATES = "observe-late"
"""What a run is depends on its number."""
BLOCKS = {name: swarms.RUNS_OF_A_VARIANT for name in USUAL if name not in (LEARNS, ENUMERATES)} | {"seeds": 1}
"""Runs; each run of ``seeds`` is one by itself."""
MOST_KEPT = 3000


@dataclass
class Cell:
    """One strategy, or the portfolio, on one bed."""

    block: int = 0
    """So many runs are as good as any others; 0: no."""
    runs: int = 0
    """Of each trial that has not failed."""
    firsts: list[int | None] = field(default_factory=lambda: [None] * TRIALS)
    """After how many runs each trial failed: the trial of seed 1 first."""
    cpu_s: float = 0.0

    @property
    def found(self) -> int:
        return sum(first is not None for first in self.firsts)

    def is_over(self, limit: int = LIMIT) -> bool:
        return self.found >= HIGH or self.runs >= min(self.block or limit, limit)

    def figures(self) -> tuple[float, float, float]:
        """The median and its 95 % interval; infinite where more runs would tell."""
        if self.block and self.found < HIGH:
            share = intervals.of_share(self.found, TRIALS)
            block = min(self.block, self.runs)
            median, low, high = (block * blocks(each) for each in (share.estimate, share.high, share.low))
            return median, low, high
        ordered = sorted(math.inf if first is None else first for first in self.firsts)
        return ordered[TRIALS // 2 - 1], ordered[LOW - 1], ordered[HIGH - 1]

    @property
    def median(self) -> float:
        return self.figures()[0]

    @property
    def not_enough(self) -> float:
        """So many runs, if anything is censored."""
        return self.figures()[1] if self.block else self.runs

    @property
    def at_least(self) -> float:
        """The median, or how many runs were not enough for it."""
        return self.not_enough if math.isinf(self.median) else self.median


def blocks(share: float) -> float:
    """After how many half of the searches have failed, of which that share fails in each."""
    return math.log(0.5) / math.log(1 - share) if share > 1e-9 else math.inf


class Remembering(Inline):
    """Carries out equal runs of the scenario itself once: different trials of ``observe-late`` try the same holds."""

    def __init__(self) -> None:
        self._known: dict[str, RunRecord] = {}

    def run(self, source: Source, tasks: Any) -> Iterator[RunRecord]:
        for task in tasks:
            yield self.carry_out(source, task)

    def carry_out(self, source: Source, task: Task) -> RunRecord:
        plan = task.plan
        if plan.chooser is not None or plan.seed is not None or plan.overrides:
            return carry_out(source, task)
        key = json.dumps(plan_data(plan))
        known = self._known.get(key)
        if known is None:
            known = carry_out(source, task)
            if len(self._known) < MOST_KEPT:
                self._known[key] = known
        return RunRecord(**{**vars(known), "number": task.number, "strategy": task.strategy, "plan": plan})


class Searches:
    """Those of one bed."""

    def __init__(self, bed: beds.Bed, cells: Mapping[str, Cell]) -> None:
        self.bed = bed
        self._cells = cells
        self._subject = Subject(Source.of(beds.scenario(bed)))
        self._sound = Source.of(beds.scenario(bed, is_ablated=False))
        self._executor = Remembering()

    def advance(self, searcher: str, limit: int) -> None:
        """Until the cell is over, or every trial that has not failed has made so many runs."""
        cell = self._cells[searcher]
        begun_s = time.process_time()
        trials: dict[int, Iterator[bool]] = {}
        while not cell.is_over(limit):
            until = min(limit, cell.runs + max(1, cell.runs // 8))
            for index, first in enumerate(cell.firsts):
                if first is None:
                    if index not in trials:
                        trials[index] = self.trial(searcher, index + 1, cell.runs)
                    for number in range(cell.runs, until):
                        if next(trials[index]):
                            cell.firsts[index] = number + 1
                            del trials[index]
                            break
            cell.runs = until
        cell.cpu_s = round(cell.cpu_s + time.process_time() - begun_s, 1)

    def trial(self, searcher: str, seed: int, begin: int) -> Iterator[bool]:
        """Whether run after run fails because of the bug, from number ``begin`` on."""
        strategies = {name: STRATEGIES[name].make(self._subject, seed) for name in self._names(searcher)}
        names = list(strategies)
        learns_from = KNOWS_NOTHING if LEARNS in names else math.inf
        for number in itertools.count(begin):
            if number >= learns_from:
                break
            turn, place = divmod(number, len(names))
            known = self._known(names[place], seed, turn) if searcher == PORTFOLIO else None
            yield self._fails(strategies[names[place]], turn) if known is None else known
        yield from self._learning(searcher, seed, max(begin, KNOWS_NOTHING))

    def _known(self, name: str, seed: int, turn: int) -> bool | None:
        """Whether that run of a strategy's trial fails, if it is recorded."""
        cell = self._cells[name]
        first = cell.firsts[seed - 1]
        if first is None:
            return False if turn < cell.runs else None
        return turn + 1 == first if turn < first else None

    def _fails(self, strategy: Strategy, turn: int) -> bool:
        with self.bed.planted():
            plan = strategy.plan(turn, NOTHING)
            record = self._executor.carry_out(self._subject.source, Task(turn, plan, strategy.name))
        return self.is_killed(record)

    def _learning(self, searcher: str, seed: int, begin: int) -> Iterator[bool]:
        records = self.campaign(searcher, seed).go()
        while True:
            with self.bed.planted():
                record = next(records)
            if record.number >= begin:
                yield self.is_killed(record)

    def _names(self, searcher: str) -> Sequence[str]:
        return tuple(USUAL) if searcher == PORTFOLIO else (searcher,)

    def campaign(self, searcher: str, seed: int) -> Campaign:
        strategies = [STRATEGIES[name].make(self._subject, seed) for name in self._names(searcher)]
        settings = Settings(seed, LIMIT, canary=False, checks=(self.bed.check,))
        return Campaign(self._subject.scenario, strategies, settings, self._executor)

    def is_killed(self, record: RunRecord) -> bool:
        """Whether the bug's check fails, and in the same run without the bug does not."""
        if not self._shows(record):
            return False
        try:
            return not self._shows(carry_out(self._sound, Task(0, record.plan)))
        except KemuError:  # the plan names an actor that only the bug's scenario has
            return True

    def _shows(self, record: RunRecord) -> bool:
        return any(failure.id == self.bed.check for failure in record.failures)

    def still_fails(self, searcher: str) -> bool:
        """Whether the quickest trial of a record still fails in the same run; so it does where none has failed."""
        cell = self._cells[searcher]
        quickest = min((first for first in cell.firsts if first is not None), default=None)
        if quickest is None:
            return True
        return next(self.trial(searcher, cell.firsts.index(quickest) + 1, quickest - 1))


@dataclass(frozen=True)
class _Nothing:
    generation: int = 0
    records: Sequence[RunRecord] = ()


NOTHING = _Nothing()


# The record --------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """Of one bed."""

    scenario: int
    """A checksum of what was searched."""
    cells: dict[str, Cell]

    @property
    def is_known(self) -> bool:
        """Whether every strategy has searched, and the portfolio's figure stands."""
        return all(cell.runs for cell in self.cells.values()) and self.cells[PORTFOLIO].found >= HIGH


def cell(searcher: str, recorded: Mapping[str, Any] | None = None) -> Cell:
    return Cell(BLOCKS.get(searcher, 0), **(recorded or {}))


def as_data(cell: Cell) -> dict[str, Any]:
    return {"runs": cell.runs, "firsts": cell.firsts, "cpu_s": cell.cpu_s}


def checksum(bed: beds.Bed) -> int:
    return zlib.crc32(f"{beds.scenario(bed).to_yaml()}\0{bed.check}".encode())


def load(file: Path = FILE) -> dict[str, Row]:
    """By bug; of beds as they are now."""
    recorded: Mapping[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    rows = {}
    for name, bed in beds.BEDS.items():
        row = recorded.get(name, {"scenario": 0, "cells": {}})
        known = row["cells"] if row["scenario"] == checksum(bed) else {}
        rows[name] = Row(checksum(bed), {each: cell(each, known.get(each)) for each in SEARCHERS})
    return rows


def write(rows: Mapping[str, Row], file: Path = FILE) -> None:
    lines = []
    for name, row in rows.items():
        cells = [f"   {json.dumps(each)}: {json.dumps(as_data(cell))}" for each, cell in row.cells.items() if cell.runs]
        text = ",\n".join(cells)
        lines.append(f' {json.dumps(name)}: {{"scenario": {row.scenario}, "cells": {{\n{text}\n }}}}')
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


# The claims --------------------------------------------------------------------------------------------------------


def times_the_best(cells: Mapping[str, Cell]) -> float:
    """The median of the portfolio, in medians of the best strategy, at most."""
    return cells[PORTFOLIO].median / min(cells[name].at_least for name in USUAL)


def median_strategy(cells: Mapping[str, Cell]) -> float:
    """What the median strategy takes at least."""
    return statistics.median(cells[name].at_least for name in USUAL)


def told(cell: Cell) -> str:
    """As a table has it."""
    if cell.block and math.isinf(cell.median):
        return f">{math.floor(cell.not_enough)}"
    most = cell.not_enough if math.isinf(cell.figures()[2]) else LIMIT
    median, low, high = (f"{math.ceil(each)}" if each <= most else f">{math.floor(most)}" for each in cell.figures())
    return median if low == high else f"{median} ({low} to {high})"


def table() -> dict[str, Any]:
    """For the documents: for each bug what each searcher takes, and the portfolio's median in medians of the best."""
    rows = [
        [name, *(told(cell) for cell in row.cells.values()), f"{times_the_best(row.cells):.1f}"]
        for name, row in load().items()
        if row.is_known
    ]
    return {"searchers": SEARCHERS, "rows": rows}


# The search --------------------------------------------------------------------------------------------------------


def rounds(limit: int) -> Iterator[int]:
    end = FIRST_ROUND
    while end < limit:
        yield end
        end *= 2
    yield limit


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=LIMIT, help="runs of one trial")
    parser.add_argument("--cpu", type=float, default=math.inf, help="seconds, of all cells together")
    parser.add_argument("--bug", action="append", default=[], help="only this one")
    parser.add_argument("--strategy", action="append", default=[], help="only this one; there is also portfolio")
    parser.add_argument("--file", type=Path, default=FILE)
    options = parser.parse_args(arguments)
    rows = load(options.file)
    names = options.bug or list(beds.BEDS)
    searchers = options.strategy or SEARCHERS
    begun_s = time.process_time()
    for name, searcher in itertools.product(names, searchers):
        if not Searches(beds.BEDS[name], rows[name].cells).still_fails(searcher):
            print(f"{name}, {searcher}: its record is out of date", flush=True)
            rows[name].cells[searcher] = cell(searcher)
    for limit in rounds(options.limit):
        for name in names:
            searches = Searches(beds.BEDS[name], rows[name].cells)
            for searcher in searchers:
                one = rows[name].cells[searcher]
                most = min(options.limit, limit * len(USUAL)) if searcher == PORTFOLIO else limit
                if one.is_over(most):
                    continue
                if time.process_time() - begun_s > options.cpu:
                    return 0
                searches.advance(searcher, most)
                write(rows, options.file)
                print(f"{name}, {searcher}: {told(one)}, {one.found} found ({one.cpu_s:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
