"""A verdict in the terminal: first what happened, then what it shows, then what to try next."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kemu.checks.history import History
from kemu.report import story_tables

REFUSALS = 6
"""Kinds of refused requests that are named."""

_MARK = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}
_NEUTRAL = "[dim]·[/]"
_WARNING = "[yellow]![/]"
_WORD = {"holds": "[bold green]holds[/]", "fails": "[bold red]fails[/]", "unknown": "[bold yellow]unknown[/]"}


def show_run(console: Console, verdict: Mapping[str, Any], history: History, description: str) -> None:
    """One run: headline, story, expectations, checks, figures."""
    headline(console, verdict)
    if description:
        console.print(escape(" ".join(description.split())), style="dim", highlight=False)
    console.print()
    story_tables.show(console, history)
    show_judgements(console, verdict)
    show_figures(console, verdict)


def headline(console: Console, verdict: Mapping[str, Any]) -> None:
    lacks = f", without {', '.join(verdict['ablate'])}" if verdict.get("ablate") else ""
    console.print(
        f"[bold]{escape(verdict['scenario'])}[/] {_WORD[verdict['verdict']]}  "
        f"[dim]{verdict['runtime']}, seed {verdict['seed']}, {verdict['virtual_s']:g} virtual s in "
        f"{verdict['wall_s']:g} s{lacks}[/]",
        highlight=False,
    )


def show_judgements(console: Console, verdict: Mapping[str, Any], *, passed: int = 20) -> None:
    """What failed or is unknown, always; what holds, unless that is too much."""
    for gap in verdict.get("incomplete", ()):
        console.print(f"[bold yellow]incomplete log[/] {escape(gap)}", highlight=False)
    judged = verdict["expectations"]
    good = sum(found["holds"] is True for found in judged)
    if judged:
        console.print(f"[bold]expected[/] [dim]{good} of {len(judged)}[/]", highlight=False)
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
        for found in judged:
            if found["holds"] is True and len(judged) > passed:
                continue
            table.add_row(_MARK[found["holds"]], escape(found["text"]), f"[dim]{escape(found['detail'])}[/]")
        console.print(table)
    console.print("[bold]checked[/]", highlight=False)
    broken = _expected_to_fail(judged)
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    for found in verdict["checks"]:
        if not found["asked"] and found["holds"] is not False:
            continue
        mark, detail = _MARK[found["holds"]], found["detail"]
        if found["holds"] is None:
            mark, detail = _NEUTRAL, f"not exercised: {detail}"
        elif found["id"] in broken:
            detail += ", as expected"
        elif not found["asked"]:
            mark, detail = _WARNING, f"{detail} (nobody asked: the verdict stays)"
        table.add_row(mark, escape(found["id"]), f"[dim]{escape(detail)}[/]")
    console.print(table)
    console.print()


def _expected_to_fail(judged: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ids of the checks that were expected not to hold, and do not: ``{check: id, holds: false}``."""
    found = [re.match(r"\{check: ([a-z-]+), holds: false", one["text"]) for one in judged if one["holds"] is True]
    return [match[1] for match in found if match is not None]


def show_figures(console: Console, verdict: Mapping[str, Any]) -> None:
    telling = {name: value for name, value in verdict["counts"].items() if value}
    text = "  ".join(f"{name.replace('_', ' ')} [bold]{value}[/]" for name, value in telling.items())
    console.print(text or "[dim]nothing happened[/]", highlight=False)
    refused = verdict.get("refused", {})
    if refused:
        parts = ", ".join(f"{count} {escape(what)}" for what, count in list(refused.items())[:REFUSALS])
        more = f", {len(refused) - REFUSALS} more kinds" if len(refused) > REFUSALS else ""
        console.print(f"[dim]refused: {parts}{more}[/]", highlight=False)
    costs = [
        _cost(name, value) for name, value in verdict["costs"].items() if value and not name.startswith("refused.")
    ]
    if costs:
        console.print("  ".join(costs), highlight=False)
    faults = ", ".join(
        f"{found['count']} {what} (hit {found['hit'] or 'nobody'})" for what, found in verdict.get("faults", {}).items()
    )
    if faults:
        console.print(f"[dim]faults: {faults}[/]", highlight=False)
    groups = verdict["waiting"]
    if sum(group["pods"] for group in groups.values()) > 1:
        console.print(waiting_table({"": groups}))
    console.print()


