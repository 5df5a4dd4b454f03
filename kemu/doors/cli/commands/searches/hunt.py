"""``kemu hunt``: finds bugs in a controller that is a program of its own."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kemu.doors.cli import exits, parsers
from kemu.errors import KemuError

if TYPE_CHECKING:
    from kemu.lab.hunt.findings import Finding
    from kemu.lab.hunt.projects import Project
    from kemu.lab.hunt.searches import Hunt, Progress


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "hunt",
        help="find bugs in a controller that is a program of its own",
        description="Run a controller against an emulated cluster, do the steps that a file says, and do them again "
        "and again, each time with one perturbation: a crash between two writes, a state from the past, a change that "
        "is not seen, a conflict, a lost answer, a kind that comes late. What then ends otherwise is a finding.",
        epilog="Exit codes: 0 nothing found, 1 found, 2 the input is wrong, 3 the steps do not come to an end without "
        "perturbations either.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the hunt")
    parser.add_argument(
        "--time", type=parsers.seconds, default=600.0, metavar="TIME", help="for how long plans begin; default: 10m"
    )
    parser.add_argument("--plan", type=Path, metavar="PLAN.yaml", help="try this plan only")
    parser.add_argument("--again", type=Path, metavar="FOLDER", help="of a finding: whether it still goes wrong")
    parser.add_argument(
        "--repeat", type=parsers.count, default=20, metavar="N", help="how often a finding is repeated; default: 20"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where findings go; default: hunts of runs/")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.lab.hunt import oracles, projects, reports, searches

    if (options.file is None) == (options.again is None):
        raise KemuError("which hunt? kemu hunt FILE, or kemu hunt --again FOLDER")
    if options.again is not None and options.plan is not None:
        raise KemuError("--again has its plan: --plan cannot stand beside it")
    project = projects.load(options.file or reports.hunt_of(options.again))
    out = options.out or Path("runs") / f"hunt-{project.name}"
    out.mkdir(parents=True, exist_ok=True)
    hunt = searches.Hunt(project, out, repetitions=options.repeat, real_s=options.time, on_progress=_progress)
    try:
        if options.plan is not None or options.again is not None:
            return _once(hunt, project, options)
        return _search(hunt, project, options)
    except oracles.Unsettled as error:
        print(f"kemu: {error}", file=sys.stderr)
        return exits.UNKNOWN


def _search(hunt: Hunt, project: Project, options: argparse.Namespace) -> int:
    from kemu.lab.hunt import reports

    found: list[Finding] = []
    for finding in hunt.run():
        reports.write(project, finding)
        found.append(finding)
        if not options.json:
            _show(finding)
    progress = hunt.progress
    if options.json:
        print(json.dumps(_data(hunt, found), ensure_ascii=False))
    else:
        not_struck = f", {progress.not_struck} of which never came about" if progress.not_struck else ""
        number = f"{len(found)} finding{'s' * (len(found) != 1)}"
        print(
            f"{project.name}: {number} in {progress.done} of {progress.plans} plans"
            f"{not_struck} ({hunt.brute_force} without a thought)"
        )
    return exits.FAILS if found else exits.HOLDS


def _once(hunt: Hunt, project: Project, options: argparse.Namespace) -> int:
    """One plan, a few times."""
    from kemu.lab.hunt import perturbations, reports

    plan, steps = reports.read(options.plan or options.again, project)
    shown = perturbations.shown(plan)
    times = min(options.repeat, 3) if options.plan is None else 1
    results = hunt.again(plan, steps, times)
    bad = [each for each in results if each]
    if options.json:
        symptoms = [one.text for one in bad[0]] if bad else []
        print(json.dumps({"perturbation": shown, "shown": f"{len(bad)}/{len(results)}", "symptoms": symptoms}))
    elif bad:
        print(f"{shown}: still wrong, {len(bad)} of {len(results)} times: {bad[0][0].text}")
    else:
        print(f"{shown}: right, {len(results)} of {len(results)} times")
    return exits.FAILS if bad else exits.HOLDS


def _show(finding: Finding) -> None:
    from kemu.lab.hunt import perturbations

    print(f"{finding.id}: {finding.symptoms[0].text}")
    plan = perturbations.shown(finding.plan)
    print(f"  {plan}: {finding.shown} of {finding.tried} times, in {len(finding.steps)} steps")
    print(f"  {finding.folder.parent / 'finding.md'}", flush=True)


def _data(hunt: Hunt, found: list[Finding]) -> dict[str, Any]:
    from kemu.lab.hunt import reports

    progress = hunt.progress
    return {
        "plans": progress.plans,
        "done": progress.done,
        "not_struck": progress.not_struck,
        "brute_force": hunt.brute_force,
        "findings": [reports.data_of(each) for each in found],
    }


def _progress(progress: Progress) -> None:
    if sys.stderr.isatty():
        text = f"{progress.done} of {progress.plans} plans, {progress.found} findings, {progress.left_s:.0f} s left"
        print(f"\r{text}   ", end="" if progress.done < progress.plans else "\n", file=sys.stderr, flush=True)
