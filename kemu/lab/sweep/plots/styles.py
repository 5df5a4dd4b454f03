"""Colours, fonts and words that all pictures share.

Colours are those of Okabe and Ito, which the colour-blind can tell apart; shapes and dashes tell the same again. Every
picture has a background of its own, so it can be read on a page of any colour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.errors import KemuError


class NotShownError(KemuError):
    """These results have nothing for this picture."""


FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""The renderer brings the first along; the others have the same widths, for browsers that show the SVG."""


@dataclass(frozen=True)
class Theme:
    background: str
    text: str
    faint: str
    """The colour of grids, axes and second lines."""
    dim: str
    colours: Sequence[str]


THEMES: Mapping[str, Theme] = {
    "light": Theme(
        "#ffffff", "#1f2328", "#d8dee4", "#57606a",
        ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6e7781", "#000000"),
    ),
    "dark": Theme(
        "#0d1117", "#e6edf3", "#30363d", "#9da7b3",
        ("#56b4e9", "#e69f00", "#2bc79a", "#f08fc0", "#f0e442", "#ff8f5a", "#9da7b3", "#ffffff"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Logarithmic:
    """Which axes of numbers are logarithmic."""

    x: bool = False
    y: bool = False


LINEAR = Logarithmic()


def logarithmic(points: Sequence[dict[str, Any]], value: str, low: str, option: str) -> float:
    """Where such an axis begins; ends of intervals that it has no place for are cut off there. Raises NotShownError for
    a figure that it has no place for."""
    least = min(point[value] for point in points)
    if least <= 0:
        raise NotShownError(f"{option}: some figure is {least:g}, for which a logarithmic axis has no place")
    begin: float = min(max(point[low], least / 4) for point in points)
    for point in points:
        point[low] = max(point[low], begin)
    return begin


def powers(begin: float, end: float) -> list[float]:
    """Labels of a logarithmic axis: powers of ten, and between few of them also 2 and 5 times those."""
    first, last = math.floor(math.log10(begin)), math.ceil(math.log10(end))
    steps = (1,) if last - first > 3 else (1, 2, 5)
    found = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    return [each for each in found if begin <= each <= end] or [begin, end]


MOST_COLOURS = 8
DASHES: Sequence[Sequence[int]] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3], [10, 4], [3, 1])
SEQUENTIAL = "cividis"
"""A scale of colours that the colour-blind see as everybody does."""


def configuration(theme: Theme) -> dict[str, Any]:
    """Configuration of Vega-Lite."""
    axis = {
        "labelColor": theme.text, "titleColor": theme.text, "gridColor": theme.faint, "domainColor": theme.dim,
        "tickColor": theme.dim, "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal",
        "titlePadding": 8, "gridOpacity": 0.7,
    }  # fmt: skip
    return {
        "font": FONT,
        "background": theme.background,
        "padding": 16,
        "axis": axis,
        "view": {"stroke": theme.faint},
        "title": {
            "color": theme.text, "subtitleColor": theme.dim, "fontSize": 16, "subtitleFontSize": 12, "anchor": "start",
            "offset": 14, "subtitlePadding": 6, "subtitleLineHeight": 16, "fontWeight": "bold",
        },
        "legend": {
            "labelColor": theme.text, "titleColor": theme.text, "labelFontSize": 12, "titleFontSize": 12,
            "titleFontWeight": "normal", "symbolOpacity": 1, "symbolStrokeWidth": 3, "symbolSize": 260,
            "labelLimit": 420, "columnPadding": 24,
        },
        "header": {
            "labelColor": theme.text, "titleColor": theme.text, "labelFontSize": 13, "labelFontWeight": "bold",
            "title": None,
        },
        "text": {"color": theme.text, "fontSize": 12},
    }  # fmt: skip


_TITLES = {
    "waiting.p50_s": "median wait until bound (s)",
    "waiting.p99_s": "99th percentile of the wait until bound (s)",
    "waiting.max_s": "longest wait until bound (s)",
    "running.p50_s": "median time from creation to running (s)",
    "running.p99_s": "99th percentile of the time from creation to running (s)",
    "running.max_s": "longest time from creation to running (s)",
    "overtaken.p99": "overtaken by younger pods (99th percentile, times)",
    "overtaken.max": "overtaken by younger pods (at most, times)",
    "utilisation.cpu": "cpu requested by running pods (share of allocatable)",
    "utilisation.memory": "memory requested by running pods (share of allocatable)",
    "work.killed_pod_s": "work killed (pod-seconds)",
    "ready.fewest": "fewest pods ready at a time",
    "ready.missing_pod_s": "missing pods that were ready before (pod-seconds)",
    "ready.restored_s": "time until as many pods are ready again (s)",
    "overloaded_s": "time until no request is refused any more (s)",
    "settled_s": "time until the last change of a pod or node (s)",
    "preemptions.wasted": "victims preempted in vain",
    "preemptions.indirect": "victims of pods that replace victims",
    "preemptions.depth": "length of the longest cascade of preemptions",
    "decisions.per_binding": "scheduling attempts for each binding",
    "bill.node_hours": "node hours",
    "bill.money": "money spent on nodes",
}


def title(metric: str) -> str:
    """Title of an axis, with its unit."""
    return _TITLES.get(metric) or f"{metric.replace('_', ' ').replace('.', ', ')} (count)"


HIGHER_IS_BETTER = frozenset(
    ("utilisation.cpu", "utilisation.memory", "pods_bound", "pods_running", "pods_succeeded", "ready.fewest")
)


UNITS = {"/s": "per second", "/m": "per minute", "/h": "per hour", "s": "seconds", "m": "minutes", "ms": "milliseconds"}


def axis_title(name: str, unit: str) -> str:
    """Axis title of a number that varies."""
    return f"{name} ({UNITS.get(unit, unit)})" if unit else name


def seconds_axis(name: str) -> dict[str, Any]:
    """A logarithmic axis of seconds, labelled at powers of ten, as people say them."""
    label = "datum.value >= 1 ? format(datum.value, ',~r') + ' s' : format(datum.value * 1000, '~r') + ' ms'"
    return {"title": name, "labelExpr": label, "values": [10.0**power for power in range(-6, 8)]}


def line_legend(columns: int) -> dict[str, Any]:
    """Line legend of lines, by their colours and dashes."""
    return {
        "orient": "bottom", "columns": columns, "symbolType": "stroke", "symbolFillColor": "transparent", "title": None,
    }  # fmt: skip
