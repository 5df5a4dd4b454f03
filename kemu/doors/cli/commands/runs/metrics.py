"""``kemu metrics``: a run as Prometheus would have seen it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kemu.doors.cli import collectors, exits, parsers, run_folders
from kemu.errors import KemuError

if TYPE_CHECKING:
    from kemu.lab.telemetry.metrics import files

EVERY_S = 15
"""As Prometheus fetches metrics by default, in many clusters."""
RULES_EVERY_S = 5
"""Runs are short."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "metrics",
        help="write a run as metrics with the real components' names, for Prometheus",
        description="Write what Prometheus would have fetched from the components of a run: a file in OpenMetrics with "
        "the run's own times, which promtool tsdb create-blocks-from openmetrics takes.",
    )
    parser.add_argument("run", type=Path, help="a run folder")
    run_folders.add_variant(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file; default: metrics.om in the run folder")
    parser.add_argument(
        "--every",
        type=parsers.seconds,
        default=0.0,
        metavar="TIME",
        help=f"virtual time between two looks at the metrics; default: {EVERY_S}s, with --rules {RULES_EVERY_S}s",
    )
    parser.add_argument(
        "--at",
        metavar="now|TIME",
        default="",
        help="as if the run had just ended, or begun at 2026-01-31T12:00:00Z; default: at its own time",
    )
    parser.add_argument(
        "--rules",
        type=Path,
        metavar="FILE",
        help="write nothing, and say which alerts of this file of Prometheus' rules would have fired; needs promtool",
    )
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.lab.telemetry.metrics import files

    moment = collectors.moment(options.at)
    if options.rules and (options.out or options.at):
        raise KemuError("--rules: writes no file, so there is neither --out nor --at")
    chosen = run_folders.choose(options.run, options.variant)
    run_folders.tell_unfinished(chosen.folder)
    if chosen.heading:
        from rich.console import Console

        Console().print(chosen.heading, highlight=False)
    every_s = options.every or (RULES_EVERY_S if options.rules else EVERY_S)
    look = files.read(chosen.folder, every_s)
    if options.rules:
        _tell_alerts(look, options.rules, every_s)
    else:
        out = options.out or chosen.folder / "metrics.om"
        try:
            print(f"{out}: {files.write(look, out, moment)}")
        except OSError as error:
            raise KemuError(f"{out}: {error.strerror or error}") from None
    if not look.is_measured:
        print(
            "without apiserver_request_… and workqueue_…: the run has not logged them (kemu run --metrics)",
            file=sys.stderr,
        )
    return exits.HOLDS


def _tell_alerts(look: files.Look, file: Path, every_s: float) -> None:
    from kemu.lab.telemetry.metrics import rules

    fired = rules.fired(look.series.all(), file, every_s)
    for one in fired:
        labels = ", ".join(f"{name}={value}" for name, value in one.labels.items())
        print(f"{one.first_s:9.3f} s  {one.alert} fires until {one.last_s:.3f} s" + (f" ({labels})" if labels else ""))
    if not fired:
        print("no alert fires")
