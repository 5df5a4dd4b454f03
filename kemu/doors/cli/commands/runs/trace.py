"""``kemu trace``: the spans of a pod as a waterfall, all traces sent to a collector, or the whole run for Perfetto."""

from __future__ import annotations

import argparse
from pathlib import Path

from kemu.doors.cli import collectors, exits, run_folders
from kemu.errors import KemuError
from kemu.lab.telemetry import runs


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "trace",
        help="show the trace of a pod; send a run's traces to Jaeger, or write them for Perfetto",
        description="Show the trace of one pod of a run as a waterfall, send all traces of the run by OTLP, or write "
        "what all nodes, actors and pods did as a Perfetto trace.",
    )
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("pod", nargs="?", help="name, or namespace/name")
    run_folders.add_variant(parser)
    parser.add_argument(
        "--perfetto", metavar="FILE", type=Path, help="write a trace for https://ui.perfetto.dev to this file"
    )
    collectors.add_to(parser)
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    if not options.pod and not options.otlp and not options.perfetto:
        raise KemuError("name a pod to show, --otlp HOST:PORT to send all traces to, or --perfetto FILE to write")
    if options.run_id and not options.otlp:
        raise KemuError("--run-id needs --otlp HOST:PORT: it is of the traces that are sent")
    collectors.check(options)
    exit_code = exits.HOLDS
    chosen = run_folders.choose(options.run, options.variant)
    run_folders.tell_unfinished(chosen.folder)
    sent: dict[Path, runs.Run] = {}
    if options.otlp:
        folders = run_folders.all_of(options.run) if options.variant is None else [chosen.folder]
        for folder, report in collectors.send(folders, options.otlp, collectors.manner(options, options.run_id)):
            print(f"{folder} to {options.otlp}: {report}")
            sent.setdefault(folder, report.run)
            if report.dropped:
                exit_code = exits.FAILS
    if options.perfetto or options.pod:
        from rich.console import Console

        console = Console()
        if chosen.heading:
            console.print(chosen.heading, highlight=False)
    if options.perfetto:
        from kemu.lab.telemetry.perfetto import files

        print(f"{options.perfetto}: {files.write(chosen.folder, options.perfetto)}")
        print("open it at https://ui.perfetto.dev; the page reads it in the browser and sends it nowhere")
    if options.pod:
        from kemu.lab.telemetry import waterfall

        trace = waterfall.show(console, chosen.folder, options.pod)
        if chosen.folder in sent:
            print(f"\nin the collector: trace {sent[chosen.folder].trace_id(trace.uid):032x}")
    return exit_code
