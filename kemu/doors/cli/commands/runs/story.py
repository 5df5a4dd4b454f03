"""``kemu story``: what happened in a run, in order; grouped to fit the screen, with filters for details."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kemu.doors.cli import exits, run_folders

HEAD_ROOTS = 3
"""So many roots stand above the story; `kemu explain` has all."""

if TYPE_CHECKING:  # its import takes longer than --help
    from kemu.lab.checks.history.histories import History


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "story",
        help="show what happened in a run",
        description="Show what happened in a run, in order. Similar events share a line, so that the story fits the "
        "screen. Filters show more details, and can be combined.",
    )
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--pod", default="", metavar="NAME", help="what happened to this pod, or made room for it")
    parser.add_argument("--node", default="", metavar="NAME", help="what happened on this node")
    parser.add_argument("--workload", default="", metavar="NAME", help="the pods of this workload or controller")
    parser.add_argument("--object", default="", metavar="KIND/NAME", help="the history of this object")
    parser.add_argument("--kind", action="append", default=[], metavar="KIND", help="such as preempted; repeatable")
    parser.add_argument("--from", dest="from_ns", type=_time, default=0, metavar="TIME", help="not earlier, as 1m30s")
    parser.add_argument("--to", dest="until_ns", type=_time, default=1 << 62, metavar="TIME", help="not later")
    parser.add_argument("--all", action="store_true", help="one line for each event")
    run_folders.add_variant(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def _time(text: str) -> int:
    from kemu.emulated.settings import values

    try:
        return values.duration_ns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def command(options: argparse.Namespace) -> int:
    from kemu.lab.checks import groups
    from kemu.lab.checks.scheduling import waiting
    from kemu.lab.tell import layouts, stories, story_tables
    from kemu.lab.tell.causes import evidence as evidences
    from kemu.lab.tell.causes import finding, tellings
    from kemu.lab.tell.selections import Selection

    chosen = run_folders.choose(options.run, options.variant)
    run_folders.tell_unfinished(chosen.folder)
    evidence = evidences.read(chosen.folder)
    history = evidence.history
    selection = Selection(
        options.pod,
        options.node,
        options.workload,
        options.object,
        tuple(kind for kinds in options.kind for kind in kinds.split(",")),
        options.from_ns,
        options.until_ns,
    )
    said = stories.observed(run_folders.observed(chosen.folder)) if selection == Selection() else []
    found = stories.find(history, selection, run_folders.verdict(chosen.folder))
    causes = finding.causes(evidence) if selection == Selection() else None
    if options.json:
        story = stories.beside(stories.told(found, 0 if options.all else story_tables.MOST_LINES), said)
        data = {
            "run": str(chosen.folder),
            "lines": [line.data() for line in story.lines],
            "left_out": dict(story.left_out),
            "ended": history.ended_ns is not None,
            "workloads": groups.workloads(history, waiting.waits(history)),
            "schedulers": groups.schedulers(history),
            "causes": None if causes is None else causes.to_json(),
        }
        print(json.dumps(data))
        return exits.HOLDS
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if chosen.heading:
        console.print(chosen.heading, highlight=False)
    if not found:
        console.print("nothing of that kind happened", highlight=False)
    head = list(tellings.lines(causes, console.width, HEAD_ROOTS)) if causes is not None and causes.roots else []
    if head:
        layouts.show(console, [*head, Text()])
    figures = _figures(history, console.width) if selection == Selection() and not options.all else []
    if options.all:
        story = stories.told(found, 0)
    elif console.is_terminal:
        beside = (
            len(said[:MOST_SAID]) * LINES_OF_SAID
            + len(figures)
            + len(head)
            + bool(head)
            + bool(chosen.heading)
            + 2 * (history.ended_ns is None)
            + 2
        )  # the empty line below the story, and the prompt
        story = story_tables.fitted(found, console.width, console.height - beside)
    else:
        story = stories.told(found, story_tables.MOST_LINES)
    story = stories.beside(story, said if options.all else said[-MOST_SAID:])
    words = _words(options)
    story_tables.show_story(console, story, f"kemu story {' '.join(shlex.quote(word) for word in words)} --all")
    if history.ended_ns is None:
        console.print(
            f"the log ends at {history.now_ns / 1e9:.3f} s: the run was interrupted, or broke\n", highlight=False
        )
    layouts.show(console, figures)
    return exits.HOLDS


MOST_SAID = 6
"""Of what a cluster said: the newest."""
LINES_OF_SAID = 3


def _figures(history: History, width: int) -> list[Any]:
    """Lines by workload and by scheduler, if there are several."""
    from rich.text import Text

    from kemu.lab.checks import groups
    from kemu.lab.checks.scheduling import waiting
    from kemu.lab.tell import tables

    of_workloads = tables.workloads(groups.workloads(history, waiting.waits(history)), width)
    of_schedulers = tables.schedulers(groups.schedulers(history), width)
    return [*of_workloads, *([Text()] if of_workloads and of_schedulers else []), *of_schedulers]


def _words(options: argparse.Namespace) -> list[str]:
    """The options of this command, for another one."""
    words = [str(options.run)]
    for name in ("pod", "node", "workload", "object", "variant"):
        if getattr(options, name):
            words += [f"--{name}", getattr(options, name)]
    for kind in options.kind:
        words += ["--kind", kind]
    if options.from_ns:
        words += ["--from", f"{options.from_ns / 1e9:g}s"]
    if options.until_ns < 1 << 62:
        words += ["--to", f"{options.until_ns / 1e9:g}s"]
    return words
