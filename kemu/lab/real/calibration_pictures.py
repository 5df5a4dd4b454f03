"""What ``kemu calibrate`` measured, drawn: the share of samples within a time, and the distribution of the preset.

Needs the packages of the extra ``plot``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from kemu.emulated.settings import values
from kemu.errors import KemuError
from kemu.lab.real import calibrations
from kemu.lab.real.calibrations import Found, Preset
from kemu.lab.sweep.plots import pictures, styles
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS

_POINTS = 100
_PRESET = "preset"
_WIDTH, _HEIGHT = 330, 190


def draw(found: Sequence[Found], preset: Preset, file: Path) -> None:
    """Raises KemuError as :func:`format_of` does."""
    manner = pictures.Manner(format=format_of(file))
    points = _points(found, preset)
    file.write_bytes(pictures.rendered(pictures.specified(_chart(points, styles.THEMES[manner.theme]), manner), manner))


def format_of(file: Path) -> str:
    """``svg`` or ``png``. Raises KemuError for a file of another name."""
    found = file.suffix.removeprefix(".")
    if found not in pictures.FORMATS:
        raise KemuError(f"{file}: a picture is {' or '.join(f'.{one}' for one in pictures.FORMATS)}")
    return found


def _points(found: Sequence[Found], preset: Preset) -> Sequence[dict[str, Any]]:
    shares = [(place + 0.5) / _POINTS for place in range(_POINTS)]
    points = []
    for quantity in calibrations.QUANTITIES:
        if quantity.key not in preset.timing:
            continue
        drawn = distributions.parse(preset.fitted(quantity.key), number=values.duration_s)
        lines = {_PRESET: [drawn.quantile(share) for share in shares]}
        for one in found:
            if samples := quantity.samples(one.measured):
                lines[str(one.load)] = [max(each, 1e3) / SECOND_NS for each in np.quantile(samples, shares)]
        for line, times_s in lines.items():
            for share, time_s in zip(shares, times_s, strict=True):
                points.append({"what": str(quantity), "line": line, "s": float(time_s), "share": share})
    return points


def _chart(points: Sequence[dict[str, Any]], theme: styles.Theme) -> alt.TopLevelMixin:
    lines = list(dict.fromkeys(point["line"] for point in points))
    lines.sort(key=lambda line: line == _PRESET)
    scale = alt.Scale(domain=lines, range=[*theme.colours[: len(lines) - 1], theme.text])
    dashes = alt.Scale(domain=lines, range=[[1, 0]] * (len(lines) - 1) + [[6, 3]])
    legend = alt.Legend(title=None, orient="bottom", columns=2)
    return (
        alt.Chart(alt.Data(values=list(points)))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                "s:Q",
                scale=alt.Scale(type="log", nice=False),
                title="time (s)",
                axis=alt.Axis(format="~s", labelOverlap="greedy"),
            ),
            y=alt.Y("share:Q", title="share of samples within it", axis=alt.Axis(format="%")),
            color=alt.Color("line:N", scale=scale, legend=legend),
            strokeDash=alt.StrokeDash("line:N", scale=dashes, legend=legend),
            facet=alt.Facet("what:N", columns=2, sort=[str(one) for one in calibrations.QUANTITIES]),
        )
        .properties(title="What a real control plane took", width=_WIDTH, height=_HEIGHT)
        .resolve_scale(x="independent")
    )
