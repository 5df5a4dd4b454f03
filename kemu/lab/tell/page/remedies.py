"""Remedies side by side, as the first screen shows them: what each changes, what got better and what got worse.

Made from what ``kemu compare --json`` prints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from kemu.lab.tell import people
from kemu.runtime.words import counted

MOST_CHANGES = 6
_FIRST = (
    "evictions", "evictions_beyond_budget", "budget_violations", "preemptions", "oom_kills", "admissions_rejected",
    "waiting.max_s", "ready.missing_pod_s", "ready.fewest", "work.killed_pod_s",
)  # fmt: skip
"""What says most, in this order."""
MOST_ROWS = 7
"""At first sight; the others are a click away."""
_SIGNS = {"better": "✓ better", "worse": "✗ worse", "other": "changed", "unclear": "unclear", "same": "as before"}


def names(comparison: Mapping[str, Any]) -> dict[str, str]:
    """What the remedies are called on the page: by their files, without folders and endings where that is plain."""
    given = [variant["with"] for variant in comparison["variants"]]
    short = {name: " + ".join(PurePath(part).stem for part in name.split(",")) for name in given}
    return {name: one if list(short.values()).count(one) == 1 else name for name, one in short.items()}


def of(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """``columns``: the scenario as it is, then the remedies; ``rows``: figures, of which ``cells`` has one each."""
    variants = comparison["variants"]
    seeds = len(comparison["seeds"])
    goal = comparison["goal"]
    best = comparison.get("best") or ""
    called = names(comparison)
    columns = []
    for number, variant in enumerate(variants):
        met = variant["goal_met_with_seeds"]
        changes = list(variant.get("changes", ()))
        columns.append(
            {
                "name": called[variant["with"]],
                "is_base": not number,
                "is_best": bool(best) and variant["with"] == best,
                "changes": changes[:MOST_CHANGES],
                "more": max(0, len(changes) - MOST_CHANGES),
                "met": None if goal is None else met == seeds,
                "met_text": "" if goal is None else f"with {met} of {counted(seeds, 'seed')}",
                "failed": variant["failed"],
            }
        )
    metrics = list(variants[0]["metrics"]) if variants else []
    aimed_at = [name for name in metrics if goal and name == goal.split()[0].partition("<")[0].partition(">")[0]]
    ordered = list(dict.fromkeys([*aimed_at, *(name for name in _FIRST if name in metrics), *metrics]))
    rows = [_row(name, variants) for name in ordered]
    differing = [row for row in rows if any(cell["outcome"] not in ("", "same") for cell in row["cells"])]
    return {
        "goal": goal or "",
        "seeds": counted(seeds, "seed"),
        "best": called.get(best, ""),
        "why": comparison.get("why", ""),
        "columns": columns,
        "rows": differing[:MOST_ROWS],
        "more_rows": differing[MOST_ROWS:],
        "same": [row["name"] for row in rows if all(cell["outcome"] in ("", "same") for cell in row["cells"])],
    }


def _row(name: str, variants: list[Mapping[str, Any]]) -> dict[str, Any]:
    cells = []
    for variant in variants:
        figure = variant["metrics"][name]
        mean, difference, outcome = figure["mean"], figure["difference"], figure["outcome"]
        text = "-" if mean is None else people.figure(name, _estimate(mean))
        by = ""
        if difference is not None and outcome not in ("", "same"):
            by = people.figure(name, _estimate(difference), signed=True)
            if not people.differs(by):
                by, outcome = "", "same"
        cell = {"text": text, "by": by, "outcome": outcome, "sign": _SIGNS.get(outcome, "")}
        cells.append({**cell, "range": _range(name, difference)})
    return {"name": people.metric(name).name, "metric": name, "cells": cells}


def _estimate(interval: Mapping[str, Any]) -> float:
    return float(interval["estimate"])


def _range(name: str, difference: Mapping[str, Any] | None) -> str:
    """The interval of a difference, in words."""
    if difference is None or difference.get("low") is None or difference.get("high") is None:
        return ""
    low, high = float(difference["low"]), float(difference["high"])
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{people.figure(name, low, signed=True)} to {people.figure(name, high, signed=True)}"
