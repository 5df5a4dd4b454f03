"""The figures of a verdict as tables: by priority, by workload, by scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.tell import happenings, layouts
from kemu.runtime.words import short

ROWS = 12
"""The most workloads that are shown: the largest ones."""
_FIGURES = (("wait p50", "p50_s"), ("p99", "p99_s"), ("max", "max_s"))
_AT_LEAST = "≥ at least: pods that were never bound count with the time that they had waited"


WAITING = ("pods", "unbound", *(title for title, _ in _FIGURES), "overtaken")
"""Titles of what :func:`waits` says."""


def waiting(groups: Mapping[str, Mapping[str, Any]], width: int, pods: Iterable[PodHistory] = ()) -> list[Text]:
    """Waiting times by priority; nothing of a single pod. ``pods``: name the classes."""
    if sum(group["pods"] for group in groups.values()) <= 1:
        return []
    named = {str(pod.priority): happenings.priority(pod) for pod in pods}
    rows = [[named.get(priority, priority), *waits(group)] for priority, group in groups.items()]
    return layouts.table(["priority", *WAITING], rows, width) + legend(list(groups.values()), width)


def legend(groups: Sequence[Mapping[str, Any]], width: int) -> list[Text]:
    """What ``≥`` means, if it is used."""
    return list(layouts.flowing(Text(_AT_LEAST, "dim"), width, 2)) if any(group["censored"] for group in groups) else []


def waits(group: Mapping[str, Any]) -> list[str]:
    """The figures of one group of pods."""
    figures = [
        ("≥ " if key in group["censored"] else "") + seconds(group[key]) if group["pods"] else "-"
        for _, key in _FIGURES
    ]
    return [str(group["pods"]), _number(group["unbound"]), *figures, str(group["overtaken_max"])]


def disturbances(found: Iterable[Mapping[str, Any]], width: int) -> list[Text]:
    """What happened to processes: those of which the same is told in one row."""
    alike: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for one in found:
        alike.setdefault((one["process"], one["what"], one["by"] or "outside"), []).append(one)
    rows = []
    for (process, what, by), group in list(alike.items())[:ROWS]:
        lasted = [one["for_s"] for one in group]
        longest = "to the end" if None in lasted else seconds(max(lasted))
        rows.append([process, what, str(len(group)), seconds(group[0]["at_s"]), longest, by])
    more = [Text(f"  and {len(alike) - ROWS} more", "dim")] if len(alike) > ROWS else []
    titles = ["process", "what", "times", "first at", "longest", "from"]
    return layouts.table(titles, rows, width) + more if rows else []


CELLS = 8
"""The most cells that are shown: the busiest ones."""


def cells(found: Mapping[str, Mapping[str, Any]], width: int) -> list[Text]:
    """How busy the cells of a run on Ray were."""
    shown = sorted(found, key=lambda name: -found[name]["cpu"])[:CELLS]
    rows = [
        [
            name,
            _number(cell["actors"]),
            f"{cell['cpu']:.0%}",
            f"{cell['cpu_max']:.0%}",
            f"{cell['waited_for_cpu']:.0%}",
            f"{cell['calls_per_s']:,.0f}",
            seconds(cell["late_max_s"]),
            f"{cell['memory_mib']:,.0f} MiB",
            seconds(cell["log_lag_max_s"]),
        ]
        for name, cell in found.items()
        if name in shown
    ]
    titles = ["cell", "actors", "core", "at most", "waited for one", "calls/s", "queue", "memory", "log behind"]
    more = len(found) - len(shown)
    return layouts.table(titles, rows, width) + [Text(f"and {more} more, less busy", "dim")] * (more > 0)


_FATES = ("preempted", "evicted", "rejected", "oomKilled")


def workloads(groups: Mapping[str, Mapping[str, Any]], width: int) -> list[Text]:
    """Who waited, was served and was thrown out, by workload; nothing where there is only one group."""
    if len(groups) <= 1:
        return []
    fates = [fate for fate in _FATES if any(group[fate] for group in groups.values())]
    shown = sorted(groups, key=lambda name: -groups[name]["created"])[:ROWS]
    titles = ["workload", "created", "bound", *WAITING[1:]]
    rows = [
        [
            name,
            str(group["created"]),
            str(group["bound"]),
            *waits(group)[1:],
            *(_number(group[fate]) for fate in fates),
        ]
        for name, group in groups.items()
        if name in shown
    ]
    lines = layouts.table([*titles, *("OOM-killed" if fate == "oomKilled" else fate for fate in fates)], rows, width)
    more = len(groups) - len(shown)
    return lines + [Text(f"and {more} more, with fewer pods", "dim")] * (more > 0)


def schedulers(replicas: Mapping[str, Mapping[str, int]], width: int) -> list[Text]:
    """What each scheduler did, and each replica of it; nothing where there is only one."""
    if len(replicas) <= 1:
        return []
    titles = ("attempts", "unschedulable", "bound", "conflicts", "preempted")
    rows = [[name, *(_number(row[title]) for title in titles)] for name, row in replicas.items()]
    return layouts.table(["scheduler", *titles], rows, width)


def budgets(found: Mapping[str, Mapping[str, Any]], width: int) -> list[Text]:
    """What each disruption budget wants and had, and what was taken from it, of which beyond what it can spare."""
    if not found:
        return []
    titles = ["disruption budget", "wants", "highest", "lowest", "at", "at the end"]
    rows = []
    for name, budget in found.items():
        never = budget["lowest"] is None
        when = ["never enough", "-"] if never else [str(budget["lowest"]), seconds(budget["lowest_s"])]
        rows.append([short(name), str(budget["wants"]), str(budget["highest"]), *when, str(budget["healthy"])])
    for how in ("preempted", "evicted"):
        if any(any(budget[how].values()) for budget in found.values()):
            titles += [how, "beyond"]
            for row, budget in zip(rows, found.values(), strict=True):
                row += [_number(sum(budget[how].values())), _number(budget[how]["beyond"])]
    return layouts.table(titles, rows, width)


def _number(value: float) -> str:
    return str(value) if value else "-"


def seconds(value: float) -> str:
    """Three digits are enough to compare."""
    return f"{value:.3f} s" if value < 10 else f"{value:.1f} s"
