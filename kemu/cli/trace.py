"""``kemu trace``: what a pod went through, as a waterfall; or all traces of a run to a collector."""

from __future__ import annotations

import argparse
from pathlib import Path

from kemu.cli import exits
from kemu.errors import KemuError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "trace",
        help="show what a pod went through; send a run's traces to Jaeger",
        description="Show the trace of one pod of a run as a waterfall, or send all traces of the run by OTLP.",
    )
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("pod", nargs="?", help="name, or namespace/name")
    parser.add_argument("--otlp", metavar="HOST:PORT", default="", help="send the traces there (OTLP over gRPC)")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.scenario.replays import folders

    if not options.pod and not options.otlp:
        raise KemuError("name a pod to show, or --otlp HOST:PORT to send all traces to")
    exit_code = exits.HOLDS
    if options.otlp:
        from kemu.telemetry import otlp

        for folder in folders(options.run):
            report = otlp.export_run(folder, options.otlp)
            print(f"{folder} to {options.otlp}: {report}")
            if report.dropped:
                exit_code = exits.FAILS
    if options.pod:
        from rich.console import Console

        from kemu.telemetry import waterfall

        waterfall.show(Console(), folders(options.run)[0], options.pod)
    return exit_code
