"""``kemu hunt``: finds bugs in a controller."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kemu.doors.cli import exits, parsers, pipes
from kemu.errors import KemuError
from kemu.runtime.words import counted, harmless

if TYPE_CHECKING:
    from kemu.lab.hunt.findings import Finding
    from kemu.lab.hunt.projects import Project
    from kemu.lab.hunt.searches import Hunt, Progress

_EVERY_S, _PLAIN_EVERY_S = 0.2, 10.0
"""How often progress is told: on a terminal, and where lines cannot be rewritten."""
_AGAIN = 3
"""Repetitions of ``--again``."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "hunt",
        help="find bugs in a controller",
        description="Run a controller against an emulated cluster, perform the steps in a file, and repeat them, each "
        "time with one perturbation: a crash between two writes, a stale read, a missed change, a conflict,"
        " a lost response, an outage, a late kind. A trial that ends differently is a finding.",
        epilog="Exit codes: 0 nothing found, 1 found, 2 the input is wrong, 3 the steps do not complete even "
        "without perturbations, or (--plan, --again) the perturbation never occurred.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the hunt")
    parser.add_argument(
        "--time",
        type=parsers.seconds,
        default=600.0,
        metavar="TIME",
        help="start no new plan after this time; default: 10m",
    )
    parser.add_argument("--plan", type=Path, metavar="PLAN.yaml", help="try this plan only")
    parser.add_argument("--again", type=Path, metavar="FOLDER", help="repeat the finding in this folder")
    parser.add_argument(
        "--repeat",
        type=parsers.count,
        metavar="N",
        help=f"how often a finding is repeated; default: 20, with --again {_AGAIN}, with --plan once",
    )
    parser.add_argument(
        "--retries",
        type=parsers.count,
        default=0,
        metavar="N",
        help="number of trials in which a failure has to recur; default: 2 to 4, by perturbation",
    )
    parser.add_argument(
        "--no-shrink", action="store_true", help="keep all steps of findings, because shrinking takes many trials"
    )
    parser.add_argument(
        "--pairs",
        action="store_true",
        help="afterwards, try two perturbations at once: the second one in what follows the first",
    )
    parser.add_argument(
        "--mutations",
        action="store_true",
        help="afterwards, let another client temporarily set wrong values in objects that the controller reads",
    )
    parser.add_argument("--jobs", type=parsers.count, default=0, help="parallel trials; default: one for each CPU")
    parser.add_argument("--ray", metavar="ADDRESS", help="use a Ray cluster: its address, or local for a temporary one")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder for findings; default: runs/hunt-NAME")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli.commands.searches import explore
    from kemu.lab.hunt import findings, projects, searches
    from kemu.lab.hunt.judging import oracles
    from kemu.lab.hunt.running import pools
    from kemu.lab.hunt.telling import reports

    if (options.file is None) == (options.again is None):
        raise KemuError("which hunt? kemu hunt FILE, or kemu hunt --again FOLDER")
    if options.again is not None and options.plan is not None:
        raise KemuError("--again has its plan: --plan cannot stand beside it")
    project = projects.load(options.file or reports.hunt_of(options.again))
    out = options.out or Path("runs") / f"hunt-{project.name}"
    out.mkdir(parents=True, exist_ok=True)
    jobs = options.jobs or os.cpu_count() or 1
    with (
        _Progress(project, quiet=options.json) as progress,
        searches.Hunt(
            project,
            out,
            repetitions=options.repeat or findings.REPETITIONS,
            retries=options.retries,
            shrink=not options.no_shrink,
            pairs=options.pairs,
            mutations=options.mutations,
            real_s=options.time,
            jobs=jobs,
            executor=explore.cluster(options.ray, jobs, pools.LIMIT_S),
            on_progress=progress.take,
            on_lost=progress.tell,
        ) as hunt,
    ):
        progress.hunt = hunt
        try:
            if options.plan is not None or options.again is not None:
                return _once(hunt, project, options)
            return _search(hunt, project, options, out, progress)
        except oracles.Unsettled as error:
            print(f"kemu: {error}", file=sys.stderr)
            return exits.UNKNOWN


def _search(hunt: Hunt, project: Project, options: argparse.Namespace, out: Path, progress: _Progress) -> int:
    from kemu.lab.hunt.telling import reports, summaries

    was_interrupted = False
    try:
        for finding in hunt.run():
            reports.write(project, finding)
            progress.clear()
            if not options.json:
                _show(finding)
    except KeyboardInterrupt:  # what is known by then is kept
        was_interrupted = True
        hunt.close()
    progress.stop()
    for finding in hunt.findings:  # now it is known what is like them
        reports.write(project, finding)
    file = summaries.write(project, hunt, out)
    if options.json:
        print(json.dumps(_data(hunt, was_interrupted), ensure_ascii=False))
    else:
        over = " (interrupted)" if was_interrupted else ""
        print(f"{summaries.headline(project, hunt)}{over}")
        print(*summaries.lines(hunt, shutil.get_terminal_size((80, 24)).columns), sep="\n")
        print(file)
    if was_interrupted:
        return exits.heard(exits.INTERRUPTED)
    return exits.FAILS if hunt.findings else exits.HOLDS


