"""``kemu conformance``: compares kemu's decisions with those of Kubernetes, recorded or live."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import sys
from pathlib import Path

from kemu.doors.cli import parsers
from kemu.errors import KemuError

_SHOWN = 5
"""How many disagreements are printed; all of them are in the output of ``--json``."""
_ROWS = 20
"""How many lines of each."""
_LIVE, _GATES = "live", "gates"
_PODS = 200


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "conformance",
        help="compare kemu's decisions with those of Kubernetes, recorded or live",
        description="Answer recorded cases with kemu's own code and compare; or, with live, give the same pods to the "
        "real kube-scheduler and to kemu's, on one cluster; or, with gates, say what kemu does about each feature gate "
        "of Kubernetes. Exits with 1 where an answer differs.",
    )
    parser.add_argument("kind", help=f"what the cases are about: kubelet, scheduler or timeline; {_LIVE}; or {_GATES}")
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="recorded cases (.jsonl or .jsonl.gz); gates: the list of another version (versioned_feature_list.yaml)",
    )
    parser.add_argument(
        "--pods",
        type=parsers.count,
        default=_PODS,
        metavar="N",
        help="live: how many decisions (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="live: of clusters and pods (default: 1)")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="live: on that cluster, an empty one without a scheduler",
    )
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
    from kemu.lab.conformance import agreements, case_files, registry

    if options.kind == _LIVE:
        return _live(options)
    if options.kind == _GATES:
        return _gates(options)
    if not options.files:
        raise KemuError("no FILE of recorded cases; docs/recording.md says how to make some")
    if options.kind not in registry.names():
        raise KemuError(f"no kind of cases {options.kind!r}; there are {', '.join(registry.names())}")
    kind = registry.kind(options.kind)
    # Read all files first: a bad one is reported before minutes of comparing.
    questions = [case for path in options.files for case in case_files.read(path)]
    report = agreements.judge(kind, questions, jobs=options.jobs)
    print(json.dumps(report.to_json(), ensure_ascii=False)) if options.json else _print(report)
    return 0 if report.agree == report.total else 1


def _live(options: argparse.Namespace) -> int:
    import asyncio

    from kemu.emulated.bridge import connections
    from kemu.lab.conformance.live import sessions

    if options.files:
        raise KemuError("live takes no FILE: it asks the real scheduler")
    connections.packages()
    kubeconfig = options.kubeconfig.resolve() if options.kubeconfig is not None else None
    say = _quiet if options.json or not sys.stderr.isatty() else _progress
    report = asyncio.run(sessions.compare(options.pods, options.seed, kubeconfig=kubeconfig, say=say))
    if options.json:
        print(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        for line in report.lines(_SHOWN):
            print(line)
    return 0 if report.is_alike else 1


def _gates(options: argparse.Namespace) -> int:
    from kemu.lab.conformance import gates

    known = gates.known()
    if options.files:
        differences = [line for file in options.files for line in gates.differences(known, gates.read(file, str(file)))]
        if options.json:
            print(json.dumps({"version": known.version, "differences": differences}))
        else:
            print("\n".join(differences) or f"the gates of {known.version}")
        return 1 if differences else 0
    if options.json:
        rows = [{**dataclasses.asdict(one), "default": one.default} for one in known]
        print(json.dumps({"version": known.version, "summary": gates.summary(known), "gates": rows}))
        return 0
    longest = max(len(one.name) for one in known)
    for one in known:
        print(f"{one.name:{longest}}  {one.default:18}  {one.word:7}  {one.note}".rstrip())
    print(f"{known.version}: {gates.summary(known)}")
    return 0


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _quiet(text: str) -> None: ...


def _print(report: object) -> None:
    from kemu.lab.conformance import agreements

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
