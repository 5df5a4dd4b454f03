"""``kemu csv``: the figures of a run as a CSV file."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from kemu.doors.cli import exits, run_folders
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "csv",
        help="print the figures of a run, one line for each pod or variant",
        description="Print the figures of a run as CSV: one line for each pod, with what makes its variant if it is "
        "of a matrix, and the columns of the table pods of kemu results; or one for each variant. Pods that were never "
        "bound have censored true: they waited at least waited_s.",
    )
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--variants", action="store_true", help="one line for each variant (or for the run)")
    parser.add_argument("--out", type=Path, help="the output file; default: standard output")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    found = run_folders.all_of(options.run)
    # Variants may have had other reasons to refuse a request, or other priorities: columns are those of all of them.
    rows = list(_variants(found)) if options.variants else _pods(found)
    if options.out is None:
        write(rows, sys.stdout)
        return exits.HOLDS
    try:
        with options.out.open("w", encoding="utf-8", newline="") as file:
            write(rows, file)
    except OSError as error:
        raise KemuError(f"--out {options.out}: {error.strerror}") from None
    return exits.HOLDS


def write(rows: Iterable[dict[str, Any]], file: TextIO) -> None:
    """Numbers have full precision; unknown values are empty."""
    writer = None
    if isinstance(rows, list):
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
        writer.writeheader()
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)


def _variants(found: list[Path]) -> Iterator[dict[str, Any]]:
    from kemu.lab.tell import figures
    from kemu.runtime.runlog import folders

    for folder in found:
        verdict = folders.verdict_of(folder)
        yield {**_chosen(verdict), **figures.of_verdict(verdict)}


def _pods(found: list[Path]) -> Iterator[dict[str, Any]]:
    from kemu.lab.sweep.results import rows
    from kemu.lab.tell import stories
    from kemu.runtime.runlog import folders

    for folder in found:
        chosen = _chosen(folders.verdict_of(folder)) if len(found) > 1 else {}
        for row in rows.pods(stories.history_of(folder)):
            yield {**chosen, **{name: _cell(value) for name, value in row.items()}}


def _cell(value: Json) -> Json:
    return str(value).lower() if isinstance(value, bool) else value


def _chosen(verdict: dict[str, Any]) -> dict[str, Any]:
    """Path or parameter → value; JSON for values that are not scalars."""
    return {
        name: value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)
        for name, value in verdict.get("variant", {}).items()
    }
