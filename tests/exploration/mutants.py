"""Planted bugs that nothing points at: ``python -m tests.exploration.mutants [ID …]``.

Every bug of ``TWENTY`` is planted, and the strategies search the shipped ``races/*`` and ``chaos/*`` as they are, all
strategies and all scenarios in turn, until a check or expectation fails that holds in the same run without the bug. The
table of :mod:`tests.mutants` knows where each bug shows itself; the search does not look there.

Writes ``mutants.json``; exit code 1 if a bug is not found within its CPU time.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu.errors import KemuError
from kemu.lab.exploration.executions import BROKEN
from kemu.lab.exploration.plans import Plan, Strategy
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.runs import Task, carry_out
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import registry
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from tests import json_files
from tests.mutants import all_parts, planting

FILE = Path(__file__).parent / "mutants.json"
CPU_S = 600.0
TOO_SLOW_S = 5.0
"""A scenario whose ordinary run takes longer waits until the others have had their turn often."""
PATIENCE = 40

TWENTY = (
    "reads-come-from-a-stale-cache",
    "a-list-leaves-out-an-object",
    "a-watch-sends-old-bytes",
    "a-resumed-watch-misses-the-changes-since",
    "a-binding-may-replace-another",
    "a-binding-ignores-the-uid",
    "an-eviction-ignores-the-budget",
    "a-write-is-answered-before-it-is-made",
    "an-informer-loses-an-event",
    "a-relist-forgets-what-is-gone",
    "nodes-are-tainted-without-a-limit",
    "a-replica-set-does-not-wait-for-its-pods",
    "everything-is-admitted",
    "terminating-pods-are-not-counted",
    "fsync-does-nothing",
    "a-crashed-actor-goes-on",
    "an-assumed-pod-is-not-counted",
    "a-failed-binding-is-never-given-back",
    "compare-and-swap-always-succeeds",
    "recovery-restores-an-old-value",
)


@dataclasses.dataclass(frozen=True)
class Nothing:
    """What the first generation knows."""

    generation: int = 0
    records: tuple[RunRecord, ...] = ()


@dataclasses.dataclass
class Bed:
    """A shipped scenario, and the strategies that search it."""

    name: str
    source: Source
    strategies: list[Strategy]
    seconds: float = 0.0
    """Of its last run."""
    runs: int = 0

    def plan(self) -> tuple[str, Plan]:
        turn, place = divmod(self.runs, len(self.strategies))
        self.runs += 1
        strategy = self.strategies[place]
        return strategy.name, strategy.plan(turn, Nothing())


def shipped(seed: int) -> list[Bed]:
    """Of a scenario with a matrix its first variant."""
    found = []
    for name, path in catalog.shipped().items():
        if name.startswith(("races/", "chaos/")):
            scenario = loader.variants(loader.load(path))[0][1]
            source = Source.of(scenario)
            found.append(Bed(name, source, registry.make([], source, seed)))
    # Races are small, faults take long.
    return sorted(found, key=lambda bed: not bed.name.startswith("races/"))


def turns(beds: list[Bed]) -> Iterator[Bed]:
    """All in turn, those that take long less often."""
    turn = 0
    while True:
        for bed in beds:
            if bed.seconds < TOO_SLOW_S or turn % PATIENCE == PATIENCE - 1:
                yield bed
        turn += 1


def failed(source: Source, plan: Plan) -> dict[str, str]:
    """Details by check and expectation."""
    try:
        return {one.id: one.detail for one in carry_out(source, Task(0, plan)).failures}
    except KemuError as error:
        return {BROKEN: str(error)}


def search(planted: planting.Mutant, seed: int, cpu_s: float) -> dict[str, Any]:
    begun_s = time.process_time()
    for runs, bed in enumerate(turns(shipped(seed)), 1):
        with pytest.MonkeyPatch.context() as patch:
            planted.plant(patch)
            strategy, plan = bed.plan()
            before_s = time.process_time()
            found = failed(bed.source, plan)
            bed.seconds = time.process_time() - before_s
        sound = failed(bed.source, plan) if found else {}
        killers = [name for name in found if name not in sound]
        spent_s = time.process_time() - begun_s
        if killers:
            return {
                "scenario": bed.name,
                "strategy": strategy,
                "runs": runs,
                "by": killers,
                "detail": found[killers[0]],
                "cpu_s": round(spent_s, 1),
            }
        if spent_s > cpu_s:
            return {"runs": runs, "by": [], "cpu_s": round(spent_s, 1)}
    raise AssertionError("turns never end")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("id", nargs="*", help="default: the twenty")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", type=float, default=CPU_S, help="seconds for one bug")
    options = parser.parse_args(arguments)
    table: dict[str, Any] = json_files.load(FILE)
    missing = []
    for name in options.id or TWENTY:
        table[name] = found = search(all_parts.MUTANTS[name], options.seed, options.cpu)
        print(f"{name}: {found}", flush=True)
        if not found["by"]:
            missing.append(name)
        json_files.write(FILE, {each: table[each] for each in TWENTY if each in table})
    print(f"{len(missing)} not found: {', '.join(missing)}" if missing else "all found")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
