"""Which pictures there are, and how they become SVG, PDF and PNG.

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
from kemu.lab.sweep.plots import fronts, metric_curves, occupancy, pages, styles, waiting_curves
from kemu.lab.sweep.plots.sources import Source
from kemu.lab.sweep.plots.styles import NotShownError

FOLDER = "plots"
KINDS: Mapping[str, str] = {
    "waiting": "how many pods are bound within a time, by priority and variant",
    "starvation": "a metric of each priority over the load, or another number that varies",
    "conflicts": "bindings refused and pods rejected over the number of schedulers, or another number that varies",
    "pareto": "two metrics against each other, with the variants that no other beats",
    "occupancy": "how full each node is over time",
}
FORMATS = ("svg", "pdf", "png")
_PPI = 144
_PRINT_PPI = 300
"""Of pictures whose size is given."""


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
    size: pages.Size | None = None
    """None: as large as the picture needs."""
    font: str = ""
    """A family that the renderer has; empty: Liberation Sans."""
    font_size: float = pages.FONT_SIZE
    """Of labels, in points; titles keep their proportion to them."""
    log: styles.Logarithmic = styles.LINEAR
    title: str | None = None
    """In place of the picture's own; empty: none."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Text in legends, panels and titles of axes → what stands there instead."""


@dataclass(frozen=True)
class Picture:
    kind: str
    file: Path | None
    why: str = ""
    """There is none."""


def draw(path: Path, out: Path, kinds: Sequence[str], manner: Manner = Manner()) -> Iterator[Picture]:
    """Draw into ``out``. Raises KemuError where the results cannot be read, or a file cannot be written."""
    source = Source(path)
    if manner.font:
        pages.check_font(manner.font)
    texts: set[str] = set()
    try:
        for kind in kinds:
            try:
                specification = specified(chart(source, kind, manner), manner)
                texts |= pages.rename(specification, manner.names)
                picture = rendered(specification, manner)
            except NotShownError as error:
                yield Picture(kind, None, str(error))
                continue
            out.mkdir(parents=True, exist_ok=True)
            file = out / f"{kind}.{manner.format}"
            file.write_bytes(picture)
            yield Picture(kind, file)
    except OSError as error:
        raise KemuError(f"{error.filename or out}: {error.strerror or error}") from None
    unknown = [name for name in manner.names if name not in texts]
    if unknown:
        there = ", ".join(repr(text) for text in sorted(texts)) or "none"
        raise KemuError(f"--name {unknown[0]!r}: no text of these pictures; they have {there}")


def chart(source: Source, kind: str, manner: Manner) -> alt.TopLevelMixin:
    """Raises NotShownError where the results have nothing for it."""
    theme = styles.THEMES[manner.theme]
    if kind == "waiting":
        return waiting_curves.chart(source, theme)
    if kind == "starvation":
        return metric_curves.starvation(source, theme, manner.x, manner.metric, manner.priority, manner.log)
    if kind == "conflicts":
        return metric_curves.conflicts(source, theme, manner.x, manner.log)
    if kind == "pareto":
        return fronts.chart(source, theme, manner.pareto, manner.log)
    return occupancy.chart(source, theme)


def specified(made: alt.TopLevelMixin, manner: Manner) -> dict[str, Any]:
    """The specification of Vega-Lite, in that manner but for size and names."""
    specification: dict[str, Any] = json.loads(made.to_json(validate=False))
    specification["config"] = styles.configuration(styles.THEMES[manner.theme])
    pages.set_font(specification, manner.font, manner.font_size)
    if manner.title is not None:
        pages.set_title(specification, manner.title)
    return specification


def rendered(specification: dict[str, Any], manner: Manner) -> bytes:
    """The same specification gives the same bytes."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    if manner.size is None:
        if manner.format == "png":
            return bytes(vl_convert.vegalite_to_png(specification, vl_version=version, ppi=_PPI))
        svg = str(vl_convert.vegalite_to_svg(specification, vl_version=version))
        return pages.pdf(svg) if manner.format == "pdf" else svg.encode()
    svg = pages.fit(specification, manner.size, version)
    if manner.format == "png":
        return bytes(vl_convert.svg_to_png(svg, ppi=_PRINT_PPI))
    return pages.pdf(svg) if manner.format == "pdf" else pages.in_points(svg).encode()
