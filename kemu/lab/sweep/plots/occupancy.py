"""How full each node is over time: the cpu that the pods running there request, as a share of what it has."""

from __future__ import annotations

from typing import Any

import altair as alt

from kemu.lab.sweep.plots import styles
from kemu.lab.sweep.plots.sources import Source, Variant
from kemu.lab.sweep.plots.styles import NotShownError

_STEPS = 80
_MOST_ROWS = 40
_MOST_PANELS = 4


def chart(source: Source, theme: styles.Theme) -> alt.TopLevelMixin:
    """Chart of the first seed. More nodes than rows are put together, neighbours by name; more variants than panels are
    left out, and the picture says so."""
    seed = source.seeds[0]
    shown = _shown(source)
    cells: list[dict[str, Any]] = []
    rows: dict[str, None] = {}
    for variant in shown:
        for cell in _cells(source, variant, seed):
            rows[cell["row"]] = None
            cells.append(cell)
    if not cells:
        raise NotShownError("no run of that seed has nodes and a duration")
    panels = list(dict.fromkeys(cell["panel"] for cell in cells))
    told = [f"{source.name}, seed {seed}: requests of the running pods"]
    if len(shown) < len(source.variants):
        told.append(f"{len(shown)} of {len(source.variants)} variants")
    heading = alt.Title("How full the nodes are", subtitle=told)
    height = max(60, min(14 * len(rows), 420)) if len(rows) > 3 else 34 * len(rows)
    picture = (
        alt.Chart()
        .mark_rect()
        .encode(
            x=alt.X("from:Q", title="time (s)", axis=alt.Axis(grid=False), scale=alt.Scale(nice=False)),
            x2="to:Q",
            y=alt.Y("row:N", sort=list(rows), title=None, axis=alt.Axis(labelOverlap=True, ticks=False)),
            color=alt.Color(
                "percent:Q",
                title="cpu requested (% of allocatable)",
                scale=alt.Scale(scheme=styles.SEQUENTIAL, domain=[0, 100], clamp=True),
                legend=alt.Legend(orient="bottom", gradientLength=260, titleLimit=300, direction="horizontal"),
            ),
        )
        .properties(width=_STEPS * (7 if len(panels) == 1 else 4), height=height)
    )
    data = alt.Data(values=cells)
    if len(panels) > 1:
        facet = alt.Facet("panel:N", sort=panels, title=None)
        return picture.facet(data=data, facet=facet, columns=2).properties(title=heading)
    picture.data = data
    return picture.properties(title=heading)


def _cells(source: Source, variant: Variant, seed: int) -> list[dict[str, Any]]:
    where = f"WHERE variant_index = {variant.index} AND seed = {seed}"
    (run,) = source.rows(f"SELECT virtual_s FROM runs {where}") or [{"virtual_s": None}]
    nodes = source.rows(f"SELECT name, cpu_milli FROM nodes {where} AND cpu_milli > 0 ORDER BY added_s, name")
    end_s = run["virtual_s"]
    if not end_s or not nodes:
        return []
    step_s = end_s / _STEPS
    used = {node["name"]: [0.0] * _STEPS for node in nodes}
    pods = source.rows(
        "SELECT node, cpu_milli, running_s AS begin_s, "
        f"least(coalesce(finished_s, {end_s}), coalesce(deleted_s, {end_s})) AS end_s FROM pods {where} "
        "AND running_s IS NOT NULL"  # what is bound may still be rejected
    )
    for pod in pods:
        levels = used.get(pod["node"])
        if levels is None:
            continue
        for place in range(int(pod["begin_s"] / step_s), min(int(pod["end_s"] / step_s) + 1, _STEPS)):
            within_s = min(pod["end_s"], (place + 1) * step_s) - max(pod["begin_s"], place * step_s)
            levels[place] += pod["cpu_milli"] * max(within_s, 0.0) / step_s
    groups = _groups([node["name"] for node in nodes])
    room = {node["name"]: node["cpu_milli"] for node in nodes}
    return [
        {
            "panel": variant.name, "row": row, "from": _round(place * step_s), "to": _round((place + 1) * step_s),
            "percent": _round(100 * sum(used[name][place] for name in names) / sum(room[name] for name in names)),
        }
        for row, names in groups.items() for place in range(_STEPS)
    ]  # fmt: skip


def _groups(names: list[str]) -> dict[str, list[str]]:
    if len(names) <= _MOST_ROWS:
        return {name: [name] for name in names}
    size = -(-len(names) // _MOST_ROWS)
    parts = [names[first : first + size] for first in range(0, len(names), size)]
    return {part[0] if len(part) == 1 else f"{part[0]} … {part[-1]}": part for part in parts}


def _shown(source: Source) -> list[Variant]:
    """All; or of more than there is room for, those with the lowest and the highest value of a number that varies."""
    variants = source.variants
    if len(variants) <= _MOST_PANELS:
        return variants
    half = _MOST_PANELS // 2
    axis = next((axis.name for axis in source.axes if axis.is_number), None)
    if axis is None:
        return [*variants[:half], *variants[-half:]]
    values = sorted(variant.values[axis] for variant in variants)
    low = [variant for variant in variants if variant.values[axis] == values[0]]
    high = [variant for variant in variants if variant.values[axis] == values[-1]]
    return [*low[:half], *high[:half]]


def _round(value: float) -> float:
    return float(f"{value:.6g}")
