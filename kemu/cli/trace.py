"""``kemu trace``: the spans of a pod as a waterfall, or all traces of a run sent to a collector."""

from __future__ import annotations

import argparse
import json
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
    parser.add_argument(
        "--variant",
        metavar="N|TEXT",
        help="of a matrix: its number, or words such as nomination=off; the first one by default",
    )
    parser.add_argument("--otlp", metavar="HOST:PORT", default="", help="send the traces there (OTLP over gRPC)")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.runlog.frames import FILE_NAME
    from kemu.scenario.playing.replays import folders

    if not options.pod and not options.otlp:
        raise KemuError("name a pod to show, or --otlp HOST:PORT to send all traces to")
    exit_code = exits.HOLDS
    found = folders(options.run)
    if not (found[0] / FILE_NAME).is_file():
        raise KemuError(f"{options.run}: not a run folder: it has no {FILE_NAME}")
    if options.variant is not None:
        found = [_variant(found, options.variant)]
    if options.otlp:
        from kemu.telemetry import otlp

        for folder in found:
            report = otlp.export_run(folder, options.otlp)
            print(f"{folder} to {options.otlp}: {report}")
            if report.dropped:
                exit_code = exits.FAILS
    if options.pod:
        from rich.console import Console

        from kemu.telemetry import waterfall

        console = Console()
        if found[0] != options.run:
            text = f"variant {_number(found[0])}: {_name(found[0])}"
            others = len(folders(options.run)) - 1
            if options.variant is None and others:
                text += f"  [dim](--variant chooses another of {others + 1})[/]"
            console.print(text, highlight=False)
        waterfall.show(console, found[0], options.pod)
    return exit_code


def _number(folder: Path) -> int:
    return int(folder.name.removeprefix("variant-"))


def _name(folder: Path) -> str:
    """``queue=fifo nomination=off``, from the verdict that the run left."""
    from kemu.scenario.playing import runner

    try:
        verdict = json.loads((folder / runner.VERDICT_FILE).read_text())
    except (OSError, ValueError):
        return ""  # interrupted before it was judged
    return runner.variant_name(verdict.get("variant", {}))


def _variant(found: list[Path], wanted: str) -> Path:
    """The folder of a variant, by its number or by words of its name. Raises KemuError."""
    variants = {folder: _name(folder) for folder in found if folder.name.startswith("variant-")}
    if not variants:
        raise KemuError(f"--variant {wanted}: this is no run of a matrix")
    chosen = [folder for folder in variants if str(_number(folder)) == wanted]
    words = wanted.split()
    chosen = chosen or [folder for folder, name in variants.items() if words and set(words) <= set(name.split())]
    if len(chosen) == 1:
        return chosen[0]
    listed = "".join(f"\n  {_number(folder)}  {name}" for folder, name in variants.items())
    raise KemuError(f"--variant {wanted}: {'no' if not chosen else 'more than one'} variant is so; there are{listed}")
