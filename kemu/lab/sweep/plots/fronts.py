"""Two metrics against each other: the variants that no other beats in both are the Pareto front."""

from __future__ import annotations

from typing import Any

import altair as alt

from kemu.lab.sweep.plots import styles
from kemu.lab.sweep.plots.sources import Source
from kemu.lab.sweep.plots.styles import NotShownError

METRICS = ("utilisation.cpu", "waiting.p99_s")
_ALL_NAMES, _MOST_NAMES = 6, 14


def chart(
    source: Source,
    theme: styles.Theme,
    metrics: tuple[str, str] = METRICS,
    log: styles.Logarithmic = styles.LINEAR,
) -> alt.TopLevelMixin:
    """Each variant is a point: the means over its seeds, with their 95 % intervals as whiskers."""
    first, second = metrics
    across, up = source.metric(first), source.metric(second)
    points: list[dict[str, Any]] = [
        {
            "name": source.values(variant), "x": across[variant.index].mean, "y": up[variant.index].mean,
            "x_low": across[variant.index].low, "x_high": across[variant.index].high,
            "y_low": up[variant.index].low, "y_high": up[variant.index].high,
        }
        for variant in source.variants if variant.index in across and variant.index in up
    ]  # fmt: skip
    if len(points) < 2:
        raise NotShownError("a front needs at least two variants")
    for point in points:
        beaten = any(_beats(other, point, metrics) for other in points)
        point["kind"] = "beaten by another variant in both" if beaten else "on the front: no variant beats it in both"
    front = [point for point in _places(points) if point["kind"].startswith("on")]
    kinds = ["on the front: no variant beats it in both", "beaten by another variant in both"]
    colour = alt.Color(
        "kind:N", title=None, legend=alt.Legend(orient="bottom", columns=1),
        scale=alt.Scale(domain=kinds, range=[theme.colours[0], theme.dim]),
    )  # fmt: skip
    shape = alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds, range=["circle", "cross"]))
    x = alt.X("x:Q", title=styles.title(first), **_scale(points, "x", 46, log.x))
    y = alt.Y("y:Q", title=styles.title(second), **_scale(points, "y", 26, log.y))
    base = alt.Chart(alt.Data(values=points))
    layers = [
        alt.Chart(alt.Data(values=front))
        .mark_line(strokeWidth=1.6, strokeDash=[5, 4], color=theme.colours[0])
        .encode(x=x, y=y, order="x:Q"),
        base.mark_rule(opacity=0.55).encode(
            x=alt.X("x_low:Q", title=styles.title(first)), x2="x_high:Q", y=y, color=colour
        ),
        base.mark_rule(opacity=0.55).encode(
            x=x, y=alt.Y("y_low:Q", title=styles.title(second)), y2="y_high:Q", color=colour
        ),
        base.mark_point(size=90, filled=True, opacity=1).encode(x=x, y=y, color=colour, shape=shape),
    ]
    named = _named(points)
    for place, side in enumerate(("above", "below")):
        names = alt.Chart(alt.Data(values=named[place::2]))
        offset = {"align": "right", "dx": -9, "dy": -11} if side == "above" else {"align": "left", "dx": 9, "dy": 13}
        layers.append(names.mark_text(fontSize=12, color=theme.text, **offset).encode(x=x, y=y, text="name:N"))
    told = [f"{source.name}: means over {len(source.seeds)} seeds with 95 % intervals. {_better(metrics)} is better."]
    if source.axes:
        told.append(f"labels: {', '.join(axis.name for axis in source.axes)}")
    heading = alt.Title("What each variant trades for what", subtitle=told)
    return alt.layer(*layers).properties(width=600, height=360, title=heading)


def _named(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The variants whose names have room: all, or those on the front, or none."""
    places = _places(points)
    front = [point for point in places if point["kind"].startswith("on")]
    return places if len(places) <= _ALL_NAMES else front if len(front) <= _MOST_NAMES else []


def _places(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """From left to right; variants at the same place have one name."""
    found: dict[tuple[float, float], dict[str, Any]] = {}
    for point in points:
        place = point["x"], point["y"]
        known = found.get(place)
        name = point["name"] if known is None else f"{known['name']} = {point['name']}"
        found[place] = {**point, "name": name}
    return [found[place] for place in sorted(found)]


def _scale(points: list[dict[str, Any]], value: str, padding: int, log: bool) -> dict[str, Any]:
    """The scale, and the axis of a logarithmic one: room around the points, but nothing below 0 where nothing is."""
    low, high = f"{value}_low", f"{value}_high"
    most = max(point[high] for point in points)
    if log:
        begin = styles.logarithmic(points, value, low, f"--log-{value}") / 1.2
        scale = alt.Scale(type="log", domain=[begin, most * 1.2], nice=False)
        return {"scale": scale, "axis": alt.Axis(values=styles.powers(begin, most * 1.2))}
    least = min(point[low] for point in points)
    if 0 <= least < 0.25 * most:
        return {"scale": alt.Scale(domain=[0, most * 1.06], nice=True)}
    return {"scale": alt.Scale(zero=False, padding=padding)}


def _beats(one: dict[str, Any], other: dict[str, Any], metrics: tuple[str, str]) -> bool:
    """At least as good in both, and better in one."""
    signs = [1 if name in styles.HIGHER_IS_BETTER else -1 for name in metrics]
    gains = [sign * (one[key] - other[key]) for sign, key in zip(signs, ("x", "y"), strict=True)]
    return bool(min(gains) >= 0 and max(gains) > 0)


def _better(metrics: tuple[str, str]) -> str:
    across, up = (name in styles.HIGHER_IS_BETTER for name in metrics)
    return f"{'Upper' if up else 'Lower'} {'right' if across else 'left'}"
