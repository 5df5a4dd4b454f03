"""``kemu shrink``: shrinks a scenario that fails, or continues where ``kemu explore`` had to stop."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kemu.doors.cli import exits, parsers, programs
from kemu.errors import KemuError

if TYPE_CHECKING:
    from kemu.lab.scenario.scenarios import Scenario

DEFAULT_S = 300.0


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "shrink",
        help="shrink a scenario that fails",
        description="Remove from a scenario what its failure does not need: faults, pods, nodes, schedulers, settings, "
        "late messages. For a folder of kemu explore, continue with its scenario, and replace it.",
        epilog="Exit codes: 0 nothing more can be removed, 2 the input is wrong, 3 the time or the runs have ended"
        " before that is known: repeat the command to continue.",
    )
    parser.add_argument(
        "scenario", help="a scenario file, the name of a shipped one, or a folder below failures/ of a search"
    )
    parser.add_argument("--failure", default="", metavar="ID", help="the check or expectation; default: the first")
    parser.add_argument(
        "--time", type=parsers.seconds, default=DEFAULT_S, metavar="TIME", help="maximum time; default: 5m"
    )
    parser.add_argument(
        "--runs", type=parsers.count, default=0, help="maximum number of runs; default: as many as fit the time"
    )
    parser.add_argument("--jobs", type=parsers.count, default=0, help="processes; default: one for each CPU")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="what to write; default: NAME-shrunk.yaml beside NAME.yaml; of a folder, its scenario.yaml",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli import progress
    from kemu.doors.cli.commands.searches import explore_reports
    from kemu.lab.exploration import executions, searches
    from kemu.lab.exploration.shrinking import shrinker
    from kemu.lab.scenario.loading import loader

    file, out = _files(options)
    made = loader.variants(loader.load(file, options.data))
    if len(made) > 1:
        raise KemuError(f"{file} has a matrix; choose one of its variants with kemu explore or kemu run --set")
    scenario = made[0][1]
    failure = _failure(executions.execute(scenario).failures, options.failure, file)
    with progress.waiting(sys.stderr, f"{file}: making it smaller"):
        shrunk = shrinker.shrink(
            scenario,
            failure,
            jobs=options.jobs or os.cpu_count() or 1,
            data_dir=str(options.data or ""),
            most_executions=options.runs or sys.maxsize,
            most_s=options.time,
        )
    out.write_text(shrunk.yaml)
    if out == file:
        _explain(shrunk.scenario, failure.id, file.parent)
    going_on = (
        "" if shrunk.minimal else f"{programs.name()} shrink {shlex.quote(str(out if out != file else file.parent))}"
    )
    if options.json:
        found = {"scenario": str(out), "failure": failure.id, "detail": shrunk.failure.detail, "continue": going_on}
        print(json.dumps({**found, **searches.told(shrunk)}, ensure_ascii=False))
    else:
        print(f"{failure.id}: {shrunk.failure.detail}")
        print(explore_reports.size(shrunk))
        print(f"   {programs.name()} run {shlex.quote(str(out))}")
        if going_on:
            print(f"   {going_on}")
    return exits.HOLDS if shrunk.minimal else exits.UNKNOWN


def _files(options: argparse.Namespace) -> tuple[Path, Path]:
    """The scenario to shrink, and the path of the result."""
    from kemu.lab.exploration import searches
    from kemu.lab.scenario import catalog

    given = Path(options.scenario)
    if given.is_dir():
        file = given / searches.SCENARIO_FILE
        if not file.is_file():
            raise KemuError(f"{given}: has no {searches.SCENARIO_FILE}: give one of the folders below failures/")
        return file, options.out or file
    # Of a shipped one, what is left belongs here.
    file = catalog.find(options.scenario)
    beside = given if given.is_file() else Path(file.name)
    return file, options.out or beside.with_name(f"{file.stem}-shrunk.yaml")


def _failure(failures: Any, wanted: str, file: Path) -> Any:
    """The failure in the options; for a folder of a search, the one in its name."""
    if not failures:
        raise KemuError(f"{file} does not fail: there is nothing to shrink")
    if not wanted:
        named = [one for one in failures if file.parent.name.rpartition("-")[0] == one.id]
        return (named or failures)[0]
    found = next((one for one in failures if one.id == wanted), None)
    if found is None:
        raise KemuError(f"{file} does not fail {wanted}, but {', '.join(one.id for one in failures)}")
    return found


def _explain(scenario: Scenario, check: str, folder: Path) -> None:
    """Replace the explanation of the larger scenario."""
    from kemu.lab.tell.explaining import explanations, reports

    with contextlib.suppress(KemuError):
        reports.write(explanations.explain(scenario, check), folder)