def _cost(name: str, value: float) -> str:
    """``utilisation cpu 34 %``, ``time to running p99 0.012 s``."""
    if name == "work.killed_pod_s":
        return f"work killed [bold]{value:.3f} pod-seconds[/]"
    words = name.removesuffix("_s").replace(".", " ").replace("_", " ")
    words = f"time to {words}" if name.startswith("running.") else words
    if name.startswith("utilisation."):
        return f"{words} [bold]{100 * value:.0f} %[/]"
    return f"{words} [bold]{value:.3f} s[/]" if name.endswith("_s") else f"{words} [bold]{value:g}[/]"


def waiting_table(by_variant: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """Waiting times by variant (if any) and priority."""
    named = any(by_variant)
    table = Table(box=None, padding=(0, 1 if named else 2, 0, 0), pad_edge=False, header_style="dim")
    if named:
        table.add_column("variant", overflow="fold")
    for title in ("priority", "pods", "unbound", "wait p50", "p99", "max", "overtaken"):
        table.add_column(title, justify="right", no_wrap=True, min_width=max(len(title), 6))
    for name, groups in by_variant.items():
        for place, (priority, group) in enumerate(groups.items()):
            row = [
                priority,
                str(group["pods"]),
                str(group["unbound"]) if group["unbound"] else "-",
                *(_seconds(group[figure]) for figure in ("p50_s", "p99_s", "max_s")),
                str(group["overtaken_max"]),
            ]
            table.add_row(*([escape(name) if place == 0 else ""] if named else []), *row)
    return table


def _seconds(value: float) -> str:
    """Three digits are enough to compare."""
    return f"{value:.3f} s" if value < 10 else f"{value:.1f} s"


_TELLING = (
    "preemptions", "admissions_rejected", "bind_conflicts", "pods_bound", "pods_running", "nominations",
    "scheduling_attempts",
)  # fmt: skip
"""Counters that compare variants best, in that order."""


def show_matrix(
    console: Console, verdict: Mapping[str, Any], names: Sequence[str], histories: Sequence[History], description: str
) -> None:
    """All variants side by side, then what was expected of each and of all."""
    headline(console, verdict)
    if description:
        console.print(escape(" ".join(description.split())), style="dim", highlight=False)
    console.print()
    variants = verdict["variants"]
    if len(variants) <= 2 and all(len(history.pods) <= 12 for history in histories):
        for name, history in zip(names, histories, strict=True):
            console.print(f"[bold]{escape(name)}[/]", highlight=False)
            story_tables.show(console, history)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("variant", overflow="fold")
    telling = [name for name in _TELLING if len({found["counts"][name] for found in variants}) > 1][:4]
    for title in ("verdict", *(name.replace("_", " ") for name in telling)):
        table.add_column(title, justify="right", no_wrap=True, min_width=len(title))
    for name, found in zip(names, variants, strict=True):
        table.add_row(escape(name), _WORD[found["verdict"]], *(str(found["counts"][count]) for count in telling))
    console.print(table)
    console.print()
    console.print(waiting_table({name: found["waiting"] for name, found in zip(names, variants, strict=True)}))
    console.print()
    for name, found in zip(names, variants, strict=True):
        console.print(f"[bold]{escape(name)}[/]", highlight=False)
        show_judgements(console, found)
    compared = verdict["expectations"][sum(len(found["expectations"]) for found in variants) :]
    if compared:
        console.print("[bold]compared[/]", highlight=False)
        for found in compared:
            console.print(
                f"{_MARK[found['holds']]} {escape(found['text'])}  [dim]{escape(found['detail'])}[/]", highlight=False
            )
        console.print()
