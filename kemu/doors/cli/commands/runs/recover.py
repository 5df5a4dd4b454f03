"""``kemu recover``: the log and verdict of a run whose process was killed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kemu.doors.cli import exits


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "recover",
        help="recover the log and the verdict of a run that was killed",
        description="Judge a run whose process was killed or interrupted, as far as it went. On Ray its log is made "
        "anew from what the cells and the driver have kept; what of that is missing is told, and the verdict is "
        "unknown then.",
    )
    parser.add_argument("run", type=Path, help="a run folder; of a matrix, that of one variant")
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="the Ray cluster of the run: fetch what its other machines have kept"
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.lab.scenario.playing.replaying import recoveries
    from kemu.runtime.words import counted

    found = recoveries.recover(options.run, options.ray)
    verdict = found.verdict
    if options.json:
        print(json.dumps(verdict))
    else:
        source = "made anew from its segments" if found.from_segments else "as it was left"
        events = counted(found.judged.history.kinds.total(), "event")
        print(f"{options.run}: the log, {source}, goes to {verdict['virtual_s']:g} s and has {events}")
        for missing in verdict.get("incomplete", ()):
            print(f"missing: {missing}")
        print(verdict["headline"])
    return exits.BY_VERDICT[verdict["verdict"]]
