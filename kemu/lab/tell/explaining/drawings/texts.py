"""An explanation for the terminal: sentences, the picture drawn with letters, and the run that passes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kemu.lab.tell.explaining.diagrams import Arrow, Diagram, Mark, departs, rows
from kemu.lab.tell.explaining.drawings import charts
from kemu.lab.tell.explaining.explanations import Explanation
from kemu.lab.tell.explaining.names import at, lasting
from kemu.lab.tell.explaining.probabilities import Curve

WIDTH = 80
_LAST = 18
"""Room for what the last actor does."""


def told(
    explanation: Explanation, width: int = WIDTH, curve: Curve | None = None, *, sentences_last: bool = False
) -> str:
    """All of it, in lines no wider than ``width``. ``sentences_last``: for a terminal, of which one sees the end."""
    parts = [list(_sentences(explanation, width)), list(_pictures(explanation, width))]
    if curve is not None:
        parts.append([line for each in charts.told(curve) for line in _wrapped(each, width) or [""]])
    if sentences_last:
        parts = [*parts[1:], parts[0]]
    return "\n\n".join("\n".join(part).rstrip() for part in parts) + "\n"


def _sentences(explanation: Explanation, width: int) -> Iterator[str]:
    yield f"Why {explanation.failure.id} fails"
    yield ""
    for number, one in enumerate(explanation.chain.sentences, 1):
        yield from _wrapped(one.text, width, f"{number}. ")
        if one.event >= 0:
            run = " of the passing run" if one.is_of_passing else ""
            yield f"   event {one.event}{run} · {at(one.time_ns)} · {one.actor}"


def _pictures(explanation: Explanation, width: int) -> Iterator[str]:
    failing, passing = explanation.diagrams
    yield f"This run: {explanation.failure.id} fails"
    yield ""
    yield from picture(failing, width)
    sibling = explanation.sibling
    legend = ["═ kept by a hold"] if any(arrow.late_ns for arrow in failing.arrows) else []
    legend += ["≠ the first difference"] if passing is not None else []
    if legend:
        yield f"  {' · '.join(legend)}"
    if sibling is None or passing is None:
        return
    yield ""
    yield f"The same run without {sibling.without}: it passes"
    yield ""
    yield from picture(passing, width)
    yield ""
    if explanation.difference is not None:
        yield from _wrapped(str(explanation.difference), width)


def _wrapped(text: str, width: int, number: str = "") -> list[str]:
    indent = " " * len(number)
    return textwrap.wrap(text, width, initial_indent=number, subsequent_indent=indent, break_on_hyphens=False)


def picture(diagram: Diagram, width: int = WIDTH) -> list[str]:
    """Actors as columns, time downward. ``≠`` marks the first difference, ``═`` a message that a hold kept."""
    count = len(diagram.actors)
    lines_of = rows(diagram)
    left = max([len(_time(row.time_ns)) for row in lines_of], default=0) + 5
    gap = min((width - left + 2 - _LAST) // max(count - 1, 1), 34)
    columns = [left + index * gap for index in range(count)]
    lines = [_heading(diagram, columns, gap, width)]
    last = ""
    for row in lines_of:
        cells = [" "] * (width + 40)
        for x in columns:
            cells[x] = "│"
        time = _time(row.time_ns)
        _put(cells, 2, time if time != last else "")
        last = time
        if row.item.differs and (row.is_departure or not departs(row.item)):
            _put(cells, 0, "≠")
        if isinstance(row.item, Mark):
            x = columns[row.item.column]
            cells[x] = "✗" if row.item.is_bad else "●"
            text = row.item.text
            if len(text) > width - x - 2 and len(text) < gap - 3:
                _put(cells, x - 1 - len(text), text)
            else:
                _put(cells, x + 2, _cut(text, width - x - 2))
        else:
            _arrow(cells, row.item, columns, row.is_departure)
        lines.append("".join(cells).rstrip()[:width])
    return lines


def _time(time_ns: int) -> str:
    return f"{time_ns / 1e9:.3f}"


def _heading(diagram: Diagram, columns: list[int], gap: int, width: int) -> str:
    cells = [" "] * width
    _put(cells, 2, "time/s")
    for x, title in zip(columns, diagram.titles, strict=True):
        _put(cells, max(x - len(_cut(title, gap - 1)) // 2, 9 if x == columns[0] else 0), _cut(title, gap - 1))
    return "".join(cells).rstrip()


def _arrow(cells: list[str], arrow: Arrow, columns: list[int], is_departure: bool) -> None:
    left, right = sorted((columns[arrow.column], columns[arrow.target]))
    to_right = arrow.column < arrow.target
    room = right - left - 1
    if is_departure:
        # It has left, and does not arrive yet.
        text = _fitting(room - 2, f" {arrow.text}: {'held' if arrow.late_ns else 'lost'} ", f"{arrow.text}")
        if to_right:
            _put(cells, left, "├┄┄" + text)
        else:
            _put(cells, right - len(text) - 2, text + "┄┄┤")
        return
    line = "═" if arrow.late_ns else "─"
    for x in range(left + 1, right):
        cells[x] = "╪" if cells[x] == "│" and arrow.late_ns else "┼" if cells[x] == "│" else line
    cells[left], cells[right] = ("├", "►") if to_right else ("◄", "┤")
    if arrow.late_ns:
        cells[left], cells[right] = ("╞", "►") if to_right else ("◄", "╡")
    late = [f" {arrow.text}, {lasting(arrow.late_ns)} late "] if arrow.late_ns else []
    text = _fitting(room, *late, f" {arrow.text} ", arrow.text)
    _put(cells, left + 1 + (right - left - 1 - len(text)) // 2, text)


def _fitting(room: int, *texts: str) -> str:
    """The first that fits, or what fits of the last."""
    return next((text for text in texts if len(text) <= room), _cut(texts[-1], room))


def _put(cells: list[str], x: int, text: str) -> None:
    cells[x : x + len(text)] = list(text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
