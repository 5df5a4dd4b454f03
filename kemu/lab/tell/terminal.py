"""A verdict in the terminal: what happened, the figures, what to try next, and at the bottom what failed.

The end of the output is what stays on a small screen, so the verdict is its last line. Neighbour: :mod:`matrices`,
which shows several runs side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from kemu.lab.checks.history import History, windows
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.checks.scheduling import unbound
from kemu.lab.tell import layouts, story_tables, tables
from kemu.runtime.words import counted

REFUSALS = 6
"""Kinds of refused requests that are named."""
REASONS = 5
"""Reasons for which pods were never bound that are named."""
PASSED = 20
"""More expectations than this are not named one by one where they hold."""
INDENT = "    "

MARK = {True: ("✓", "green"), False: ("✗", "red"), None: ("?", "yellow")}
NEUTRAL = ("·", "dim")
WARNING = ("!", "yellow")
TITLE = {"fails": "bold red", "unknown": "bold yellow", "holds": "bold green", "nothing was expected": "bold yellow"}

Next = Sequence[tuple[str, str]]
"""Commands to try, and why."""


def show_run(
    console: Console, verdict: Mapping[str, Any], history: History, description: str, commands: Next = ()
) -> None:
    """One run: its story, figures, what to try next, checks, expectations, verdict."""
    show_title(console, verdict, description)
    story_tables.show(console, history, verdict.get("run", ""))
    show_figures(console, verdict, history.pods.values())
    show_next(console, commands)
    layouts.show(console, judged(verdict, console.width))
    console.print()
    show_headline(console, verdict)


def show_title(console: Console, verdict: Mapping[str, Any], description: str) -> None:
    """What was run, and how."""
    title = layouts.text((verdict["scenario"], "bold"), "  ", (_how(verdict), "dim"))
    layouts.show(console, layouts.flowing(title, console.width, 2))
    if description:
        text = Text(" ".join(description.split()), "dim")
        layouts.show(console, layouts.hanging(Text(""), text, console.width))
    console.print()


def _how(verdict: Mapping[str, Any]) -> str:
    lacks = f", without {', '.join(verdict['ablate'])}" if verdict.get("ablate") else ""
    times = f"{verdict['virtual_s']:g} virtual s in {verdict['wall_s']:g} s"
    seeds = sorted({each["seed"] for each in verdict.get("variants", [verdict])})
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds from {seeds[0]} to {seeds[-1]}"
    return f"{verdict['runtime']}, {named}, {times}{lacks}"


def show_headline(console: Console, verdict: Mapping[str, Any]) -> None:
    """The last line: what the run came to."""
    headline = Text(verdict["headline"])
    word = next((word for word in TITLE if verdict["headline"].startswith(word)), "")
    headline.stylize(TITLE.get(word, ""), 0, len(word))
    line = layouts.text((verdict["scenario"], "bold"), ": " if word.startswith("nothing") else " ", headline)
    layouts.show(console, layouts.flowing(line, console.width, 2))


def show_next(console: Console, commands: Next) -> None:
    """Each command stands on a line of its own, to be copied whole, its reason below."""
    if not commands:
        return
    layouts.show(console, [Text("next", "bold")])
    for command, why in commands:
        layouts.show(console, [Text(f"  {command}"), *layouts.hanging(Text(" " * 6), Text(why, "dim"), console.width)])
    console.print()


# What was judged ----------------------------------------------------------------------------------------------------


def judged(verdict: Mapping[str, Any], width: int) -> Iterator[Text]:
    """What holds, then what could not be judged, and at the end what failed."""
    for gap in verdict.get("incomplete", ()):
        yield from layouts.flowing(layouts.text(("incomplete log ", "bold yellow"), gap), width, 4)
    found, checks = verdict["expectations"], verdict["checks"]
    named = [match[1] for one in found if (match := CHECK.match(one["text"])) is not None]
    yield from _passing_checks([check for check in checks if check["id"] not in named], width)
    good = [one for one in found if one["holds"] is True]
    if len(good) > PASSED:
        yield layouts.text(MARK[True], f" {len(good)} of {counted(len(found), 'expectation')} hold")
    else:
        yield from _expectations(good, width)
    yield from _lacking(verdict, width)


def _lacking(verdict: Mapping[str, Any], width: int) -> Iterator[Text]:
    """What does not hold, or could not be judged."""
    found = verdict["expectations"]
    yield from _broken_checks(verdict["checks"], expected_to_fail(found), width)
    for holds in (None, False):
        yield from _expectations([one for one in found if one["holds"] is holds], width)


def _passing_checks(checks: Sequence[Mapping[str, Any]], width: int) -> Iterator[Text]:
    """In one line."""
    good = sum(check["holds"] is True and check["asked"] for check in checks)
    idle = sum(check["holds"] is None and check["asked"] for check in checks)
    summary = [f"{counted(good, 'check')} {'holds' if good == 1 else 'hold'}"] * bool(good)
    summary += [f"{idle} had nothing to judge"] * bool(idle)
    if summary:
        mark = MARK[True] if good else NEUTRAL
        yield from layouts.hanging(layouts.text(mark, " "), Text(", ".join(summary)), width)


def _broken_checks(checks: Sequence[Mapping[str, Any]], expected: Sequence[str], width: int) -> Iterator[Text]:
    bad = [check for check in checks if check["holds"] is False and check["id"] not in expected]
    for check in sorted(bad, key=lambda check: bool(check["asked"])):
        mark, note = MARK[False], ""
        if not check["asked"]:
            mark, note = WARNING, "  nobody asked: the verdict stays"
        yield from finding(mark, check["id"], note, check["detail"], width)


def _expectations(found: Sequence[Mapping[str, Any]], width: int) -> Iterator[Text]:
    for one in found:
        yield from finding(MARK[one["holds"]], one["id"], f"  {one['says']}", one["detail"], width)


def finding(mark: tuple[str, str], name: str, note: str, detail: str, width: int) -> Iterator[Text]:
    """What was found stands behind the sentence if there is room for it, else below, a line for each finding."""
    lead = layouts.text(mark, " ")
    sentence = layouts.text((name, "bold"), note)
    beside = sentence + layouts.text((f": {detail}", "dim"))
    if mark == MARK[True] and len(lead.plain) + len(beside.plain) <= width:
        yield lead + beside
        return
    yield from layouts.hanging(lead, sentence, width)
    for one in detail.split("; "):
        yield from layouts.hanging(Text(INDENT), Text(one, "dim"), width)


CHECK = re.compile(r"\{check: ([a-z-]+)(, holds: false)?")


def expected_to_fail(judged: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ids of the checks that were expected not to hold, and do not: ``{check: id, holds: false}``."""
    found = [CHECK.match(one["text"]) for one in judged if one["holds"] is True]
    return [match[1] for match in found if match is not None and match[2]]


