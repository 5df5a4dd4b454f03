"""How small failures become: ``python -m tests.exploration.shrinking_table [--jobs N] [MUTANT …]``.

Plants bugs of ``tests/mutants`` one by one, delays messages at random in the run that shows the bug, and shrinks the
first failure. Prints a line for each, and how many end at three holds, three pods and two nodes at most.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kemu.exploration import executions
from kemu.exploration.shrinking import shrinker, siblings
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.sim.steering.messages import Message
from kemu.scenario import catalog
from kemu.scenario.format import documents
from kemu.scenario.loading import loader
from kemu.scenario.scenarios import Scenario
from tests.mutants import all_parts, search

MOST = {"holds": 3, "pods": 3, "nodes": 2}


class Uniform:
    """Delays every other message."""

    def __init__(self, seed: int, most_ms: int = 20) -> None:
        self.stream = random.Random(seed)
        self.most_ns = most_ms * MILLISECOND_NS

    def delay_ns(self, message: Message) -> int:
        return self.stream.randrange(self.most_ns) if self.stream.random() < 0.5 else 0


def scenario_of(where: str, seed: int) -> Scenario:
    """As ``tests/mutants`` write it: a scenario and its settings."""
    name, *settings = shlex.split(where)
    overrides: dict[str, Any] = {"seed": seed}
    for setting in settings:
        path, _, value = setting.partition("=")
        overrides[path] = documents.parse(value, path)[0].data
    return loader.variants(loader.load(catalog.find(name), None, overrides))[0][1]


def failing(scenario: Scenario, seeds: Iterator[int]) -> tuple[Scenario, executions.Failure] | None:
    """The first run with random delays that fails where the usual one of sound code does not matter; with holds."""
    for seed in seeds:
        execution = executions.execute(scenario, chooser=Uniform(seed))
        if execution.failures:
            absolute = [found for found in execution.failures if siblings.is_absolute(found)]
            holds = (*scenario.holds, *execution.deviations)
            return dataclasses.replace(scenario, holds=holds), (absolute or execution.failures)[0]
    return None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--where", default="", help="only runs of scenarios whose names begin so")
    parser.add_argument("--yaml", action="store_true")
    parser.add_argument("mutants", nargs="*")
    options = parser.parse_args(arguments)
    kills = json.loads(search.KILLS.read_text())
    done = good = 0
    print(f"{'mutant':48} {'check':34} {'held':>5} → holds pods nodes sched faults events   runs    s  minimal")
    for name in options.mutants or kills:
        where = kills[name]["run"]
        if not where.startswith(options.where):
            continue
        for seed in range(1, options.seeds + 1):
            with pytest.MonkeyPatch.context() as patch:
                all_parts.MUTANTS[name].plant(patch)
                found = failing(scenario_of(where, kills[name]["seed"]), iter(range(seed, seed + 5)))
                if found is None:
                    print(f"{name:48} {where}: no failure in five runs", flush=True)
                    continue
                try:
                    shrunk = shrinker.shrink(*found, jobs=options.jobs)
                except shrinker.NotReproducedError:
                    print(f"{name:48} {where}: the mutant itself is not the same in every run", flush=True)
                    continue
            counts = shrunk.counts()
            is_good = shrunk.minimal and all(counts[key] <= most for key, most in MOST.items())
            done, good = done + 1, good + is_good
            row = (counts[key] for key in ("holds", "pods", "nodes", "schedulers", "faults", "events", "executions"))
            columns = "{:7} {:4} {:5} {:5} {:6} {:6} {:6}".format(*row)
            mark = "yes" if shrunk.minimal else "no"
            held = len(found[0].holds)
            line = f"{name:48} {shrunk.failure.id[:34]:34} {held:5} → {columns} {shrunk.wall_s:4.0f}  {mark}"
            print(line if is_good else line + "  !", flush=True)
            if options.yaml:
                print(shrunk.yaml)
    print(
        f"{good} of {done} end at {', '.join(f'{most} {key}' for key, most in MOST.items())} or fewer, proven minimal"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
