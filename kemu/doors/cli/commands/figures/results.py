"""``kemu results``: the tables of a sweep, a run or a matrix, by SQL, as text, CSV or JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kemu.doors.cli import exits
from kemu.errors import KemuError

TABLES = ("runs", "priorities", "pods", "attempts", "faults", "nodes")
_CONTENTS = " UNION ALL ".join(f"SELECT '{table}' AS \"table\", count(*) AS rows FROM {table}" for table in TABLES)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "results",
        help="ask the tables of a sweep, a run or a matrix by SQL: runs, pods, attempts, faults",
        description="Without --sql and --table: which tables there are. docs/results.md lists their columns.",
    )
    parser.add_argument("folder", type=Path, help="of kemu sweep or kemu run, or a Parquet file of results")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--sql", metavar="QUERY", help="of DuckDB: 'SELECT variant, avg(preemptions) FROM runs GROUP BY variant'"
    )
    what.add_argument("--table", choices=TABLES, help="a whole table")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV")
    form.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="write it there; to standard output by default")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli.commands.figures import query_answers
    from kemu.lab.sweep.results import folders, queries

    database = queries.Database(folders.of(options.folder))
    query = options.sql if options.sql is not None else f"SELECT * FROM {options.table}" if options.table else _CONTENTS
    form = "json" if options.json else "csv" if options.csv else "text"
    try:
        answer = database.ask(query)
        if options.out is None:
            query_answers.write(answer, form, sys.stdout)
        else:
            with options.out.open("w", encoding="utf-8", newline="") as file:
                query_answers.write(answer, form, file)
    except queries.QueryWrong as error:
        raise KemuError(f"--sql: {error}") from None
    except OSError as error:
        if options.out is None:
            raise
        raise KemuError(f"--out {options.out}: {error.strerror}") from None
    if query == _CONTENTS and form == "text" and options.out is None:
        print(f"\ncolumns: kemu results {options.folder} --sql 'DESCRIBE runs'; their meaning: docs/results.md")
    return exits.HOLDS
