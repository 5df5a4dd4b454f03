"""kemu as it is, under search: ``python -m tests.exploration.unpatched [SCENARIO …]``.

A check that holds in every run must hold in every run that a search finds, too. So each shipped scenario (all but the
very large ones) is searched by all strategies in turn, with the times of a real cluster; with ``--seeds`` it runs once
for each seed instead, without a search. Only checks count, and errors of the simulation: what a scenario expects is
about the cluster that it describes. Checks that a scenario expects to fail do not count there.

    python -m tests.exploration.unpatched --runs 500
    python -m tests.exploration.unpatched --seeds 50 --times ideal,realistic
    python -m tests.exploration.unpatched --runs 100 --seed 7 --out found chaos/store-crash races

Every way of failing is left in the folder ``--out`` as a scenario that fails by itself. Exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.checks import registry as checks
from kemu.lab.exploration import searches
from kemu.lab.exploration.campaigns import Campaign, Settings
from kemu.lab.exploration.executions import BROKEN
from kemu.lab.exploration.plans import Feedback, Plan, Strategy
from kemu.lab.exploration.strategies import registry
from kemu.lab.exploration.workers import Executor, Workers
from kemu.lab.scenario import catalog
from kemu.lab.scenario.expectations import CheckIs
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario

LARGE = ("scale/", "traces/", "chaos/thousand-nodes")
TIMES: Mapping[str, Mapping[str, Any]] = {"ideal": {}, "realistic": {"timing": "realistic"}}
"""``ideal``: the times that the scenario states."""
LIMIT_S = 1200.0
"""Of real time, for one run on a busy machine."""
DETAIL_CHARACTERS = 300


@dataclass(frozen=True)
class InOrder:
    """One run for each seed, from the first one on."""

    first: int
    name: str = "in-order"

    def plan(self, number: int, feedback: Feedback) -> Plan:
        return Plan(seed=self.first + number)


@dataclass(frozen=True)
class Finding:
    """A way in which a scenario fails a check."""

    check: str
    detail: str
    runs: int
    """How many failed so."""
    strategy: str
    file: Path


def selected(names: Sequence[str], without: Sequence[str] = ()) -> dict[str, Path]:
    """Scenarios by name, folder or file; none: all shipped ones that are not very large."""
    known = catalog.shipped()

    def under(wanted: Sequence[str]) -> dict[str, Path]:
        return {name: path for name, path in known.items() if name.startswith(tuple(wanted))}

    found: dict[str, Path] = {}
    for name in names:
        inside = under([f"{name.strip('/')}/"])
        found.update(inside or {name: catalog.find(name)})
    if not names:
        found = {name: path for name, path in known.items() if name not in under(LARGE)}
    left_out = under(without) if without else {}
    return {name: path for name, path in found.items() if name not in left_out}


def counted(scenario: Scenario) -> tuple[str, ...]:
    """The checks that must hold in every run of it, and the expectations that say so of one of them.

    What detectors find is legal, even where a scenario asks them.
    """
    usual = [check.id for check in checks.ALL if not check.detector]
    named = {one.id: one.subject for one in scenario.expectations if isinstance(one.subject, CheckIs)}
    expected = [one.check for one in named.values() if not one.holds]
    stated = [name for name, one in named.items() if one.holds and one.check in usual]
    return (*dict.fromkeys([*(check for check in usual if check not in expected), *stated, BROKEN]),)


def findings(
    scenario: Scenario, strategies: Sequence[Strategy], settings: Settings, executor: Executor, out: Path
) -> Iterator[Finding]:
    """Carries out all runs, then tells what failed in them."""
    campaign = Campaign(scenario, strategies, settings, executor)
    try:
        for _ in campaign.go():
            pass
    except KemuError as error:
        yield Finding("the-search-broke", str(error), 1, "", out)
    for record in campaign.records:
        if record.verdict in ("slow", "died"):
            yield Finding(record.verdict, f"run {record.number}", 1, record.strategy, out)
    for cluster in campaign.clusters:
        first = cluster.cheapest
        file = out / f"{cluster.id}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(searches.text_of(campaign.source.scenario(first.plan), first.holds))
        yield Finding(cluster.check, cluster.failure.detail, len(cluster.runs), first.strategy, file)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="of the search of each scenario")
    parser.add_argument("--seed", type=int, default=1, help="of the searches; with --seeds the first seed of the runs")
    parser.add_argument("--seeds", type=int, default=0, help="run so many seeds of each scenario, and search nothing")
    parser.add_argument("--times", default="realistic", help=f"of {','.join(TIMES)}; default: realistic")
    parser.add_argument("--strategy", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--out", type=Path, help="the folder for what is found; default: a new one")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="leave these out")
    parser.add_argument("scenario", nargs="*", help="names, folders or files; default: all but the very large ones")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.times.split(",") if name not in TIMES]:
        raise SystemExit(f"--times: there is no {unknown[0]}; there is {', '.join(TIMES)}")
    try:
        chosen = selected(options.scenario, options.without)
    except KemuError as error:
        raise SystemExit(str(error)) from None
    out = options.out or Path(tempfile.mkdtemp(prefix="kemu-unpatched-"))
    amount = options.seeds or options.runs
    total = bad = 0
    with Workers(options.jobs, limit_s=LIMIT_S) as executor:
        for name, path in chosen.items():
            for times in options.times.split(","):
                for variant, scenario in loader.variants(loader.load(path, None, TIMES[times])):
                    begun_s = time.monotonic()
                    settings = Settings(options.seed, runs=amount, canary=False, checks=counted(scenario))
                    strategies: list[Strategy] = [InOrder(options.seed)]
                    if not options.seeds:
                        strategies = registry.make(options.strategy, searches.Source.of(scenario), options.seed)
                    title = " ".join((name, times, *map(str, variant.values())))
                    folder = out / re.sub(r"[^\w.-]+", "-", title)
                    found = list(findings(scenario, strategies, settings, executor, folder))
                    total += amount
                    bad += len(found)
                    told = f"{len(found)} ways to fail" if found else "holds"
                    print(f"{title}: {amount} runs, {told}, {time.monotonic() - begun_s:.0f} s", flush=True)
                    for one in found:
                        print(f"    {one.runs} times {one.check} ({one.strategy}): {one.detail[:DETAIL_CHARACTERS]}")
                        print(f"        kemu run {shlex.quote(str(one.file))}", flush=True)
    print(f"{len(chosen)} scenarios, {total} runs: {bad} ways to fail")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
