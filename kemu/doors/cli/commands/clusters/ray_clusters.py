"""``kemu ray``: a Ray cluster that stays up between runs, so that they need not start one."""

from __future__ import annotations

import argparse
import json
import sys

from kemu.doors.cli import exits, parsers

WORKERS = 5
"""As many processes as a run has without settings of its own."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "ray", help="keep Ray running between runs", description="Runs on Ray start sooner on a cluster that stands."
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    up = actions.add_parser("up", help="start Ray on this machine, for the runs to come")
    up.add_argument(
        "--workers",
        type=parsers.count,
        default=WORKERS,
        metavar="N",
        help=f"processes to keep ready for cells (default: {WORKERS})",
    )
    up.set_defaults(command=up_command)
    down = actions.add_parser("down", help="end it, with all of its processes and files")
    down.set_defaults(command=down_command)
    status = actions.add_parser("status", help="whether it runs, what it takes, and what earlier ones have left")
    status.set_defaults(command=status_command)
    for action in (up, down, status):
        action.add_argument("--json", action="store_true", help="print one JSON object")


def up_command(options: argparse.Namespace) -> int:
    from kemu.runtime.ray.driver import standing

    cluster, is_new = standing.up(options.workers)
    if options.json:
        print(json.dumps({"new": is_new, "address": cluster.address, "workers": cluster.workers, "pid": cluster.pid}))
    else:
        runs = "runs" if is_new else "runs already"
        print(f"Ray {runs} at {cluster.address}, with {cluster.workers} workers; kemu ray down ends it")
    return exits.HOLDS


def down_command(options: argparse.Namespace) -> int:
    from kemu.runtime.ray.driver import standing

    was_there, left = standing.down()
    if options.json:
        print(json.dumps({"ended": was_there, "left": left}))
    else:
        print("Ray has ended" if was_there else "there was no Ray to end")
        for each in left:
            print(f"left behind: {each}", file=sys.stderr)
    return exits.UNKNOWN if left else exits.HOLDS


def status_command(options: argparse.Namespace) -> int:
    from kemu.runtime.ray.driver import standing

    status = standing.status()
    cluster = status.cluster
    if options.json:
        found = {
            "runs": status.lives,
            "unfit": status.unfit,
            "address": cluster.address if cluster is not None else "",
            "workers": cluster.workers if cluster is not None else 0,
            "processes": status.processes,
            "memory_bytes": status.memory_bytes,
            "left": status.leftovers,
        }
        print(json.dumps(found))
        return exits.HOLDS
    if cluster is None:
        print("no Ray runs between runs; kemu ray up starts one")
    elif not status.lives:
        print(f"Ray at {cluster.address} is gone; kemu ray down clears up after it")
    else:
        memory = f"{status.memory_bytes / 2**20:.0f} MiB"
        print(f"Ray runs at {cluster.address}: {cluster.workers} workers, {status.processes} processes, {memory}")
        if status.unfit:
            print(f"runs do not use it: {status.unfit}; kemu ray down, then kemu ray up")
    for each in status.leftovers:
        print(f"left by an earlier one: {each}")
    return exits.HOLDS
