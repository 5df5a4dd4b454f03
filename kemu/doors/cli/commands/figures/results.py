"""``kemu results``: the tables of a sweep, a run or a matrix, by SQL, as text, CSV or JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from kemu.doors.cli import exits
from kemu.errors import KemuError

TABLES = ("runs", "priorities", "pods", "attempts", "faults", "nodes")
_CONTENTS = " UNION ALL ".join(f"SELECT '{table}' AS \"table\", count(*) AS rows FROM {table}" for table in TABLES)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "results",
        help="query the tables of a sweep, a run or a matrix by SQL: runs, pods, attempts, faults",
        description="Without --sql and --table: which tables there are. docs/results.md lists their columns.",
    )
    parser.add_argument("folder", type=Path, help="of kemu sweep or kemu run, or a Parquet file of results")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--sql", metavar="QUERY", help="of DuckDB: 'SELECT variant, avg(preemptions) FROM runs GROUP BY variant'"
    )
    what.add_argument("--table", choices=TABLES, help="print a whole table")
    what.add_argument(
        "--means",
        nargs="*",
        metavar="METRIC",
        help="means over the seeds with 95 %% intervals, a row for each variant: waiting.p99_s, or "
        "'waiting.p99_s(priority=10)'; default: the metrics of the experiment",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV")
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--latex", action="store_true", help="print a tabular for LaTeX, with the package booktabs")
    parser.add_argument(
        "--name",
        nargs=2,
        action="append",
        default=[],
        metavar=("OLD", "NEW"),
        help="--latex: what stands in place of a heading or a value; may be given again",
    )
    parser.add_argument("--out", type=Path, help="the output file; default: standard output")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli.commands.figures import mean_tables, query_answers
    from kemu.lab.sweep.results import folders, queries

    form = "json" if options.json else "csv" if options.csv else "latex" if options.latex else "text"
    if options.name and not (form == "latex" and options.means is not None):
        raise KemuError("--name needs --means and --latex")
    database = queries.Database(folders.of(options.folder))
    query = options.sql if options.sql is not None else f"SELECT * FROM {options.table}" if options.table else _CONTENTS
    try:
        if options.means is None:
            answer = database.ask(query)
        else:
            means = mean_tables.of(options.folder, options.means)
            if form == "latex":
                _write(options.out, lambda file: file.write(mean_tables.latex(means, dict(options.name))))
                return exits.HOLDS
            answer = mean_tables.answer(means, form)
        _write(options.out, lambda file: query_answers.write(answer, form, file))
    except queries.QueryWrong as error:
        raise KemuError(f"--sql: {error}") from None
    except OSError as error:
        if options.out is None:
            raise
        raise KemuError(f"--out {options.out}: {error.strerror}") from None
    if query == _CONTENTS and options.means is None and form == "text" and options.out is None:
        print(f"\ncolumns: kemu results {options.folder} --sql 'DESCRIBE runs'; their meaning: docs/results.md")
    return exits.HOLDS


def _write(out: Path | None, write: Callable[[TextIO], object]) -> None:
    if out is None:
        write(sys.stdout)
        return
    with out.open("w", encoding="utf-8", newline="") as file:
        write(file)
