"""The process that serves the page. ``python -m kemu.lab.tell.live PORT``: tells its address, or what is wrong, in a
line of JSON on standard output, and hears from the command that started it on standard input (:mod:`processes`)."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.tell.live import causes
from kemu.lab.tell.live.runs import GOING_ON, LOST, Runs
from kemu.lab.tell.live.servers import Server

NICENESS = 5
"""The run comes first where there are not enough cores."""


def main(arguments: list[str]) -> int:
    # Ctrl-C is for the command, which ends this process when it has closed its log.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    runs = Runs(finds_causes=True)
    try:
        server = Server(runs, int(arguments[0]))
    except KemuError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 2
    threading.Thread(target=_hear, args=(runs, server), daemon=True).start()
    threading.Thread(target=runs.follow, daemon=True).start()
    threading.Thread(target=causes.follow, args=(runs,), daemon=True).start()
    print(json.dumps({"url": server.url}), flush=True)
    server.run()
    runs.stop()
    return 0


def _hear(runs: Runs, server: Server) -> None:
    """What the command tells, until it ends."""
    try:
        for line in sys.stdin:
            _take(runs, json.loads(line))
    finally:
        if runs.phase == GOING_ON:
            runs.end(LOST, "kemu has ended without a word")
        server.stop()


def _take(runs: Runs, told: Mapping[str, Any]) -> None:
    match told["what"]:
        case "scenario":
            runs.title, runs.description, runs.count = told["name"], told["description"], told["runs"]
        case "search":
            runs.search = told["state"]
        case "begin":
            runs.begin(Path(told["folder"]), told["name"], told["duration_s"])
        case "judged":
            runs.judged()
        case "explained":
            commands = [(command, does) for command, does in told["commands"]]
            runs.explained(told["run"], told["explanation"], commands, told["causes"])
        case "end":
            runs.end(told["phase"], told["text"], told["verdict"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
