"""``kemu compare``: remedies side by side."""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kemu.doors.cli import exits, parsers, programs
from kemu.errors import KemuError

if TYPE_CHECKING:
    from rich.console import Console

    from kemu.lab.sweep.experiments.experiments import Experiment
    from kemu.lab.sweep.remedies.comparing import Comparison, Figure, Row

_TOLD = {"better": "green", "worse": "red", "other": "yellow", "unclear": "dim"}
_SEEDS = 10


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare remedies: a scenario with and without changes",
        description="Run a scenario unchanged and with each change, with the same seeds, and show which metrics "
        "improve and which worsen: the mean difference with its 95 % interval.",
        epilog="Exit codes: 0 a change meets the goal with every seed (or there is no goal), 1 none does, 2 the "
        "input is wrong.",
    )
    parser.add_argument("scenario", help=parsers.SCENARIO)
    parser.add_argument(
        "--with",
        dest="remedies",
        action="append",
        required=True,
        metavar="FILE[,FILE…]",
        help="objects to add to the scenario or to change in it, or parts of a scenario; files separated by "
        "commas are applied together; repeatable",
    )
    parser.add_argument("--seeds", type=parsers.count, default=_SEEDS, help=f"number of seeds; default: {_SEEDS}")
    parser.add_argument("--seed", type=parsers.whole_number, help="the first one; default: the scenario's")
    parser.add_argument("--goal", default="", metavar="GOAL", help="the goal, such as 'evictions < 10'")
    parser.add_argument("--jobs", type=parsers.count, default=0, help="processes; default: one for each CPU")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="as for kemu run")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    parser.add_argument("--out", type=Path, help="a folder that keeps the results of all runs, as kemu sweep does")
    parser.add_argument("--force", action="store_true", help="with --out: replace what the folder holds")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write a page of the comparison, with a run of each"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    import yaml

    from kemu.doors.cli import inputs
    from kemu.doors.cli.commands.runs import run
    from kemu.doors.cli.progress import Bar
    from kemu.lab.exploration import workers
    from kemu.lab.sweep.engine import sweeps
    from kemu.lab.sweep.remedies import changes, comparing

    if options.force and options.out is None:
        raise KemuError("--force needs --out: it says which folder's results are replaced")
    wanted = comparing.goal(options.goal) if options.goal else None
    settings = run.settings(options.set) | ({} if options.seed is None else {"seed": options.seed})
    scenario = inputs.load(options.scenario, options.data, settings, quiet=True)
    spec = yaml.load(scenario.to_yaml(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))["spec"]
    remedies = [changes.read(each, spec) for each in options.remedies]
    made = comparing.experiment(scenario, remedies, options.seeds, "" if options.data is None else str(options.data))
    done = [0]
    bar = Bar(sys.stderr, lambda elapsed_s: f"{done[0]} of {made.size} runs, {elapsed_s:.0f} s")

    def progress(over: int, _: int) -> None:
        done[0] = over

    jobs = options.jobs or os.cpu_count() or 1
    executor: workers.Executor = (
        workers.Workers(jobs, limit_s=sweeps.limit_s(made)) if jobs > 1 and made.size > 1 else workers.Inline()
    )
    with tempfile.TemporaryDirectory(prefix="kemu-compare-") as temporary:
        try:
            bar.start()
            out = options.out or Path(temporary)
            found = comparing.compare(made, out, executor, wanted, progress, remedies, force=options.force)
        finally:
            bar.close()
            executor.close()
    if options.report is not None:
        _report(options.report, made, found, options.scenario)
    if options.json:
        print(json.dumps(found.data()))
    else:
        _show(found)
    return exits.HOLDS if wanted is None or found.reached else exits.FAILS


MOST_RUNS = 4
"""Most runs of a page: of the scenario as it is, and of the remedies, the best first."""


def _report(file: Path, made: Experiment, found: Comparison, source: str) -> None:
    """The page of a comparison: the run with the first seed, unchanged and with remedies."""
    from kemu.doors.cli import reports
    from kemu.doors.cli.progress import waiting
    from kemu.lab.sweep.engine.cell_tasks import CellSource

    best, _ = found.best
    cells = list(made.cells())[: len(made.variants)]
    cells = [cells[0], *sorted(cells[1:], key=lambda cell: found.rows[cell.index].name != best)]
    runs = CellSource.of(made)
    with waiting(sys.stderr, f"{file}: making the page"):
        parts = []
        for cell in cells[:MOST_RUNS]:
            row = found.rows[cell.index]
            command = f"{programs.name()} run {shlex.quote(source)} --seed {cell.seed}"
            commands = [] if cell.index else [(command, "makes it again, with a run folder")]
            parts.append(reports.made(runs.scenario(cell), row.name, commands, file.parent))
        size = reports.write_comparison(file, parts, found.data())
    print(f"{file}: {size // 1000} kB", file=sys.stderr)


def _show(found: Comparison) -> None:
    from rich.console import Console
    from rich.text import Text

    from kemu.lab.tell import layouts, people
    from kemu.runtime.words import counted

    console = Console(highlight=False)
    base, *remedies = found.rows
    width = max(map(len, found.metrics), default=0)

    def line(lead: str, body: str) -> None:
        """What does not fit goes on below, where the body begins."""
        lines = layouts.hanging(Text.from_markup(lead), Text.from_markup(body), console.width)
        layouts.show(console, lines)

    _head(console, base, found)
    for name in found.metrics:
        mean = base.figures[name].mean
        line(f"  {name:<{width}}  ", "-" if mean is None else people.figure(name, mean.estimate))
    for row in remedies:
        console.print()
        _head(console, row, found)
        told = {name: _changed(name, base.figures[name], row.figures[name]) for name in found.metrics}
        for outcome, colour in _TOLD.items():
            for name in found.metrics:
                if row.figures[name].outcome == outcome and told[name]:
                    line(f"  [{colour}]{outcome:<7}[/]  {name:<{width}}  ", told[name])
        same = [name for name in found.metrics if row.figures[name].outcome == "same" or not told[name]]
        if same:
            line("  [dim]same     [/]", f"[dim]{', '.join(same)}[/]")
    best, why = found.best
    if best:
        console.print()
        line("", f"[bold]best: {best}[/]  {why}")
    console.print()
    line("", f"{counted(len(found.seeds), 'seed')} each; in brackets: 95 % intervals of paired differences")


def _head(console: Console, row: Row, found: Comparison) -> None:
    text = f"[bold]{row.name}[/]"
    if found.goal is not None:
        good = row.met == len(found.seeds)
        mark = "[green]✓" if good else "[red]✗"
        text += f"  {mark} {found.goal.text}: with {row.met} of {len(found.seeds)} seeds[/]"
    if row.failed:
        text += f"  {row.failed} runs without figures"
    console.print(text)


def _changed(name: str, base: Figure, figure: Figure) -> str:
    """Empty: by so little that it cannot be told."""
    from kemu.lab.tell import people

    if base.mean is None or figure.mean is None or figure.difference is None:
        return "-"
    by = people.figure(name, figure.difference.estimate, signed=True)
    if not people.differs(by):
        return ""
    figures = f"{people.figure(name, base.mean.estimate)} → {people.figure(name, figure.mean.estimate)}"
    if not math.isfinite(figure.difference.low):
        return f"{figures}  {by}"
    low, high = (people.figure(name, one, signed=True) for one in (figure.difference.low, figure.difference.high))
    return f"{figures}  {by}" if low == high else f"{figures}  {by} ({low} to {high})"
