"""``kemu report``: a run, or a matrix of them, as one HTML file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits
from kemu.errors import KemuError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "report",
        help="show a run in the browser: one HTML file",
        description="Write one HTML file that explains a run, or all variants of a matrix: what went wrong and why, as "
        "a picture and in words; nodes, queues, waiting, attempts, preemptions, watches, checks, every pod "
        "and event. The file is self-contained: it loads nothing from the network.",
    )
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: report.html in the run folder")
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="show remedies side by side: the output of kemu compare --json, or the folder of its --out",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli import progress, reports
    from kemu.lab.sweep.results import journals
    from kemu.runtime.runlog import folders

    with progress.waiting(sys.stderr, f"{options.run}: making the report"):
        held = folders.held_in(options.run)
        if held is not None and held.kind in ("sweep", "search") and options.compare is not None:
            raise KemuError(f"{options.run}: --compare belongs to a run; this is a {held.kind}")
        if held is not None and held.kind == "sweep":
            try:
                file, size = _sweep(options.run, options.out or options.run / folders.REPORT_FILE, options.data)
            except journals.OtherSweep as error:
                raise KemuError(
                    f"{options.run}: {error.why}, so there is no page of this sweep: kemu results and kemu plot "
                    "read its tables, and kemu sweep makes it anew"
                ) from None
        else:
            file, size = reports.write(options.run, options.out, options.data, options.compare)
    print(f"{file}: {size // 1000} kB")
    return exits.HOLDS


MOST_RUNS = 4
"""Most runs of a sweep: variants whose first seed is shown as a run."""
MOST_SECONDS = 10.0
"""Real time. What took longer is not made again."""


def _sweep(folder: Path, file: Path, data: Path | None) -> tuple[Path, int]:
    """The figures of a sweep, and a run for some of its variants."""
    from kemu.doors.cli import finds
    from kemu.doors.cli.commands.figures import sweep_reports
    from kemu.lab.checks.history import windows
    from kemu.lab.sweep import cells
    from kemu.lab.sweep.engine import summaries
    from kemu.lab.sweep.engine.cell_tasks import CellSource
    from kemu.lab.sweep.engine.sweeps import Sweep
    from kemu.lab.tell.page import pages
    from kemu.runtime.runlog import folders

    experiment = _experiment(folder, data)
    with Sweep(experiment, folder) as sweep:
        found = summaries.of(sweep, folder / folders.TABLES_FILE)
        short = [one for one in sweep.ordered() if one.status == cells.DONE and one.seconds <= MOST_SECONDS]
    source, parts = CellSource.of(experiment), []
    for index, variant in enumerate(found["variants"][:MOST_RUNS]):
        cell = next((one.cell for one in short if one.cell.index == index), None)
        if cell is not None:
            command = sweep_reports.cell_command(sweep, cell, "kemu"), "makes it again, with a run folder"
            name = f"{variant['name']}, seed {cell.seed}"
            parts.append(finds.made(source.scenario(cell), name, [command], folder))
    if not parts:
        raise KemuError(f"{folder}: none of its runs was done within {MOST_SECONDS:.0f} s: there is none to show")
    claims = [f"{one['id']} {one['outcome']}" for one in found["claims"]]
    told = [f"{len(found['variants'])} variants, {found['cells']['total']} runs", windows.text(found), *claims]
    headline = "; ".join(filter(None, told))
    verdict = {"scenario": found["experiment"], "verdict": found["verdict"], "headline": headline}
    return file, pages.write(file, parts, verdict, {"sweep": {**found, "headline": headline}})


def _experiment(folder: Path, data: Path | None) -> Any:
    """The experiment as it was run; its files are beside the original, not beside this copy."""
    from kemu.lab.sweep.experiments import loader
    from kemu.lab.sweep.results import journals
    from kemu.runtime.runlog import folders

    copy, begun = folder / folders.EXPERIMENT_FILE, journals.begun_in(folder)
    try:
        text = copy.read_text(encoding="utf-8")
    except OSError as error:
        raise KemuError(f"{copy}: {error.strerror}") from None
    original = folders.shown(Path(begun["experiment"])) if "experiment" in begun else str(copy)
    return loader.loads(text, original, data or begun.get("data"))
