"""``kemu step``: advances the time of a cluster of ``kemu up --virtual``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits, parsers
from kemu.errors import KemuError

LIMIT = "1h"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "step",
        help="advance time in a cluster of kemu up --virtual",
        description="Advance the time of a cluster with virtual time (kemu up --virtual): by a duration, until a "
        "condition holds, or until nothing is left to do. Clients get time to react to each event.",
        epilog="Exit codes: 0 time has passed, and the condition holds; 1 it does not hold within the limit; 2 the"
        " input is wrong, or the cluster does not respond.",
    )
    parser.add_argument(
        "time",
        nargs="?",
        default="",
        metavar="TIME",
        help=f"10s, 5m; of --until and --idle the limit, {LIMIT} by default",
    )
    parser.add_argument(
        "--until",
        default="",
        metavar="CONDITION",
        help="'pod/web running', 'node/n1 NotReady', 'deployment/web rolledOut', 'pod/web-* .status.phase=Running'; "
        "several with commas",
    )
    parser.add_argument("--idle", action="store_true", help="until only periodic work such as heartbeats is left")
    parser.add_argument(
        "-n", "--namespace", default="default", help="the namespace of the objects of --until; default: default"
    )
    parser.add_argument(
        "--timeout",
        type=parsers.seconds,
        default=60.0,
        metavar="TIME",
        help="real time after which the command gives up if the cluster's clock does not advance; default: 60s",
    )
    parser.add_argument(
        "--seen-by",
        default="",
        metavar="AGENT",
        help="with --until: wait until watches of this client have delivered the objects; its User-Agent up to "
        "the first space, which may be a pattern",
    )
    parser.add_argument(
        "--real-limit",
        type=parsers.seconds,
        default=0.0,
        metavar="TIME",
        help="maximum real time of the command; default: no limit",
    )
    add_remote(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def add_remote(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="the kubeconfig that kemu up wrote; default: KUBECONFIG, or ~/.kube/config",
    )


def command(options: argparse.Namespace) -> int:
    from kemu.emulated.settings import values
    from kemu.lab.up import remotes
    from kemu.lab.up.virtual import conditions

    if options.seen_by and not options.until:
        raise KemuError("--seen-by needs --until")
    if options.until and options.idle:
        raise KemuError("--until and --idle cannot stand beside each other")
    if not (options.time or options.until or options.idle):
        raise KemuError("how long? kemu step 10s, kemu step --until 'pod/web running', kemu step --idle")
    try:
        seconds = values.duration_ns(options.time or LIMIT) / 1e9
    except ValueError as error:
        raise KemuError(f"TIME: {error}") from None
    if options.until:
        conditions.parse(options.until, options.namespace)
    remote = remotes.Remote(options.kubeconfig or remotes.default_file())
    asked = {
        "seconds": seconds,
        "until": options.until,
        "idle": options.idle,
        "namespace": options.namespace,
        "seen_by": options.seen_by,
        "real_s": options.real_limit,
    }
    found = remote.step(asked, options.timeout)
    if found["ended"] == "late":
        raise KemuError(remotes.late(found, options.real_limit))
    reached = not options.until or found["ended"] == "reached"
    if options.json:
        print(json.dumps(found))
    else:
        print(_told(options, found))
    if found.get("hurried"):
        text = "clients never fell silent, so that time went on without waiting for them"
        print(f"kemu: {text} (--settle of kemu up): {found['hurried']} times", file=sys.stderr)
        for told in found.get("restless", ()):
            print(f"kemu: {told}", file=sys.stderr)
    return exits.HOLDS if reached else exits.FAILS


def _told(options: argparse.Namespace, found: Mapping[str, Any]) -> str:
    text = f"{found['passed_s']:.3f} s have passed; it is {found['now_s']:.3f} s"
    if options.until:
        return f"{options.until}: {'holds' if found['ended'] == 'reached' else 'does not hold'}; {text}"
    return f"nothing is left to do; {text}" if found["ended"] == "idle" else text
