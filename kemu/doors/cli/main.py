"""The entry point: selects the command, and handles its errors (:mod:`kemu.doors.cli.failures`).

Exit codes: 0 holds, 1 a check or an expectation failed, 2 the input is wrong, 3 unknown, 4 the user's own code
or kemu raised, 130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import kemu
from kemu.doors.cli import exits, failures, pipes
from kemu.doors.cli.parsers import Parser
from kemu.errors import LogCutWarning
from kemu.runtime import garbage, threads

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    try:
        return exits.heard(_main(arguments))
    finally:
        if arguments is None:
            gc.freeze()  # else the interpreter would look for garbage in all there is, three times, before it ends


def _main(arguments: Sequence[str] | None) -> int:
    if arguments is None:
        threads.one_by_default()
        garbage.look_rarely()
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = argparse.Namespace()
    if arguments is None:
        _answer_sigterm()
        _tell_of_cut_logs()
    with pipes.outlived():
        try:
            known = parser()
            options = known.parse_args(words)
            options.is_program = arguments is None
            options.parser = known
            options.word = next((word for word in words if not word.startswith("-")), "")
            command: Command | None = getattr(options, "command", None)
            if command is None:
                known.print_help()
                return exits.INPUT
            return command(options)
        except (Exception, KeyboardInterrupt) as error:
            return failures.tell(failures.of(error, options), as_json=getattr(options, "json", "--json" in words))


def _answer_sigterm() -> None:
    """From now on SIGTERM acts like Ctrl-C."""

    def interrupt(*_: object) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, interrupt)


def _tell_of_cut_logs() -> None:
    """Print a line on stderr when a command reads a truncated log."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, LogCutWarning):
            print(f"kemu: {message}", file=sys.stderr)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show


def parser() -> Parser:
    """All commands."""
    from kemu.doors.cli.commands import bench, completion, conformance, demo, doctor
    from kemu.doors.cli.commands.clusters import calibrate, chaos, envtest, nodes, ray_clusters, scheduler, step, up
    from kemu.doors.cli.commands.figures import artefact, csv_files, plot, report, results
    from kemu.doors.cli.commands.runs import explain, imports, metrics, recover, replay, run, scenarios, story, trace
    from kemu.doors.cli.commands.searches import compare, explore, fuzz, hunt, shrink, sweep

    known = Parser(
        prog="kemu",
        description="A Kubernetes scheduling control plane to race, starve and break: in virtual time or on Ray.",
        epilog="Exit codes: 0 holds, 1 a check or expectation failed, 2 the input is wrong, 3 unknown, 4 your own code "
        "or kemu raised, 130 interrupted.",
    )
    known.add_argument("--version", action="version", version=f"kemu {kemu.__version__}")
    commands = known.add_subparsers(title="commands", metavar="COMMAND")
    for module in (
        demo,
        run,
        explore,
        fuzz,
        hunt,
        shrink,
        sweep,
        imports,
        compare,
        explain,
        replay,
        recover,
        story,
        report,
        trace,
        metrics,
        plot,
        results,
        csv_files,
        artefact,
        scenarios,
        scheduler,
        nodes,
        calibrate,
        bench,
        conformance,
        ray_clusters,
        up,
        step,
        chaos,
        envtest,
        doctor,
        completion,
    ):
        module.add_to(commands)
    return known


if __name__ == "__main__":
    sys.exit(main())
