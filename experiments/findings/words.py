"""How the page writes numbers, texts and rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MARKS = {"holds": "✓", "fails": "✗", "undecided": "?"}


def words(text: str) -> str:
    return " ".join(text.split())


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def figure(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    if found["high"] is None:
        return f"≥ {number(found['mean'])}"
    if found["low"] == found["high"]:
        return number(found["mean"])
    return f"{number(found['mean'])} [{number(found['low'])}, {number(found['high'])}]"


def number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def count(amount: int, noun: str) -> str:
    return f"{amount:,} {noun}" + ("" if amount == 1 else "s")
