"""The options of commands that send traces to a collector, and the sending."""

from __future__ import annotations

import argparse
import datetime as dt
import time
from collections.abc import Iterable
from pathlib import Path

from kemu.errors import KemuError
from kemu.lab.telemetry import exports, runs

_SECOND_NS = 1_000_000_000


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--otlp", metavar="HOST:PORT", default="", help="send the traces to this address (OTLP over gRPC)"
    )
    parser.add_argument(
        "--at",
        metavar="now|TIME",
        default="",
        help="with --otlp: send the traces as if the run had just ended, or begun at 2026-01-31T12:00:00Z",
    )
    parser.add_argument(
        "--run-id",
        metavar="ID",
        default="",
        help="the id of the run in its traces (kemu.run): runs with different ids never mix",
    )
    parser.add_argument(
        "--api-calls", action="store_true", help="with --otlp: also send client and server spans of each API call"
    )


def check(options: argparse.Namespace) -> None:
    """Raises KemuError for invalid values, before the run."""
    if not options.otlp:
        for given, name in ((options.at, "--at"), (options.api_calls, "--api-calls")):
            if given:
                raise KemuError(f"{name} needs --otlp HOST:PORT: it says how traces are sent")
    moment(options.at)
    if options.run_id:
        runs.checked(options.run_id)


def manner(options: argparse.Namespace, run_id: str = "") -> exports.Manner:
    """``run_id`` replaces the one in the log."""
    return exports.Manner(moment(options.at), run_id, options.api_calls)


def send(folders: Iterable[Path], endpoint: str, how: exports.Manner) -> Iterable[tuple[Path, exports.ExportReport]]:
    """Raises KemuError when the endpoint cannot be reached, RunLogError when a folder cannot be read."""
    from kemu.lab.telemetry import otlp

    for folder in folders:
        yield folder, otlp.export_run(folder, endpoint, how)


def moment(text: str) -> exports.Moment | None:
    if not text:
        return None
    if text == "now":
        return exports.Moment(time.time_ns(), is_end=True)
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise KemuError(f"--at {text}: write now, or a time as 2026-01-31T12:00:00Z") from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    whole = round(found.timestamp() * 1000) * (_SECOND_NS // 1000)
    if whole < 0:
        raise KemuError(f"--at {text}: lies before 1970")
    return exports.Moment(whole, is_end=False)
