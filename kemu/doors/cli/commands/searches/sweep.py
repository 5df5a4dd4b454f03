"""``kemu sweep``: runs all variants of an experiment with all its seeds, and judges its claims."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kemu.doors.cli import exits, failures, parsers, programs
from kemu.errors import InfrastructureError, KemuError

if TYPE_CHECKING:
    from kemu.lab.sweep.engine.sweeps import Sweep
    from kemu.lab.sweep.experiments.experiments import Experiment


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "sweep",
        help="run variants of a scenario with many seeds, and judge claims",
        description="Run every variant of an experiment with every seed in virtual time, and write the results to one "
        "Parquet file. The same command resumes a sweep that was stopped, or that has more seeds now.",
        epilog="Exit codes: 0 all claims hold, 1 one fails, 2 the input is wrong, 3 one is undecided, 130 interrupted.",
    )
    parser.add_argument("experiment", metavar="FILE", help="an experiment: a file of kind Experiment")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: runs/NAME-sweep")
    parser.add_argument(
        "--runtime",
        choices=("sim", "real"),
        default="sim",
        help="real: each cell on a real control plane, one after the other; default: sim",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="real: use an existing cluster; default: start one for each cell",
    )
    parser.add_argument("--context", default="", help="the context in the kubeconfig; default: its current one")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="as for kemu run: --set scale=100"
    )
    parser.add_argument("--jobs", type=parsers.count, default=0, help="processes; default: one for each CPU")
    parser.add_argument(
        "--ray",
        nargs="?",
        const="local",
        metavar="ADDRESS",
        help="use a Ray cluster: its address; without one, a temporary cluster",
    )
    parser.add_argument("--force", action="store_true", help="replace the contents of the folder, and start again")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument(
        "--no-plots", action="store_true", help="do not draw the pictures of kemu plot; implied by --json"
    )
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli import inputs
    from kemu.doors.cli.commands.figures import sweep_progress, sweep_reports
    from kemu.doors.cli.commands.runs import run
    from kemu.doors.cli.commands.searches import explore
    from kemu.lab.exploration.workers import Workers
    from kemu.lab.sweep.engine import summaries
    from kemu.lab.sweep.engine.sweeps import Sweep, limit_s
    from kemu.lab.sweep.experiments import loader

    if not Path(options.experiment).exists():
        raise KemuError(f"{options.experiment}: no such file; an experiment is a file of kind Experiment")
    experiment = loader.load(options.experiment, options.data, run.settings(options.set))
    if not options.json:
        inputs.warn(experiment.warnings)
    if options.kubeconfig is not None and options.runtime != "real":
        raise KemuError("--kubeconfig needs --runtime real")
    if options.runtime == "real":
        experiment = _for_real(experiment, options)
    options.out = options.out or sweep_reports.default_folder(experiment)
    jobs = options.jobs or os.cpu_count() or 1
    with Sweep(experiment, options.out, force=options.force) as sweep:
        try:
            if not sweep.is_over:
                executor = explore.cluster(options.ray, jobs, limit_s(experiment)) or Workers(
                    jobs, limit_s=limit_s(experiment)
                )
                try:
                    with sweep_progress.Progress(sweep, executor, sys.stderr, quiet=options.json) as progress:
                        for record in sweep.go(executor):
                            progress.take(record)
                finally:
                    executor.close()
        except KeyboardInterrupt:
            return failures.tell(_interrupted(sweep, options), as_json=options.json)
        except InfrastructureError as error:
            raise InfrastructureError(f"{error}; {_kept(sweep)}") from error
        found = summaries.of(sweep, sweep.write())
        if options.json:
            print(json.dumps(found, ensure_ascii=False))
        else:
            sweep_reports.show(sweep, found, sweep_reports.next_commands(sweep, found, programs.name()))
            if not options.no_plots:
                _plot(options.out)
        if (crash := sweep.crash()) is not None:
            return failures.tell_beside("a cell failed by a bug in kemu", crash)
        return exits.BY_VERDICT[found["verdict"]]


def _for_real(experiment: Experiment, options: argparse.Namespace) -> Experiment:
    """The experiment on real control planes. Raises KemuError for what they cannot do, before the first one starts."""
    from kemu.lab.sweep.engine import cell_tasks

    if options.ray is not None or options.jobs > 1:
        raise KemuError("--runtime real: one control plane at a time has this machine: no --ray, no --jobs")
    options.jobs = 1
    return cell_tasks.on_real(experiment, options.kubeconfig, options.context)


def _plot(folder: Path) -> None:
    """Draw the results, if the extra is installed; without it, the sweep still succeeds."""
    from kemu.doors.cli.commands.figures import plot

    try:
        drawn = plot.all_of(folder)
    except ModuleNotFoundError as error:
        if failures.extra_of(error) is None:
            raise
        return
    except KemuError as error:
        print(f"no plots: {error}", file=sys.stderr)
        return
    if drawn:
        print(f"\nplots in {drawn[0].parent}: {', '.join(file.name for file in drawn)}")


def _interrupted(sweep: Sweep, options: argparse.Namespace) -> failures.Failure:
    cells = {"total": sweep.experiment.size, "over": len(sweep.records)}
    more = {"sweep": str(options.out), "cells": cells}
    return failures.Failure("interrupted", f"interrupted: {_kept(sweep)}", exits.INTERRUPTED, more=more)


def _kept(sweep: Sweep) -> str:
    done, size = len(sweep.records), sweep.experiment.size
    return f"{done:,} of {size:,} cells are done and kept; the same command goes on with the others"
