"""Means of metrics with their intervals, a row for each variant: ``kemu results --means``; tables in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.sweep.plots.sources import Figure, Source
from kemu.lab.sweep.results.queries import Answer
from kemu.lab.sweep.statistics import judging

_METRIC = re.compile(r"(?P<name>[\w.]+)(?:\(priority=(?P<priority>-?[0-9]+)\))?")


@dataclass(frozen=True)
class Means:
    axes: Sequence[str]
    metrics: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[Figure | None]]]
    """The values of what varies, and the figure of each metric; None: no run has it."""


def of(path: Path, metrics: Sequence[str]) -> Means:
    """``metrics``: as ``waiting.p99_s`` or ``waiting.max_s(priority=1000)``; none: those of the experiment. Raises
    KemuError."""
    source = Source(path)
    wanted = list(metrics) or source.metrics or ["waiting.p99_s"]
    found = [_figures(source, metric) for metric in wanted]
    rows = [(source.texts(variant), [figures.get(variant.index) for figures in found]) for variant in source.variants]
    if not source.axes:
        rows = [([source.name], figures) for _, figures in rows]
    return Means([axis.name for axis in source.axes] or ["scenario"], wanted, rows)


def _figures(source: Source, metric: str) -> Mapping[int, Figure]:
    match = _METRIC.fullmatch(metric)
    if match is None:
        raise KemuError(f"--means {metric}: is no metric; metrics are like waiting.p99_s or waiting.p99_s(priority=10)")
    return source.metric(match["name"], None if match["priority"] is None else int(match["priority"]))


def answer(means: Means, form: str) -> Answer:
    """Figures with their intervals as text; for programs, a column for each number."""
    if form == "text":
        lines: list[tuple[Any, ...]] = [(*values, *map(_text, figures)) for values, figures in means.rows]
        names = [*means.axes, *means.metrics]
        return Answer(names, ["VARCHAR"] * len(names), iter(lines))
    parts = ("mean", "low", "high", "at_least", "count")
    names = [*means.axes, *(f"{metric} {part}" for metric in means.metrics for part in parts)]
    kinds = ["VARCHAR"] * len(means.axes) + ["DOUBLE"] * (len(names) - len(means.axes))
    lines = [
        (*values, *(None if each is None else getattr(each, part) for each in figures for part in parts))
        for values, figures in means.rows
    ]
    return Answer(names, kinds, iter(lines))


def _text(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    mean = f"{'≥ ' * figure.at_least}{judging.number(figure.mean)}"
    high = "" if figure.at_least else f" {judging.number(figure.high)}"
    return mean if figure.count == 1 else f"{mean} [{judging.number(figure.low)} …{high}]"


# LaTeX --------------------------------------------------------------------------------------------------------------

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
            ">": r"\textgreater{}", "|": r"\textbar{}", "≥": r"$\geq$", "…": r"\dots{}",
            **{mark: f"\\{mark}" for mark in "&%$#_{}"}}  # fmt: skip


def escaped(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def latex(means: Means, names: Mapping[str, str]) -> str:
    """A ``tabular`` for the package booktabs. ``names``: what stands in place of a heading or a value, as LaTeX. Raises
    KemuError for one that there is not."""
    known = dict.fromkeys([*means.axes, *means.metrics, *(value for values, _ in means.rows for value in values)])
    for name in names:
        if name not in known:
            raise KemuError(f"--name {name!r}: no text of this table; it has {', '.join(map(repr, known))}")
    lines = [
        [names.get(value, escaped(value)) for value in values] + [_latex_figure(each) for each in figures]
        for values, figures in means.rows
    ]
    heads = [names.get(head, escaped(head)) for head in (*means.axes, *means.metrics)]
    return tabular(heads, lines, "l" * len(means.axes) + "r" * len(means.metrics))


def tabular(heads: Sequence[str], lines: Sequence[Sequence[str]], columns: str) -> str:
    """``tabular`` of cells that are LaTeX already."""
    body = [" & ".join(line) + r" \\" for line in lines]
    return "\n".join(
        [f"\\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(heads) + r" \\", r"\midrule", *body,
         r"\bottomrule", r"\end{tabular}", ""]
    )  # fmt: skip


def _latex_figure(figure: Figure | None) -> str:
    if figure is None:
        return "--"
    bound = r"\geq " if figure.at_least else ""
    mean = f"${bound}{_latex_number(figure.mean)}$"
    high = r"\infty)" if figure.at_least else f"{_latex_number(figure.high)}]"
    interval = "" if figure.count == 1 else rf" {{\footnotesize $[{_latex_number(figure.low)}, {high}$}}"
    return mean + interval


def _latex_number(value: float) -> str:
    """As in the text, with a thin space between thousands."""
    base, power, exponent = judging.number(value).replace(",", r"\,").partition("e")
    return rf"{base}\cdot 10^{{{int(exponent)}}}" if power else base
