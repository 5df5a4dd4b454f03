"""Which pictures there are, and how they become SVG and PNG.

for picture in pictures.draw(folder, ...):
    print(picture.file or picture.why)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from kemu.errors import KemuError
from kemu.lab.sweep.plots import fronts, metric_curves, occupancy, styles, waiting_curves
from kemu.lab.sweep.plots.sources import NotShownError, Source

FOLDER = "plots"
KINDS: Mapping[str, str] = {
    "waiting": "how many pods are bound within a time, by priority and variant",
    "starvation": "a metric of each priority over the load, or another number that varies",
    "conflicts": "bindings refused and pods rejected over the number of schedulers, or another number that varies",
    "pareto": "two metrics against each other, with the variants that no other beats",
    "occupancy": "how full each node is over time",
}
FORMATS = ("svg", "png")
_PPI = 144


@dataclass(frozen=True)
class Manner:
    """How pictures are drawn."""

    format: str = "svg"
    theme: str = "light"
    x: str = ""
    """The number that varies, for curves; empty: the likeliest."""
    metric: str = "waiting.p99_s"
    """Metric of the starvation curve."""
    priority: int | None = None
    """Only this one, of the starvation curve."""
    pareto: tuple[str, str] = field(default=fronts.METRICS)


@dataclass(frozen=True)
class Picture:
    kind: str
    file: Path | None
    why: str = ""
    """There is none."""


def draw(path: Path, out: Path, kinds: Sequence[str], manner: Manner = Manner()) -> Iterator[Picture]:
    """Draw into ``out``. Raises KemuError where the results cannot be read, or a file cannot be written."""
    source = Source(path)
    try:
        for kind in kinds:
            try:
                picture = rendered(chart(source, kind, manner), manner)
            except NotShownError as error:
                yield Picture(kind, None, str(error))
                continue
            out.mkdir(parents=True, exist_ok=True)
            file = out / f"{kind}.{manner.format}"
            file.write_bytes(picture)
            yield Picture(kind, file)
    except OSError as error:
        raise KemuError(f"{error.filename or out}: {error.strerror or error}") from None


def chart(source: Source, kind: str, manner: Manner) -> alt.TopLevelMixin:
    """Raises NotShownError where the results have nothing for it."""
    theme = styles.THEMES[manner.theme]
    if kind == "waiting":
        return waiting_curves.chart(source, theme)
    if kind == "starvation":
        return metric_curves.starvation(source, theme, manner.x, manner.metric, manner.priority)
    if kind == "conflicts":
        return metric_curves.conflicts(source, theme, manner.x)
    if kind == "pareto":
        return fronts.chart(source, theme, manner.pareto)
    return occupancy.chart(source, theme)


def rendered(made: alt.TopLevelMixin, manner: Manner) -> bytes:
    """The same chart gives the same bytes."""
    specification: dict[str, Any] = json.loads(made.to_json(validate=False))
    specification["config"] = styles.configuration(styles.THEMES[manner.theme])
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    if manner.format == "png":
        return bytes(vl_convert.vegalite_to_png(specification, vl_version=version, ppi=_PPI))
    return vl_convert.vegalite_to_svg(specification, vl_version=version).encode()