# Figures ------------------------------------------------------------------------------------------------------------


def show_figures(console: Console, verdict: Mapping[str, Any], pods: Iterable[PodHistory] = ()) -> None:
    """Counters and costs, who was served and how well, and what was refused. ``pods``: of the run."""
    width = console.width
    if window := windows.text(verdict):
        layouts.show(console, [Text(window, "bold")])
    counters = [(name.replace("_", " "), str(value)) for name, value in verdict["counts"].items() if value]
    costs = [
        _cost(name, value) for name, value in verdict["costs"].items() if value and not name.startswith("refused.")
    ]
    layouts.show(console, layouts.grid(counters, width) or [Text("nothing was counted", "dim")])
    if costs:
        console.print()
        layouts.show(console, layouts.grid(costs, width))
    for title, found in (
        ("refused", _refused(verdict.get("refused", {}))),
        ("faults", _faults(verdict.get("faults", {}))),
        ("never came, as what they wait for did not happen", ", ".join(verdict.get("faults_never_came", ()))),
    ):
        if found:
            layouts.show(console, layouts.flowing(Text(f"{title}: {found}", "dim"), width, 4))
    for message, count in list(verdict.get("errors", {}).items())[:REFUSALS]:
        text = f"{counted(count, 'attempt')} failed with an error: {message}"
        layouts.show(console, layouts.flowing(Text(text, "red"), width, 4))
    console.print()
    for lines in (
        tables.waiting(verdict["waiting"], width, pods),
        tables.workloads(verdict["workloads"], width),
        tables.schedulers(verdict["schedulers"], width),
        tables.budgets(verdict["budgets"], width),
        tables.disturbances(verdict.get("disturbances", ()), width),
        _cells(verdict, width),
        _never_bound(verdict["unbound"], width),
    ):
        if lines:
            layouts.show(console, lines)
            console.print()


def _cells(verdict: Mapping[str, Any], width: int) -> list[Text]:
    """On Ray: how busy they were, and what held the run up."""
    if not verdict.get("cells"):
        return []
    limit = layouts.flowing(layouts.text(("bottleneck: ", "bold"), verdict["bottleneck"]), width, 4)
    return [*tables.cells(verdict["cells"], width), *limit]


def _refused(refused: Mapping[str, int]) -> str:
    parts = [f"{count} {what}" for what, count in list(refused.items())[:REFUSALS]]
    more = [f"{len(refused) - REFUSALS} more kinds"] if len(refused) > REFUSALS else []
    return ", ".join([*parts, *more])


def _faults(faults: Mapping[str, Mapping[str, Any]]) -> str:
    return ", ".join(f"{found['count']} {what} (hit {found['hit'] or 'nobody'})" for what, found in faults.items())


def _never_bound(pods: Mapping[str, Any], width: int) -> list[Text]:
    """A line for each reason."""
    if not pods["pods"]:
        return []
    lines = [Text(f"never bound: {counted(pods['pods'], 'pod')}", "bold")]
    for found in pods["reasons"][:REASONS]:
        no_node = ", no node can take it" if found["hopeless"] and found["reason"] != unbound.NO_NODE else ""
        first = found["first"].removeprefix("default/")
        like = f"{first} and {counted(found['pods'] - 1, 'other')}" if found["pods"] > 1 else first
        lines += layouts.flowing(Text(f"  {like}: {found['reason']}{no_node}"), width, 4)
    more = len(pods["reasons"]) - REASONS
    return lines + [Text(f"  and for {counted(more, 'other reason')}", "dim")] * (more > 0)


def _cost(name: str, value: float) -> tuple[str, str]:
    """``utilisation cpu 34 %``, ``time to running p99 0.012 s``."""
    if name == "work.killed_pod_s":
        return "work killed, in pod-seconds", f"{value:.3f}"
    words = name.removesuffix("_s").replace(".", " ").replace("_", " ")
    words = f"time to {words}" if name.startswith("running.") else words
    if name.startswith("utilisation."):
        return words, f"{100 * value:.0f} %"
    return words, f"{value:.3f} s" if name.endswith("_s") else f"{value:g}"