def _once(hunt: Hunt, project: Project, options: argparse.Namespace) -> int:
    """Run one plan a few times."""
    from kemu.lab.hunt import perturbations
    from kemu.lab.hunt.judging import oracles
    from kemu.lab.hunt.telling import reports

    plan, steps = reports.read(options.plan or options.again, project)
    shown = perturbations.shown(plan)
    times = options.repeat or (1 if options.again is None else _AGAIN)
    results = hunt.again(plan, steps, times)
    came = [symptoms for struck, symptoms in results if struck]
    bad = [symptoms for symptoms in came if oracles.bugs(symptoms)]
    costs = list(dict.fromkeys(one.text for symptoms in came for one in symptoms if not one.is_bug))
    if options.json:
        data = {
            "perturbation": shown,
            "shown": f"{len(bad)}/{len(results)}",
            "missed": len(results) - len(came),
            "symptoms": [one.text for one in oracles.bugs(bad[0])] if bad else [],
            "costs": costs,
        }
        print(json.dumps(data, ensure_ascii=False))
    else:
        missed = f", {len(results) - len(came)} times it never came about" if len(came) < len(results) else ""
        if bad:
            print(f"{shown}: still wrong, {len(bad)} of {len(results)} times{missed}: {bad[0][0].text}")
        elif came:
            more = f", at a cost: {'; '.join(costs)}" if costs else ""
            print(f"{shown}: right, {len(came)} of {len(results)} times{missed}{more}")
        else:
            print(f"{shown}: never came about in {len(results)} trials")
    if not came:
        return exits.UNKNOWN
    return exits.FAILS if bad else exits.HOLDS


def _show(finding: Finding) -> None:
    from kemu.lab.hunt import perturbations

    print(f"{finding.id}: {finding.symptoms[0].text}")
    plan = perturbations.shown(finding.plan)
    print(f"  {plan}: {finding.often}, in {counted(len(finding.steps), 'step')}")
    print(f"  {finding.folder.parent / 'finding.md'}", flush=True)


def _data(hunt: Hunt, was_interrupted: bool) -> dict[str, Any]:
    from kemu.lab.hunt.telling import reports

    progress = hunt.progress
    return {
        "plans": progress.plans,
        "done": progress.done,
        "not_struck": progress.not_struck,
        "brute_force": hunt.brute_force,
        "interrupted": was_interrupted,
        "findings": [reports.data_of(each) for each in hunt.findings],
        "costs": [{"text": cost.text, "plans": len(plans)} for cost, plans in hunt.costs.values()],
        "coverage": hunt.coverage.data(),
    }


class _Progress:
    """The progress of a hunt on stderr: lines that are rewritten on a terminal, else a line now and then."""

    def __init__(self, project: Project, *, quiet: bool) -> None:
        self.hunt: Hunt | None = None
        self._project = project
        self._quiet = quiet
        self._live: Any = None
        self._told_s = time.monotonic()

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(file=pipes.moving(sys.stderr))
            self._live = Live(console=console, refresh_per_second=1 / _EVERY_S, transient=True)
            self._live.start()
            self._update("first the steps without perturbations")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Idempotent."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def clear(self) -> None:
        """Remove the lines before other output."""
        if self._live is not None:
            self._live.stop()
            self._live.start()

    def tell(self, text: str) -> None:
        """Print a message for the user."""
        if self._live is not None:
            self._live.console.print(f"kemu: {harmless(text)}", markup=False, highlight=False)
        else:
            print(f"kemu: {text}", file=sys.stderr, flush=True)

    def take(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if self._quiet or now_s - self._told_s < (_EVERY_S if self._live is not None else _PLAIN_EVERY_S):
            return
        self._told_s = now_s
        number = f"{progress.found} finding{'s' * (progress.found != 1)}"
        left = f", {_duration(progress.left_s)} left" if progress.done else ""
        line = f"{progress.done} of {progress.plans} plans, {number}{left}"
        if self._live is None:
            print(f"{self._project.name}: {line}", file=sys.stderr, flush=True)
        else:
            self._update(line, progress.doing)

    def _update(self, *lines: str) -> None:
        from rich.text import Text

        from kemu.lab.hunt import coverage

        width = self._live.console.width
        table = [] if self.hunt is None else coverage.table(self.hunt.coverage, width - 2)
        head = f"{self._project.name}: {lines[0]}"
        shown = [head, *(f"  {one}" for one in [*filter(None, lines[1:]), *table])]
        text = harmless("\n".join(shown[: self._live.console.height - 1]))
        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"))


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
