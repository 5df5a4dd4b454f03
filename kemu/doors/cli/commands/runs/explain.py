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
    from kemu.lab.scenario.scenarios import Scenario
    from kemu.lab.tell.causes.roots import Causes
    from kemu.lab.tell.explaining.explanations import Explanation

LEAST_WIDTH = 60
"""Least width of a picture."""
MOST_BYTES = 4_000_000
"""Of a run whose log is longer, a failure is explained only if asked for: its messages are a hundred times as many."""
CHECK_S = 60.0
"""How long the runs without the first roots may take together."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="explain why a run went wrong, or fails",
        description="Explain why a run went wrong: at most five root causes (user actions, rollouts, faults, "
        "configuration), each with the chain to its effects, and the difference without it. If a check or "
        "an expectation fails, also the chain of events in at most six sentences, a picture of the "
        "messages, and beside it the same run without one hold (or fault), which passes; writes "
        "explanation.txt, .svg and .json to the run folder.",
    )
    parser.add_argument("run", help="a run folder, a scenario file, or the name of a shipped scenario")
    parser.add_argument("--failure", default="", metavar="ID", help="the check or expectation; default: the first")
    parser.add_argument(
        "--seed", type=parsers.whole_number, help="the seed of all randomness; overrides the scenario's"
    )
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="as for kemu run")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write the explanation; default: the run folder"
    )
    parser.add_argument(
        "--probability",
        action="store_true",
        help="sample 50 futures at each of 30 moments, to find when the failure was decided; takes about a minute",
    )
    parser.add_argument("--jobs", type=parsers.count, default=1, metavar="N", help="processes for --probability")
    parser.add_argument(
        "--width", type=parsers.whole_number, default=0, help="columns of the picture; default: those of the terminal"
    )
    parser.add_argument(
        "--check",
        dest="check_s",
        type=parsers.seconds,
        default=CHECK_S,
        metavar="TIME",
        help="maximum time of the runs without the first two roots (default: 1m); 0s: none",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.lab.tell.causes import tellings

    scenario, folder, log = _what(options)
    causes, fails = _causes(options, scenario, log)
    asked = bool(options.failure or options.probability)
    failures = asked or (fails and not (causes.roots and _is_long(log)))
    if not causes.roots and not failures:
        raise KemuError(f"{scenario.name}: nothing to explain: no check fails, and nothing goes wrong")
    if causes.roots and options.check_s:
        causes = _checked(options, scenario, causes, log)
    width = options.width or min(max(shutil.get_terminal_size().columns, LEAST_WIDTH), 120)
    explanation, curve = _explained(options, scenario) if failures else (None, None)
    if explanation is not None:
        from kemu.lab.tell.explaining import reports

        reports.write(explanation, folder, curve)
    if options.json:
        from kemu.lab.tell.explaining import reports

        data = reports.data(explanation, curve) if explanation is not None else {"scenario": scenario.name}
        print(json.dumps({**data, "causes": causes.to_json()}, ensure_ascii=False))
        return exits.FAILS if fails or asked else exits.HOLDS
    if causes.roots:
        print(tellings.told(causes, width), end="\n\n" if explanation is not None else "\n")
        if fails and explanation is None:
            print(f"\nThe log is long: kemu explain {options.run} --failure ID explains a check that fails.")
    if explanation is not None:
        from kemu.lab.tell.explaining import reports
        from kemu.lab.tell.explaining.drawings import texts

        print(texts.told(explanation, width, curve, sentences_last=True))
        print(f"{folder / reports.PICTURE}: the same as a picture", file=sys.stderr)
    return exits.FAILS if fails or asked else exits.HOLDS


def _causes(options: argparse.Namespace, scenario: Scenario, log: Path | None) -> tuple[Causes, bool]:
    """From the log of the run; for a scenario that has not run, from its run in memory. And whether a check or an
    expectation fails."""
    from kemu.doors.cli import progress
    from kemu.lab.tell.causes import checking, finding

    if log is not None:
        return finding.causes_of(log), _fails(scenario, log)
    with progress.waiting(sys.stderr, f"{options.run}: running it"):
        return checking.run(scenario)


def _fails(scenario: Scenario, log: Path) -> bool:
    """Whether its verdict fails, or has a check that is expected to fail, which is explained, too."""
    from kemu.doors.cli import run_folders
    from kemu.lab.scenario.expectations import CheckIs

    verdict = run_folders.verdict(log)
    if verdict.get("verdict", "fails") == "fails":
        return True
    expected = {one.subject.check for one in scenario.expectations if isinstance(one.subject, CheckIs)}
    return any(one["holds"] is False and one["id"] in expected for one in verdict.get("checks", ()))


def _is_long(log: Path | None) -> bool:
    from kemu.runtime.runlog.frames import FILE_NAME

    return log is not None and (log / FILE_NAME).stat().st_size > MOST_BYTES


def _checked(options: argparse.Namespace, scenario: Scenario, causes: Causes, log: Path | None) -> Causes:
    from kemu.doors.cli import progress
    from kemu.lab.tell.causes import checking
    from kemu.runtime.runlog.frames import FILE_NAME, Reader

    if log is not None:
        with Reader(log / FILE_NAME) as reader:
            if reader.header.get("runtime") != "sim":
                return causes  # another run would be another run
    with progress.waiting(sys.stderr, f"{options.run}: running it without its first roots"):
        return checking.check(scenario, causes, options.check_s)


def _explained(options: argparse.Namespace, scenario: Scenario) -> tuple[Explanation, Any]:
    from kemu.doors.cli import progress
    from kemu.lab.tell.explaining import explanations

    with progress.waiting(sys.stderr, f"{options.run}: running it again, with all of its messages"):
        explanation = explanations.explain(scenario, options.failure)
    curve = None
    if options.probability:
        with progress.waiting(sys.stderr, f"{options.run}: drawing its futures"):
            curve = _curve(explanation, options.jobs)
    return explanation, curve


def _curve(explanation: Explanation, jobs: int) -> Any:
    from kemu.lab.exploration import workers
    from kemu.lab.tell.explaining import probabilities

    executor = workers.Workers(jobs) if jobs > 1 else workers.Inline()
    try:
        return probabilities.curve(explanation, executor)
    finally:
        executor.close()


def _what(options: argparse.Namespace) -> tuple[Scenario, Path, Path | None]:
    """The run to explain, where its explanation belongs, and where its log is (None: it has not run): of a matrix the
    first variant that fails so."""
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
    changed = options.seed is not None or options.set
    logs = folders.runs_in(folder) if is_run and not changed else []
    if len(made) == 1:
        return made[0][1], options.out, logs[0] if logs else None
    for number, (_, variant) in enumerate(made):
        failures = siblings.broken(executions.execute(variant))
        if any(options.failure in ("", one.id) for one in failures):
            return variant, options.out / f"variant-{number}", logs[number] if number < len(logs) else None
    raise KemuError(f"{scenario.name}: nothing to explain: no variant fails")
