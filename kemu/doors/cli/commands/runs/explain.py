"""``kemu explain``: why a run fails, in sentences and a picture, beside a run that passes."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kemu.doors.cli import exits, parsers
from kemu.errors import KemuError

if TYPE_CHECKING:
    from kemu.lab.tell.explaining.explanations import Explanation

LEAST_WIDTH = 60
"""Least width of a picture."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="say why a run fails",
        description="Run a scenario in virtual time, and say why it fails: the chain of causes in at most six "
        "sentences, a picture of who told whom what and when, and beside it the same run without one hold (or fault), "
        "which passes. Leaves explanation.txt, .svg and .json in the run folder.",
    )
    parser.add_argument("run", help="a run folder, a scenario file, or the name of a shipped scenario")
    parser.add_argument("--failure", default="", metavar="ID", help="the check or expectation; default: the first")
    parser.add_argument(
        "--seed", type=parsers.whole_number, help="the seed of every random draw; overrides the scenario's"
    )
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="as for kemu run")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the files of a trace are")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to leave the explanation; default: the run folder"
    )
    parser.add_argument(
        "--probability",
        action="store_true",
        help="draw 50 futures at each of 30 instants: when was the failure decided? takes about a minute",
    )
    parser.add_argument("--jobs", type=parsers.count, default=1, metavar="N", help="processes for --probability")
    parser.add_argument(
        "--width", type=parsers.whole_number, default=0, help="columns of the picture; default: those of the terminal"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli import progress
    from kemu.lab.tell.explaining import explanations, reports
    from kemu.lab.tell.explaining.drawings import texts

    scenario, folder = _what(options)
    with progress.waiting(sys.stderr, f"{options.run}: running it again, with all of its messages"):
        explanation = explanations.explain(scenario, options.failure)
    curve = None
    if options.probability:
        with progress.waiting(sys.stderr, f"{options.run}: drawing its futures"):
            curve = _curve(explanation, options.jobs)
    reports.write(explanation, folder, curve)
    if options.json:
        print(json.dumps(reports.data(explanation, curve), ensure_ascii=False))
        return exits.FAILS
    width = options.width or min(max(shutil.get_terminal_size().columns, LEAST_WIDTH), 120)
    print(texts.told(explanation, width, curve, sentences_last=True))
    print(f"{folder / reports.PICTURE}: the same as a picture", file=sys.stderr)
    return exits.FAILS


def _curve(explanation: Explanation, jobs: int) -> Any:
    from kemu.lab.exploration import workers
    from kemu.lab.tell.explaining import probabilities

    executor = workers.Workers(jobs) if jobs > 1 else workers.Inline()
    try:
        return probabilities.curve(explanation, executor)
    finally:
        executor.close()


def _what(options: argparse.Namespace) -> tuple[Any, Path]:
    """The run to explain, and where its explanation belongs: of a matrix the first variant that fails so."""
    from kemu.doors.cli import inputs
    from kemu.doors.cli.commands.runs import run
    from kemu.lab.exploration import executions
    from kemu.lab.scenario.loading import loader
    from kemu.lab.tell.explaining import siblings
    from kemu.runtime.runlog import folders

    folder = Path(options.run)
    is_run = folders.held_in(folder) is not None
    options.store = None
    given = str(folder / folders.SCENARIO_FILE) if is_run else options.run
    scenario = inputs.load(given, options.data, run.overrides(options), quiet=options.json or is_run)
    if options.out is None:
        options.out = folder if is_run else Path("runs") / run.folder_name(scenario.name, "sim", scenario.seed)
    made = loader.variants(scenario)
    if len(made) == 1:
        return made[0][1], options.out
    for number, (_, variant) in enumerate(made):
        failures = siblings.broken(executions.execute(variant))
        if any(options.failure in ("", one.id) for one in failures):
            return variant, options.out / f"variant-{number}"
    raise KemuError(f"{scenario.name}: nothing to explain: no variant fails")
