"""``kemu conformance``: whether kemu decides as Kubernetes does, on recorded decisions of the real code."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

from kemu.cli import parsers
from kemu.errors import KemuError

_SHOWN = 5
"""How many disagreements are printed; all of them are in the output of ``--json``."""
_ROWS = 20
"""How many lines of each."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "conformance",
        help="compare kemu's decisions with recorded ones of Kubernetes",
        description="Answer recorded cases with kemu's own code and compare. Exits with 1 where an answer differs.",
    )
    parser.add_argument("kind", help="what the cases are about: kubelet, scheduler or timeline")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="recorded cases (.jsonl or .jsonl.gz)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--jobs",
        type=parsers.count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes that answer (default: all CPUs)",
    )
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.conformance import agreements, case_files, registry

    if options.kind not in registry.names():
        raise KemuError(f"no kind of cases {options.kind!r}; there are {', '.join(registry.names())}")
    kind = registry.kind(options.kind)
    # Read all files first: a bad one is reported before minutes of comparing.
    questions = [case for path in options.files for case in case_files.read(path)]
    report = agreements.judge(kind, questions, jobs=options.jobs)
    print(json.dumps(report.to_json(), ensure_ascii=False)) if options.json else _print(report)
    return 0 if report.agree == report.total else 1


def _print(report: object) -> None:
    from kemu.conformance import agreements

    assert isinstance(report, agreements.Report)
    width = max(60, shutil.get_terminal_size((120, 24)).columns)
    longest = max(len(name) for name in report.families)
    for name, tally in report.families.items():
        percent = 100 * tally.agree / tally.total
        print(f"{name:{longest}}  {tally.agree:>5}/{tally.total:<5} {percent:6.2f} %")
    for one in report.disagreements[:_SHOWN]:
        print(f"\n{one.id}")
        for difference in one.differences[:_ROWS]:
            print(f"  {difference}"[:width])
        rows = agreements.side_by_side(one, width - 2)
        if rows:
            print("  recorded | kemu")
        for row in rows[:_ROWS]:
            print(f"  {row}")
        if len(rows) > _ROWS:
            print(f"  … {len(rows) - _ROWS} more lines")
    if len(report.disagreements) > _SHOWN:
        print(f"\n{len(report.disagreements) - _SHOWN} more disagreements: see --json")
    print(f"agreement: {report.agree}/{report.total}")
