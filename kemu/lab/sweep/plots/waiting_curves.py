"""How many pods are bound within a time: Kaplan-Meier curves, a column for each priority, a line for each variant.

A pod that was never bound has a tick where it was last seen. It does not count as bound, nor is it left out: the curve
says what is known until then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from kemu.lab.sweep.plots import styles
from kemu.lab.sweep.plots.sources import Source, Variant
from kemu.lab.sweep.plots.styles import NotShownError
from kemu.lab.sweep.statistics import waiting

_LEAST_S = 0.001
"""Shorter waits are drawn there: a logarithmic axis has no 0."""
_MOST_POINTS = 240
_MOST_TICKS = 40
_MOST_PRIORITIES = 4
_MOST_ROWS = 3


def chart(source: Source, theme: styles.Theme) -> alt.TopLevelMixin:
    rows = source.rows(
        "SELECT variant_index, seed, priority, waited_s, censored FROM pods WHERE waited_s IS NOT NULL "
        "ORDER BY variant_index, priority, seed, waited_s"
    )
    if not rows:
        raise NotShownError("no pod waited")
    chosen, row_axis = _chosen(source)
    priorities = sorted({row["priority"] for row in rows}, reverse=True)[:_MOST_PRIORITIES]
    grouped: dict[tuple[int, int], dict[int, tuple[list[float], list[bool]]]] = {}
    for row in rows:
        seconds, censored = grouped.setdefault((row["variant_index"], row["priority"]), {}).setdefault(
            row["seed"], ([], [])
        )
        seconds.append(row["waited_s"])
        censored.append(row["censored"])
    points: list[dict[str, Any]] = []
    ticks: list[dict[str, Any]] = []
    for variant in chosen:
        for priority in priorities:
            seeds = grouped.get((variant.index, priority))
            if seeds is None:
                continue
            curve = waiting.over_seeds({seed: waiting.Waits(*each) for seed, each in seeds.items()})
            about = {
                "line": _line(source, variant, row_axis), "priority": f"priority {priority}",
                "row": _row(variant, row_axis),
            }  # fmt: skip
            points += [{**about, **point} for point in _points(curve)]
            unbound = sorted(
                s for seconds, cut in seeds.values() for s, is_cut in zip(seconds, cut, strict=True) if is_cut
            )
            ticks += [
                {**about, "s": max(s, _LEAST_S), "bound": _percent(1 - curve.at(s))}
                for s in _thin(unbound, _MOST_TICKS)
            ]
    _begin(points)
    lines = list(dict.fromkeys(point["line"] for point in points))
    if len(lines) > styles.MOST_COLOURS:
        raise NotShownError(f"{len(lines)} variants are more than a picture can tell apart")
    return _drawn(source, theme, points, ticks, lines, [f"priority {priority}" for priority in priorities], row_axis)


def _drawn(
    source: Source,
    theme: styles.Theme,
    points: list[dict[str, Any]],
    ticks: list[dict[str, Any]],
    lines: Sequence[str],
    columns: Sequence[str],
    row_axis: str,
) -> alt.TopLevelMixin:
    legend = None if len(lines) == 1 else alt.Legend(**styles.line_legend(1 if len(lines) > 4 else 2))
    colour = alt.Color(
        "line:N", sort=lines, title=None, scale=alt.Scale(domain=lines, range=list(theme.colours[: len(lines)])),
        legend=legend,
    )  # fmt: skip
    dash = alt.StrokeDash(
        "line:N", sort=lines, title=None, scale=alt.Scale(domain=lines, range=list(styles.DASHES)), legend=legend
    )  # fmt: skip
    x = alt.X(
        "s:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(**styles.seconds_axis("time since creation")),
    )  # fmt: skip
    y = alt.Y("bound:Q", scale=alt.Scale(domain=[0, 100]), title="pods bound by then (%)")
    base = alt.Chart(alt.Data(values=points))
    band = base.mark_area(interpolate="step-after", opacity=0.18).encode(
        x=x, y=alt.Y("low:Q", title="pods bound by then (%)"), y2="high:Q", color=colour
    )
    curve = base.mark_line(interpolate="step-after", strokeWidth=2.2).encode(x=x, y=y, color=colour, strokeDash=dash)
    layers: list[alt.Chart] = [band, curve]
    if ticks:
        marks = alt.Chart(alt.Data(values=ticks)).mark_tick(orient="vertical", thickness=1.6, size=13)
        layers.append(marks.encode(x=x, y=y, color=colour))
    told = [f"{source.name}, {_count(source.seeds, 'seed')}. Kaplan-Meier, with 95 % bands over seeds."
            if len(source.seeds) > 1 else f"{source.name}, seed {source.seeds[0]}. Kaplan-Meier."]  # fmt: skip
    if ticks:
        told.append("A tick is a pod that was never bound, where it was last seen; it counts as not bound until then.")
    if len(lines) < len(source.variants) and not row_axis:
        told.append(f"the first {len(lines)} of {len(source.variants)} variants")
    size = {1: 560, 2: 380, 3: 270}.get(len(columns), 220)
    layered = alt.layer(*layers, data=alt.Data(values=[])).properties(width=size, height=260 if not row_axis else 190)
    facets: dict[str, Any] = {}
    if len(columns) > 1:
        facets["column"] = alt.Column("priority:N", sort=columns, title=None)
    if row_axis:
        facets["row"] = alt.Row("row:N", sort=_rows(points), title=None)
    if facets:
        layered = _faceted([*points], [*ticks], layers, size, 260 if not row_axis else 190, facets)
    return layered.properties(title=alt.Title("How soon pods are bound", subtitle=told))


def _faceted(
    points: list[dict[str, Any]],
    ticks: list[dict[str, Any]],
    layers: Sequence[alt.Chart],
    width: int,
    height: int,
    facets: dict[str, Any],
) -> alt.FacetChart:
    """Facets share one table: the ticks stand in it as rows of another kind."""
    whole = [{**point, "kind": "curve"} for point in points] + [{**tick, "kind": "tick"} for tick in ticks]
    shared = []
    for layer in layers:
        kind = "tick" if layer.mark.type == "tick" else "curve"
        copy = layer.copy()
        copy.data = alt.Undefined
        shared.append(copy.transform_filter(f"datum.kind == '{kind}'"))
    layered = alt.layer(*shared).properties(width=width, height=height)
    return layered.facet(data=alt.Data(values=whole), **facets)


def _begin(points: list[dict[str, Any]]) -> None:
    """Begin at the power of ten below the shortest wait, not long before anything happens."""
    first = min(point["s"] for point in points if point["bound"] or point["s"] > _LEAST_S)
    begin_s = 10.0 ** math.floor(math.log10(first) - 1e-9)
    for point in points:
        if point["s"] == _LEAST_S and not point["bound"]:
            point["s"] = begin_s


def _points(curve: waiting.Curve) -> list[dict[str, Any]]:
    """From 0 to the longest wait, thinned where there are more steps than a picture can show."""
    found = [{"s": _LEAST_S, "bound": 0.0, "low": 0.0, "high": 0.0}]
    places = range(len(curve.seconds))
    if len(curve.seconds) > _MOST_POINTS:
        logs = np.log(np.maximum(curve.seconds, _LEAST_S))
        grid = np.linspace(logs[0], logs[-1], _MOST_POINTS)
        places = sorted({*np.searchsorted(logs, grid).clip(0, len(logs) - 1).tolist(), len(logs) - 1})  # type: ignore[assignment]
    for place in places:
        bound = _percent(1 - float(curve.waiting[place]))
        has_band = len(curve.low) > 0
        low = _percent(1 - float(curve.high[place])) if has_band else bound
        high = _percent(1 - float(curve.low[place])) if has_band else bound
        found.append(
            {"s": max(_round(float(curve.seconds[place])), _LEAST_S), "bound": bound, "low": low, "high": high}
        )
    last = found[-1]
    if curve.until_s > last["s"]:
        found.append({**last, "s": _round(curve.until_s)})
    return found


def _chosen(source: Source) -> tuple[list[Variant], str]:
    """All variants. Of more than have colours, those at the lowest, middle and highest value of a number that varies,
    one below the other; where none varies, the first."""
    if len(source.variants) <= styles.MOST_COLOURS - 2:
        return source.variants, ""
    if not any(axis.is_number for axis in source.axes):
        return source.variants[: styles.MOST_COLOURS], ""
    axis = source.numeric()
    values = sorted({variant.values[axis.name] for variant in source.variants})
    shown = sorted({values[0], values[len(values) // 2], values[-1]})[:_MOST_ROWS]
    return [variant for variant in source.variants if variant.values[axis.name] in shown], axis.name


def _line(source: Source, variant: Variant, row_axis: str) -> str:
    if not row_axis:
        return variant.name
    axis = next(axis for axis in source.axes if axis.name == row_axis)
    return source.others(axis, variant) or "all"


def _row(variant: Variant, row_axis: str) -> str:
    return f"{row_axis} {variant.values[row_axis]:g}" if row_axis else ""


def _rows(points: Sequence[dict[str, Any]]) -> list[str]:
    return sorted({point["row"] for point in points}, key=lambda row: float(row.rpartition(" ")[2]))


def _thin(values: Sequence[float], most: int) -> list[float]:
    if len(values) <= most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def _percent(share: float) -> float:
    return _round(100 * share)


def _round(value: float) -> float:
    return float(f"{value:.6g}")


def _count(values: Sequence[int], what: str) -> str:
    return f"{len(values)} {what}{'s' if len(values) != 1 else ''}"
