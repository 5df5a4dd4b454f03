"""A metric over a number that varies: starvation over load, conflicts over the number of schedulers.

Points are means over seeds with their 95 % intervals. A triangle is a lower bound: so many pods still waited when a run
ended that nothing says how high the figure would be, or the run was broken off because the cluster could not keep up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from kemu.lab.sweep.plots import styles
from kemu.lab.sweep.plots.sources import Axis, Figure, Source, figure
from kemu.lab.sweep.plots.styles import NotShownError
from kemu.lab.sweep.statistics import samples

_MOST_PRIORITIES = 3
_LOADS = ("load", "rate", "arrival", "every")
_SCHEDULERS = ("scheduler", "replica")
_CONFLICTS = {
    "bind_conflicts": "refused by the API server: the pod was bound already",
    "admissions_rejected": "rejected by a kubelet: the room was taken",
}


def starvation(
    source: Source,
    theme: styles.Theme,
    x: str = "",
    metric: str = "waiting.p99_s",
    priority: int | None = None,
    log: styles.Logarithmic = styles.LINEAR,
) -> alt.TopLevelMixin:
    """How a metric of each priority grows with the load."""
    axis = source.numeric(x, likely=_LOADS)
    counted = source.rows("SELECT priority FROM priorities GROUP BY priority ORDER BY priority DESC")
    priorities: Sequence[int | None] = [row["priority"] for row in counted][:_MOST_PRIORITIES]
    if priority is not None:
        priorities = [priority]
    elif not metric.startswith(("waiting.", "overtaken.", "running.")):
        priorities = [None]
    points: list[dict[str, Any]] = []
    for each in priorities:
        panel = "" if each is None else f"pods of priority {each}"
        figures = source.metric(metric, each)
        points += _points(source, axis, figures, panel)
    if not points:
        raise NotShownError(f"no run has {metric}")
    words = styles.title(metric)
    is_load = any(part in axis.name.lower() for part in _LOADS)
    over = "the load" if is_load else axis.name
    title = f"How waiting changes with {over}" if metric.startswith("waiting.") else f"{words[0].upper()}{words[1:]}"
    return _drawn(source, theme, axis, points, words, title, log)


def conflicts(
    source: Source, theme: styles.Theme, x: str = "", log: styles.Logarithmic = styles.LINEAR
) -> alt.TopLevelMixin:
    """How many pods meet a conflict, by what found it."""
    axis = source.numeric(x, likely=_SCHEDULERS)
    rows = source.rows(
        f"SELECT variant_index, seed, pods_created, {', '.join(_CONFLICTS)} FROM runs WHERE pods_created > 0 "
        "ORDER BY variant_index, seed"
    )
    if not any(row[name] for row in rows for name in _CONFLICTS):
        raise NotShownError("no run had a conflict")
    points: list[dict[str, Any]] = []
    has_others = len(source.axes) > 1
    for name, line in _CONFLICTS.items():
        found: dict[int, dict[int, samples.Figure]] = {}
        for row in rows:
            share = 100 * row[name] / row["pods_created"]
            found.setdefault(row["variant_index"], {})[row["seed"]] = samples.Figure(share, share)
        figures = {index: figure(by_seed) for index, by_seed in found.items()}
        points += [
            {**point, "panel": point["line"] if has_others else "", "line": line}
            for point in _points(source, axis, figures, "")
        ]
    return _drawn(
        source, theme, axis, points, "conflicts for each 100 pods created", "How often schedulers collide", log
    )


def _points(source: Source, axis: Axis, figures: dict[int, Figure], panel: str) -> list[dict[str, Any]]:
    return [
        {
            "x": variant.values[axis.name], "mean": found.mean, "low": found.low, "high": found.high,
            "kind": "at least" if found.at_least else "mean", "line": source.others(axis, variant) or source.name,
            "panel": panel,
        }
        for variant in source.variants if (found := figures.get(variant.index)) is not None
    ]  # fmt: skip


def _drawn(
    source: Source,
    theme: styles.Theme,
    axis: Axis,
    points: list[dict[str, Any]],
    words: str,
    title: str,
    log: styles.Logarithmic,
) -> alt.TopLevelMixin:
    lines = list(dict.fromkeys(point["line"] for point in points))
    panels = list(dict.fromkeys(point["panel"] for point in points))
    if len(lines) > styles.MOST_COLOURS:
        raise NotShownError(f"{len(lines)} lines are more than a picture can tell apart")
    columns = 1 if max(map(len, lines)) > 24 else 3
    legend = None if len(lines) == 1 else alt.Legend(**styles.line_legend(columns))
    colour = alt.Color(
        "line:N", sort=lines, title=None, legend=legend,
        scale=alt.Scale(domain=lines, range=list(theme.colours[: len(lines)])),
    )  # fmt: skip
    dash = alt.StrokeDash(
        "line:N", sort=lines, title=None, scale=alt.Scale(domain=lines, range=list(styles.DASHES)), legend=legend
    )  # fmt: skip
    values = sorted({point["x"] for point in points})
    if log.x and values[0] <= 0:
        raise NotShownError(f"--log-x: {axis.name} is {values[0]:g}, for which a logarithmic axis has no place")
    x = alt.X(
        "x:Q", title=styles.axis_title(axis.name, axis.unit),
        scale=alt.Scale(
            domain=[values[0], values[-1]], padding=12, nice=False, type="log" if log.x else alt.Undefined
        ),
        axis=alt.Axis(values=values if len(values) <= 12 else alt.Undefined, grid=False),
    )  # fmt: skip
    y_scale, y_axis = alt.Scale(domainMin=0), alt.Undefined
    if log.y:
        begin = styles.logarithmic(points, "mean", "low", "--log-y")
        end = max(point["high"] for point in points)
        y_scale = alt.Scale(type="log", domain=[begin, end], nice=False)
        y_axis = alt.Axis(values=styles.powers(begin, end))
    y = alt.Y("mean:Q", title=words, scale=y_scale, axis=y_axis)
    base = alt.Chart()
    size = {1: 560, 2: 340}.get(len(panels), 250)
    layered = alt.layer(
        base.mark_area(opacity=0.16).encode(x=x, y=alt.Y("low:Q", title=words), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2.4).encode(x=x, y=y, color=colour, strokeDash=dash),
        base.mark_point(size=64, filled=True, opacity=1).encode(
            x=x, y=y, color=colour,
            shape=alt.Shape(
                "kind:N", legend=None, scale=alt.Scale(domain=["mean", "at least"], range=["circle", "triangle-up"])
            ),
        ),
    ).properties(width=size, height=280)  # fmt: skip
    told = [_told(source)]
    if any(point["kind"] == "at least" for point in points):
        told.append("▲ at least so much: some pods still waited when their run ended")
    heading = alt.Title(title, subtitle=told)
    data = alt.Data(values=points)
    if len(panels) > 1:
        column = alt.Column("panel:N", sort=panels, title=None)
        return layered.facet(data=data, column=column).properties(title=heading)
    if panels[0]:
        heading = alt.Title(f"{title}: {panels[0]}", subtitle=told)
    layered.data = data
    return layered.properties(title=heading)


def _told(source: Source) -> str:
    seeds = len(source.seeds)
    return f"{source.name}: means over {seeds} seeds, with 95 % intervals" if seeds > 1 else f"{source.name}, one seed"
