"""``kemu replay``: run a recorded run again, and name the first event that differs."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

import kemu
from kemu.doors.cli import exits


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "replay",
        help="repeat a recorded run and compare every event",
        description="Run a recorded sim run again from its scenario and seed, and compare the two logs event by event.",
    )
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli import progress
    from kemu.lab.scenario.playing.replaying import replays
    from kemu.lab.up.virtual.replays import setting
    from kemu.runtime.words import counted

    with progress.waiting(sys.stderr, f"{options.run}: running it again"):
        found = replays.replay(options.run, options.data, setting)
    same = all(each.difference is None for each in found)
    if options.json:
        runs = [
            {
                "run": str(each.folder),
                "digest": each.digest,
                "events": each.events,
                "same": each.difference is None,
                "difference": None
                if each.difference is None
                else {
                    "event": each.difference.index,
                    "where": each.difference.where,
                    "recorded": each.difference.recorded,
                    "replayed": each.difference.replayed,
                    "fields": [asdict(one) for one in each.difference.fields],
                },
                "interrupted": each.interrupted,
                "broke": each.broke,
                **({"recordedBy": each.version} if each.version else {}),
            }
            for each in found
        ]
        print(json.dumps({"same": same, "runs": runs}))
    else:
        for each in found:
            events = counted(each.events, "event")
            if each.difference is not None:
                print(f"{each.folder}: {each.difference}")
                if each.version:
                    print(
                        f"It was recorded by kemu {each.version}; this is {kemu.__version__}. Runs of earlier versions "
                        "stay readable, and come again byte for byte only in the version that recorded them."
                    )
            elif each.interrupted:
                print(f"{each.folder}: identical as far as recorded, {events}; the run was interrupted")
            elif each.broke:
                print(f"{each.folder}: the same, {events}; it broke as recorded: {each.broke}")
            else:
                print(f"{each.folder}: the same, {events}, digest {each.digest}")
    return exits.HOLDS if same else exits.FAILS
