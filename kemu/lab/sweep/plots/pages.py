"""How a picture fits a page: its size, fonts, title and names, changed in its specification of Vega-Lite.

A point of the page is a pixel of the specification, so a font of 8 has 8 points in print.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import vl_convert

from kemu.errors import KemuError
from kemu.lab.sweep.plots.styles import NotShownError

_UNITS = {"": 1.0, "pt": 1.0, "in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4}
_SIZE = re.compile(r"(?P<width>[0-9.]+)(?P<unit>[a-z]*)(?:x(?P<height>[0-9.]+)(?P<unit2>[a-z]*))?")
_LEAST_PT, _MOST_PT = 36.0, 14_400.0
"""Half an inch; the largest page that PDF knows."""
FONT_SIZE = 12.0
"""Of labels, in points, as :mod:`styles` has it."""
_PADDING = 4
"""Around a picture of a given size: papers have margins of their own."""
_LETTER = 0.52
"""The mean width of a letter, in sizes of its font."""
_LEAST_VIEW_PT, _LOW_VIEW_PT = 24.0, 56.0
_PANEL_PT = 160.0
"""The room that a panel needs, where panels may as well stand one below the other."""
_ATTEMPTS = 5
_LENGTHS = frozenset(
    ("columnPadding", "dx", "dy", "offset", "padding", "strokeWidth", "subtitleLineHeight", "subtitlePadding",
     "symbolStrokeWidth", "thickness", "titlePadding")
)  # fmt: skip
_AREAS = frozenset(("size", "symbolSize"))
_SHOWN = ("line", "panel", "priority", "row", "name")
"""Fields whose values are text of the picture."""
_HEAD = re.compile(r'(<svg[^>]*?) width="([0-9.]+)" height="([0-9.]+)" (viewBox="[^"]*")')

Specification = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """Of a whole picture, in points (1/72 inch)."""

    width: float
    height: float | None = None
    """None: as the shape of the picture has it."""


def size_of(text: str) -> Size:
    """``84mm``, ``3.3in``, ``84mmx60mm``, ``240x160`` (points). Raises KemuError."""
    match = _SIZE.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        unit = match["unit"] or match["unit2"] or ""
        width = float(match["width"]) * _UNITS[unit]
        height = None if match["height"] is None else float(match["height"]) * _UNITS[match["unit2"] or unit]
    except (ValueError, KeyError):
        raise KemuError(
            f"--size {text}: is no size; sizes are like 84mm, 3.3in or 84mmx60mm, in mm, cm, in or pt"
        ) from None
    if not all(_LEAST_PT <= each <= _MOST_PT for each in (width, height or width)):
        raise KemuError(f"--size {text}: sides are from half an inch (36pt) to 200 inches")
    return Size(width, height)


def check_font(name: str) -> None:
    """Raises KemuError for a font that the renderer does not have: its texts would be left out, without a word."""
    if not _has_font(name):
        raise KemuError(
            f"--font {name}: the renderer has no such font; it brings Liberation Sans, and knows those of this machine"
        )


@functools.cache
def _has_font(name: str) -> bool:
    text = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="9" font-family="{_escaped(name)}">a'
    return b"/BaseFont" in vl_convert.svg_to_pdf(f"{text}</text></svg>")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def set_font(specification: Specification, name: str, points: float) -> None:
    """``name``: "" leaves the font as it is. ``points``: of labels; other texts, lines, marks and gaps keep their
    proportion to them."""
    if name:
        specification["config"]["font"] = f"{name}, {specification['config']['font']}"
    factor = points / FONT_SIZE
    if factor == 1:
        return
    for part in _dictionaries(specification):
        for key, value in part.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if key.lower().endswith("fontsize") or key in _LENGTHS:
                part[key] = round(value * factor, 2)
            elif key in _AREAS:
                part[key] = round(value * factor * factor, 2)


def set_title(specification: Specification, title: str) -> None:
    """ "" leaves it out, with what stands below it."""
    if title:
        specification["title"] = {"text": title}
    else:
        specification.pop("title", None)


def rename(specification: Specification, names: Mapping[str, str]) -> frozenset[str]:
    """Change texts of the picture: of its legend, its panels and its axes. Returns those that it had."""
    there: dict[str, None] = {}

    def new(text: str) -> str:
        there[text] = None
        return names.get(text, text)

    # The kind of a row is text where colours stand for it; elsewhere it only chooses a mark.
    coloured = any(part.get("color", {}).get("field") == "kind" for part in _encodings(specification))
    shown = (*_SHOWN, "kind") if coloured else _SHOWN
    values = {row[field] for row in _rows(specification) for field in shown if isinstance(row.get(field), str)}
    for part in _dictionaries(specification):
        for key, value in part.items():
            if key == "title" and isinstance(value, str) and part is not specification:
                part[key] = new(value)
            elif key in ("domain", "sort") and isinstance(value, list):
                part[key] = [names.get(each, each) if each in values else each for each in value]
    for row in _rows(specification):
        for field in shown:
            if isinstance(row.get(field), str) and row[field]:
                row[field] = new(row[field])
    return frozenset(there)


def fit(specification: Specification, size: Size, vl_version: str) -> str:
    """The SVG of a picture of that size: what is drawn gets the room that texts leave. Raises NotShownError."""
    specification["config"]["padding"] = _PADDING
    view = specification.get("spec", specification)
    _stack(specification, size)
    panels = _panels(specification)
    originals: _Originals = {}
    first = view["width"], view["height"]
    for most_columns in (4, 3, 2, 1):
        view["width"], view["height"] = first
        svg = _fitted(specification, view, size, panels, most_columns, originals, vl_version)
        if svg:
            return _scaled(svg, size)
    raise NotShownError(
        "--size: leaves no room beside the texts; try a larger one, a smaller --font-size, --title '' or shorter --name"
    )


def _fitted(
    specification: Specification,
    view: Specification,
    size: Size,
    panels: tuple[int, int],
    most_columns: int,
    originals: _Originals,
    vl_version: str,
) -> str:
    """Empty where texts leave no room, with so many columns of the legend."""
    tallest, shape = view["height"], view["height"] / view["width"]
    for _ in range(_ATTEMPTS):
        _break_texts(specification, view, size, panels[0], most_columns, originals)
        svg = str(vl_convert.vegalite_to_svg(specification, vl_version=vl_version))
        width, height = _size_of_svg(svg)
        over = width - size.width
        tall = 0.0 if size.height is None else height - size.height
        if abs(over) < 1 and abs(tall) < 1:
            return svg
        view["width"] = round(view["width"] - over / panels[0], 2)
        if size.height is None:
            view["height"] = round(max(view["width"] * shape, min(tallest, _LOW_VIEW_PT)), 2)
        else:
            view["height"] = round(view["height"] - tall / panels[1], 2)
        if min(view["width"], view["height"]) < _LEAST_VIEW_PT:
            return ""
    return svg


def _scaled(svg: str, size: Size) -> str:
    """Exactly of that size: texts are set in whole pixels, so some points may be missing, or too many."""
    width, height = _size_of_svg(svg)
    tall = size.height if size.height is not None else height * size.width / width
    factor = max(width / size.width, height / tall)
    box = f'viewBox="0 0 {size.width * factor:.6g} {tall * factor:.6g}"'
    return _HEAD.sub(f'\\g<1> width="{size.width:.6g}" height="{tall:.6g}" {box}', svg, count=1)


def in_points(svg: str) -> str:
    """The same with its size in points: browsers take a bare number for pixels, of which 96 are an inch."""
    return _HEAD.sub(r'\g<1> width="\g<2>pt" height="\g<3>pt" \g<4>', svg, count=1)


def _size_of_svg(svg: str) -> tuple[float, float]:
    match = _HEAD.match(svg)
    assert match is not None, svg[:200]
    return float(match[2]), float(match[3])


def _stack(specification: Specification, size: Size) -> None:
    """Panels one below the other where a picture is too narrow for them side by side."""
    facet, most = specification.get("facet", {}), max(1, int(size.width // _PANEL_PT))
    if set(facet) == {"column"} and _panels(specification)[0] > most:
        specification["facet"], specification["columns"] = facet["column"], most
    elif "columns" in specification:
        specification["columns"] = min(specification["columns"], most)


_Originals = dict[tuple[int, str], Any]
"""By place: texts before they were broken."""


def _break_texts(
    specification: Specification,
    view: Specification,
    size: Size,
    panels: int,
    most_columns: int,
    originals: _Originals,
) -> None:
    """Break titles into lines that are no wider than the picture, and legends into rows no wider than its panels."""
    config, room = specification["config"], size.width - 2 * _PADDING

    def broken(part: dict[str, Any], key: str, room: float, points: float) -> None:
        original = originals.setdefault((id(part), key), part[key])
        paragraphs = [original] if isinstance(original, str) else original
        lines = [line for paragraph in paragraphs for line in _lines(paragraph, room, points)]
        part[key] = lines if len(lines) > 1 else lines[0]

    title = specification.get("title")
    if isinstance(title, dict):
        for key, points in (("text", config["title"]["fontSize"]), ("subtitle", config["title"]["subtitleFontSize"])):
            if key in title:
                broken(title, key, room, points)
    for part in _dictionaries(specification):
        for channel, along in (("x", "width"), ("y", "height")):
            encoded = part.get(channel)
            if isinstance(encoded, dict) and isinstance(encoded.get("title"), str | list):
                # The title of an upward axis may be longer than the axis: beside it nothing is below or above.
                least = _LOW_VIEW_PT + 60 if along == "height" else 0.0
                broken(encoded, "title", max(view[along], least), config["axis"]["titleFontSize"])
        legend = part.get("legend")
        if isinstance(legend, dict) and "gradientLength" in legend:
            legend["gradientLength"] = min(legend["gradientLength"], view["width"] * panels)
        elif isinstance(legend, dict) and "columns" in legend:
            points = config["legend"]["labelFontSize"]
            longest = max((len(name) for name in part.get("scale", {}).get("domain", ())), default=0)
            entry = longest * points * _LETTER + math.sqrt(config["legend"]["symbolSize"]) + points
            gap = config["legend"]["columnPadding"]
            legend["columns"] = max(1, min(most_columns, int((view["width"] * panels + gap) // (entry + gap))))
            legend["labelLimit"] = max(room - 32, 20)


def _lines(text: str, room: float, points: float) -> list[str]:
    """Broken between words, into lines of about the same length."""
    most = max(8.0, room / (points * _LETTER))
    most = min(most, len(text) / math.ceil(len(text) / most) + 6) if len(text) > most else most
    found = [""]
    for word in text.split():
        if found[-1] and len(found[-1]) + 1 + len(word) > most:
            found.append(word)
        else:
            found[-1] = f"{found[-1]} {word}".strip()
    return found


def _panels(specification: Specification) -> tuple[int, int]:
    """Columns and rows of panels."""
    facet = specification.get("facet")
    if facet is None:
        return 1, 1

    def count(field: str) -> int:
        return len({row[field] for row in _rows(specification) if field in row}) or 1

    if "field" in facet:
        number = count(facet["field"])
        columns = min(number, specification.get("columns", number))
        return columns, -(-number // columns)
    return tuple(count(facet[side]["field"]) if side in facet else 1 for side in ("column", "row"))  # type: ignore[return-value]


def _rows(specification: Specification) -> Iterator[dict[str, Any]]:
    """The rows of all tables of the picture, each once."""
    for values in specification.get("datasets", {}).values():
        yield from values
    for part in _dictionaries(specification):
        data = part.get("data")
        if isinstance(data, dict) and "values" in data:
            yield from data["values"]


def _dictionaries(part: object) -> Iterator[dict[str, Any]]:
    """All parts of a specification but the rows of its tables."""
    if isinstance(part, dict):
        yield part
        for key, value in part.items():
            if key not in ("values", "datasets"):
                yield from _dictionaries(value)
    elif isinstance(part, list):
        for each in part:
            yield from _dictionaries(each)


def _encodings(specification: Specification) -> Iterator[dict[str, Any]]:
    for part in _dictionaries(specification):
        if isinstance(part.get("encoding"), dict):
            yield part["encoding"]


_RESOURCES = re.compile(rb"(?<=<<\n)(?:[ ]+/(?:cs|fo|gs|im|pt|sh|xo)[0-9]+ [^\n<>]*\n)+")


def pdf(svg: str) -> bytes:
    """The same SVG gives the same bytes: svg2pdf lists the resources of a page in any order, and states no date."""
    found: bytes = vl_convert.svg_to_pdf(svg)
    return _RESOURCES.sub(lambda match: b"".join(sorted(match[0].splitlines(keepends=True))), found)
