"""``kemu explore``: searches for runs of a scenario that fail, and explains them."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits, failures, live_pages, parsers, programs
from kemu.errors import KemuError

DEFAULT_RUNS = 1000


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explore",
        help="search for runs of a scenario that fail",
        description="Run a scenario many times in virtual time, each time with different delays, faults and settings, "
        "and search for runs that fail. Each failure is shrunk, explained, and written as a scenario that "
        "fails by itself.",
        epilog="Exit codes: 0 nothing found, 1 found, 2 the input is wrong, 3 nothing found, but the search is "
        "inconclusive.",
    )
    parser.add_argument("scenario", help=parsers.SCENARIO)
    parser.add_argument(
        "--seed",
        type=parsers.whole_number,
        default=0,
        help="the seed of the search; the same seed gives the same search",
    )
    parser.add_argument("--runs", type=parsers.count, default=0, help=f"so many runs; without a limit {DEFAULT_RUNS}")
    parser.add_argument(
        "--time",
        type=parsers.seconds,
        default=0.0,
        metavar="TIME",
        help="maximum time, such as 90s or 5m; half of it is for shrinking",
    )
    parser.add_argument(
        "--failures", type=parsers.count, default=0, help="stop when this many kinds of failure are known"
    )
    parser.add_argument("--jobs", type=parsers.count, default=0, help="processes; default: one for each CPU")
    parser.add_argument("--ray", metavar="ADDRESS", help="use a Ray cluster: its address, or local for a temporary one")
    parser.add_argument(
        "--strategy", action="append", default=[], metavar="NAME", help="only this strategy; repeatable"
    )
    parser.add_argument(
        "--check", action="append", default=[], metavar="ID", help="only this check or expectation counts; repeatable"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: runs/NAME-explore-SEED")
    parser.add_argument("--force", action="store_true", help="replace a run in that folder")
    parser.add_argument("--resume", action="store_true", help="resume the search in the folder")
    parser.add_argument("--no-shrink", action="store_true", help="do not shrink failures")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="override a value below spec, as YAML; with informers.streams=perKind, kinds overtake one another",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    live_pages.add_to(parser)
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli import inputs
    from kemu.doors.cli.commands.runs import run
    from kemu.doors.cli.commands.searches import explore_reports
    from kemu.lab.exploration.searches import MOST_SHRUNK, Options, Search
    from kemu.lab.tell.explaining import reports

    options.store, seed, options.seed = None, options.seed, None
    scenario = inputs.load(options.scenario, options.data, run.overrides(options), quiet=options.json)
    if scenario.variants:
        paths = ", ".join(scenario.matrix)
        raise KemuError(f"{scenario.name} has a matrix; choose one of its variants with --set {paths}=…")
    runs = options.runs or (0 if options.time else DEFAULT_RUNS)
    out = options.out or Path("runs") / f"{scenario.name}-explore-{seed}"
    jobs = options.jobs or os.cpu_count() or 1
    search_options = Options(
        out,
        seed,
        runs,
        options.time,
        options.failures,
        jobs,
        tuple(options.strategy),
        tuple(options.check),
        not options.no_shrink,
        options.resume,
        options.force,
    )
    live = live_pages.Live(options)
    try:
        live.announce(lambda say: say())
        live.scenario(scenario.name, scenario.description, 0)
        executor = cluster(options.ray, jobs)
        with Search(
            scenario, search_options, data_dir=options.data, executor=executor, explain=reports.explain
        ) as search:
            with explore_reports.Progress(search, sys.stderr, live, quiet=options.json) as progress:
                for record in _until_interrupted(search.go()):
                    progress.take(record)
            found = progress.findings(itertools.islice(search.findings(), MOST_SHRUNK), options.data)
            kemu = programs.name()
            if options.json:
                list(found)
                print(json.dumps(search.data(kemu), ensure_ascii=False))
            else:
                explore_reports.show(search, found, kemu)
            progress.over(options.data)
            code = exits.BY_VERDICT[search.verdict()]
            if (crash := search.crash()) is not None:
                code = failures.tell_beside("a run failed by a bug in kemu", crash)
        live.stay()
    finally:
        live.close()
    return code


def cluster(address: str | None, jobs: int, limit_s: float = 0.0) -> Any:
    """None: processes of this machine. ``limit_s``: real time for one task; 0: the default."""
    if address is None:
        return None
    from kemu.lab.exploration.processes.queues import LIMIT_S
    from kemu.lab.exploration.processes.rays import RayWorkers

    return RayWorkers(None if address == "local" else address, jobs=jobs, limit_s=limit_s or LIMIT_S)


def _until_interrupted(records: Iterator[Any]) -> Iterator[Any]:
    """After Ctrl-C, the results so far are still shown."""
    with contextlib.suppress(KeyboardInterrupt):
        yield from records
