"""``kemu report``: a run, or a matrix of them, as one HTML file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kemu.cli import exits


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "report",
        help="show a run in the browser: one HTML file",
        description="Make one HTML file that explains a run, or all variants of a matrix: who lost and why, as a "
        "picture and in words; nodes, queues, waiting, attempts, preemptions, watches, checks, every pod and event. "
        "The file stands alone: it loads nothing from the network.",
    )
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: report.html in the run folder")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the files of a trace are")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.cli import progress, reports

    with progress.waiting(sys.stderr, f"{options.run}: making the report"):
        file, size = reports.write(options.run, options.out, options.data)
    print(f"{file}: {size // 1000} kB")
    return exits.HOLDS
