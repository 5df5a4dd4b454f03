"""How small failures become: ``python -m tests.exploration.shrinking_table mutants|ablations|museum … [--only NAME]``.

Plants bugs of ``tests/mutants`` one by one, takes safeguards away, or takes the pieces of the museum; delays messages
at random in a run that shows the bug, and shrinks the first failure. Prints a line for each, and how many end at three
holds, three pods and two nodes at most.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kemu.emulated.settings import documents
from kemu.lab.exploration import executions
from kemu.lab.exploration.shrinking import shrinker, twins
from kemu.lab.scenario import catalog
from kemu.lab.scenario.expectations import CheckIs
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import MILLISECOND_NS, LogSink
from kemu.runtime.holds import Hold, Label
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.sim.steering.choosers import Chooser
from kemu.runtime.sim.steering.messages import Message
from tests.ablations import search as ablations
from tests.exploration import sizes
from tests.mutants import all_parts, planting, search


class Uniform:
    """Delays every other message."""

    def __init__(self, seed: int, most_ms: int = 20) -> None:
        self.seed, self.most_ms = seed, most_ms
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


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    scenario: Scenario
    plant: planting.Plant | None = None

    def execute(
        self,
        scenario: Scenario,
        *,
        keep_log: bool = False,
        chooser: Chooser | None = None,
        watcher: LogSink | None = None,
    ) -> Seen:
        """With the bug. What sound code does as well is no failure."""
        with pytest.MonkeyPatch.context() as patch:
            if self.plant is not None:
                self.plant(patch)
            execution = executions.execute(scenario, keep_log=keep_log, chooser=chooser, watcher=watcher)
        failures = execution.failures
        is_absolute = any(twins.is_absolute(one) for one in failures)
        if failures and self.plant is not None and not keep_log and not is_absolute:
            again = Uniform(chooser.seed, chooser.most_ms) if isinstance(chooser, Uniform) else chooser
            sound = {found.id for found in executions.execute(scenario, chooser=again).failures}
            failures = tuple(found for found in failures if found.id not in sound)
        return Seen(failures, execution)

    def failing(self, seeds: Iterable[int]) -> tuple[Scenario, executions.Failure] | None:
        """The first run with random delays that fails, as a scenario with holds."""
        for seed in seeds:
            seen = self.execute(self.scenario, chooser=Uniform(seed))
            if seen.failures:
                checks = {one.id for one in self.scenario.expectations if isinstance(one.subject, CheckIs)}
                absolute = [one for one in seen.failures if twins.is_absolute(one) or one.id in checks]
                holds = (*self.scenario.holds, *seen.execution.deviations)
                return dataclasses.replace(self.scenario, holds=holds), (absolute or list(seen.failures))[0]
        return None


@dataclasses.dataclass(frozen=True)
class Seen:
    """An execution with fewer failures."""

    failures: tuple[executions.Failure, ...]
    execution: executions.Execution

    @property
    def events(self) -> list[Entry]:
        return self.execution.events

    @property
    def deviations(self) -> tuple[Hold, ...]:
        return self.execution.deviations

    @property
    def messages(self) -> list[tuple[Message, tuple[Label, ...]]]:
        return self.execution.messages


def cases(kinds: list[str]) -> Iterator[Case]:
    if "mutants" in kinds:
        for name, kill in json.loads(search.KILLS.read_text()).items():
            yield Case(name, scenario_of(kill["run"], kill["seed"]), all_parts.MUTANTS[name].plant)
    if "ablations" in kinds:
        for name, found in json.loads(ablations.FOUND.read_text()).items():
            where = shlex.join([found["scenario"], *found["settings"], f"ablate=[{name}]"])
            yield Case(name, scenario_of(where, found["seed"]))
    if "museum" in kinds:
        for name in catalog.shipped():
            if name.startswith("museum/"):
                scenario = _not_demonstrated(scenario_of(name, 1))
                if scenario is not None:
                    yield Case(name, scenario)


def _not_demonstrated(scenario: Scenario) -> Scenario | None:
    """A scenario that expects a check to be broken, without that: then it fails. None: it expects no such thing."""
    data = documents.copy(scenario.resolved)
    if not any("check" in item and item.get("holds") is False for item in data["spec"].get("expect") or ()):
        return None
    del data["spec"]["expect"]
    return loader.of_data(data, scenario.file)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="+", help="mutants, ablations, museum")
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--yaml", action="store_true")
    parser.add_argument("--most-s", type=float, default=shrinker.MOST_S, help="for each")
    options = parser.parse_args(arguments)
    done = good = 0
    print(f"{'case':44} {'fails':34} {'held':>5} → holds pods nodes sched faults events   runs    s  cpu s  minimal")
    for case in cases(options.kinds):
        if options.only not in case.name:
            continue
        found = case.failing(range(1, 4))
        if found is None:
            print(f"{case.name:44} no failure in three runs", flush=True)
            continue
        begin_s = time.process_time()
        try:
            shrunk = shrinker.shrink(*found, execute=case.execute, most_s=options.most_s)
        except shrinker.NotReproducedError:
            print(f"{case.name:44} does not fail again: it is not the same in every run", flush=True)
            continue
        cpu_s = time.process_time() - begin_s
        counts = shrunk.counts()
        is_good = shrunk.minimal and sizes.is_small(counts)
        done, good = done + 1, good + is_good
        larger = f"  ! {sizes.LARGER.get(case.name, '')}"
        row = (counts[key] for key in ("holds", "pods", "nodes", "schedulers", "faults", "events", "executions"))
        columns = "{:7} {:4} {:5} {:5} {:6} {:6} {:6}".format(*row)
        mark = "yes" if shrunk.minimal else "no"
        held = len(found[0].holds)
        line = (
            f"{case.name:44} {shrunk.failure.id[:34]:34} {held:5} → {columns} {shrunk.wall_s:4.0f} {cpu_s:6.0f}  {mark}"
        )
        print(line if is_good else line + larger, flush=True)
        if options.yaml:
            print(shrunk.yaml)
    limits = ", ".join(f"{most} {key}" for key, most in sizes.MOST.items())
    print(f"{good} of {done} end at {limits} or fewer, proven minimal")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
