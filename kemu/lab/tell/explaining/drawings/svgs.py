"""An explanation as one SVG file: this run and the passing one side by side, the sentences below.

It stands alone: no script, no font, no link; its colours follow the reader's light or dark theme.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from kemu.lab.tell.explaining.diagrams import Arrow, Diagram, Mark, Row, departs, rows
from kemu.lab.tell.explaining.drawings import charts
from kemu.lab.tell.explaining.explanations import Explanation
from kemu.lab.tell.explaining.names import at, lasting
from kemu.lab.tell.explaining.probabilities import Curve

_ROW = 32
_TOP = 84
_UNTITLED = 64
"""Room for titles of the file and of panels."""
_TIME = 66
_LAST = 150
_MARGIN = 28
_LINE = 20
_MOST_GAP, _LEAST_GAP = 190, 140
_TITLE, _HEAD = 9.2, 8.4
"""Widths of a letter of a title and of a panel's head."""

_STYLE = """
svg { --ground: #ffffff; --text: #1f2328; --faint: #6e7781; --line: #afb8c1; --mark: #0969da; --held: #bc4c00;
  --bad: #cf222e; --good: #1a7f37; --band: #fff3c4; --box: #f6f8fa;
  font-family: ui-sans-serif, system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; font-size: 13px; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #0d1117; --text: #e6edf3; --faint: #8d96a0; --line: #484f58; --mark: #58a6ff; --held: #f0883e;
    --bad: #ff7b72; --good: #3fb950; --band: #3a2f0b; --box: #161b22; } }
.ground { fill: var(--ground); } .band { fill: var(--band); } .box { fill: var(--box); stroke: var(--line); }
text { fill: var(--text); } .faint { fill: var(--faint); }
.end { text-anchor: end; font-size: 11px; } .title { font-size: 17px; font-weight: 600; }
.head { font-weight: 600; font-size: 15px; } .bad { fill: var(--bad); } .good { fill: var(--good); }
.time { fill: var(--faint); font-size: 12px; text-anchor: end; font-variant-numeric: tabular-nums; }
.actor { text-anchor: middle; font-weight: 600; } .life { stroke: var(--line); stroke-width: 1.5; }
.dot { fill: var(--mark); } .dot.wrong { fill: var(--bad); } .wrong { fill: var(--bad); }
.way { stroke: var(--mark); stroke-width: 1.5; fill: none; marker-end: url(#tip); }
.way.late { stroke: var(--held); stroke-width: 2.5; stroke-dasharray: 7 4; marker-end: url(#tip-late); }
.word { text-anchor: middle; font-size: 12px; paint-order: stroke; stroke: var(--ground); stroke-width: 5px;
  stroke-linejoin: round; } .word.late { fill: var(--held); font-weight: 600; }
.did { paint-order: stroke; stroke: var(--ground); stroke-width: 5px; stroke-linejoin: round; font-weight: 500; }
.grid { stroke: var(--line); stroke-width: 0.5; } .decided { stroke: var(--bad); stroke-width: 1.5; }
.curve { stroke: var(--mark); stroke-width: 2; fill: none; } .tick { fill: var(--faint); font-size: 12px;
  text-anchor: middle; }
.tip { fill: var(--mark); } .tip-late { fill: var(--held); }
"""
_WRONG = """
.way.wrong { stroke: var(--bad); stroke-width: 2.5; marker-end: url(#tip-wrong); }
.word.wrong { fill: var(--bad); font-weight: 600; } .tip-wrong { fill: var(--bad); }
"""


def drawn(explanation: Explanation, curve: Curve | None = None) -> str:
    """The whole file."""
    failing, passing = explanation.diagrams
    panels = [Panel(failing, f"This run: {explanation.failure.id} fails", "bad", "")]
    if passing is not None and explanation.sibling is not None:
        without = f"Without {explanation.sibling.without}: it passes"
        panels.append(Panel(passing, without, "good", "passing"))
    words = _sentences(explanation, _letters(panels))
    title = f"{explanation.scenario.name}: why {explanation.failure.id} fails"
    return page(title, panels, words, curve)


def page(title: str, panels: Sequence[Panel], words: Sequence[tuple[str, str]], curve: Curve | None = None) -> str:
    """A file with panels side by side, and lines below, each with its style."""
    height = _TOP + max(panel.height for panel in panels)
    width = sum(panel.width for panel in panels) + _MARGIN * (len(panels) + 1)
    width = max(width, 760, int(len(title) * _TITLE) + 2 * _MARGIN)
    has_bad = any(panel.has_bad for panel in panels)
    below = height + len(words) * _LINE + 2 * _MARGIN
    total = below + (charts.HEIGHT + _MARGIN if curve is not None else 0)
    above = 0 if title else _UNTITLED
    size = f'viewBox="0 {above} {width} {total - above}" width="{width}" height="{total - above}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title, quote=True)}">',
        f"<style>{_STYLE}{_WRONG if has_bad else ''}</style>",
        "<defs>" + _tip("tip") + _tip("tip-late") + (_tip("tip-wrong") if has_bad else "") + "</defs>",
        f'<rect class="ground" width="{width}" height="{total}"/>',
        f'<text class="title" x="{_MARGIN}" y="34">{escape(title)}</text>',
    ]
    left = _MARGIN
    for panel in panels:
        parts += panel.draw(left)
        left += panel.width + _MARGIN
    for index, (text, style) in enumerate(words):
        y = height + _MARGIN + index * _LINE
        parts.append(f'<text class="{style}" x="{_MARGIN}" y="{y}" xml:space="preserve">{escape(text)}</text>')
    if curve is not None:
        parts += charts.drawn(curve, _MARGIN, below, min(width - 2 * _MARGIN, 1000))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _letters(panels: Sequence[Panel]) -> int:
    """The width of the lines below them."""
    return max(sum(panel.width for panel in panels) + _MARGIN * (len(panels) - 1), 700)


def _box(title: str) -> float:
    """How wide the box of an actor is."""
    return len(title) * 7.4 + 18


def _tip(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="9" markerHeight="9"'
        f' markerUnits="userSpaceOnUse" orient="auto"><path class="{name}" d="M0 0L8 4L0 8z"/></marker>'
    )


def _sentences(explanation: Explanation, width: int) -> list[tuple[str, str]]:
    """Lines and their styles."""
    letters = width // 7
    found = []
    for number, one in enumerate(explanation.chain.sentences, 1):
        run = " of the passing run" if one.is_of_passing else ""
        where = f"  (event {one.event}{run}, {at(one.time_ns)}, {one.actor})" if one.event >= 0 else ""
        style = "bad" if number == len(explanation.chain.sentences) else "told"
        for index, line in enumerate(textwrap.wrap(one.text + where, letters, break_on_hyphens=False)):
            found.append((f"{number}. {line}" if index == 0 else f"    {line}", style))
    if explanation.difference is not None:
        found.append(("", "faint"))
        found += [
            (line, "faint") for line in textwrap.wrap(str(explanation.difference), letters, break_on_hyphens=False)
        ]
    return found


class Panel:
    """One run."""

    def __init__(self, diagram: Diagram, title: str, tone: str, name: str, *, least_gap: int = _LEAST_GAP) -> None:
        """``least_gap``: between columns, in px."""
        self._diagram = diagram
        self._title = title
        self._tone = tone
        self._rows: Sequence[Row] = rows(diagram)
        longest = max((len(arrow.text) for arrow in diagram.arrows), default=10)
        boxes = [_box(each) for each in diagram.titles]
        apart = max((int(one + other) // 2 + 10 for one, other in pairwise(boxes)), default=0)
        self._gap = max(least_gap, apart, min(max(longest * 7 + 44, _LEAST_GAP), _MOST_GAP))
        self._first = max(_TIME, int(boxes[0] / 2)) if boxes else _TIME
        last = len(diagram.actors) - 1
        ends = [mark.column * self._gap + len(mark.text) * 7 + 30 for mark in diagram.marks]
        differs = any(one.differs for one in diagram.marks) or any(one.differs for one in diagram.arrows)
        self.width = self._first + max([last * self._gap + _LAST // 2, *ends]) + (80 if differs else 0)
        self.width = max(self.width, int(len(title) * _HEAD))
        self.height = 44 + (len(self._rows) + 1) * _ROW
        self._name = name
        self.has_bad = any(arrow.is_bad for arrow in diagram.arrows)

    def draw(self, left: int) -> list[str]:
        columns = [left + self._first + index * self._gap for index in range(len(self._diagram.actors))]
        top, bottom = _TOP + 30, _TOP + self.height
        parts = [f'<text class="head {self._tone}" x="{left}" y="{_TOP - 22}">{escape(self._title)}</text>']
        at_row: dict[int, int] = {index: top + 28 + index * _ROW for index in range(len(self._rows))}
        for index, row in enumerate(self._rows):
            if row.item.differs and (row.is_departure or not departs(row.item)):
                y = at_row[index] - _ROW // 2 - 4
                parts.append(f'<rect class="band" x="{left}" y="{y}" width="{self.width}" height="{_ROW}" rx="4"/>')
                words = f'x="{left + self.width - 8}" y="{y + 17}"'
                parts.append(f'<text class="faint end" {words}>first difference</text>')
        for x, title in zip(columns, self._diagram.titles, strict=True):
            wide = _box(title)
            parts.append(f'<line class="life" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
            box = f'x="{x - wide / 2:.0f}" y="{top - 24}" width="{wide:.0f}" height="24" rx="5"'
            parts.append(f'<rect class="box" {box}/><text class="actor" x="{x}" y="{top - 7}">{escape(title)}</text>')
        departures = {row.item: at_row[index] for index, row in enumerate(self._rows) if row.is_departure}
        over: list[str] = []
        last = ""
        for index, row in enumerate(self._rows):
            y = at_row[index]
            time = f"{row.time_ns / 1e9:.3f} s"
            if time != last:
                parts.append(f'<text class="time" x="{left + self._first - 16}" y="{y + 4}">{time}</text>')
                last = time
            if isinstance(row.item, Mark):
                over += self._mark(row.item, columns, y)
            elif not row.is_departure:
                begin = departures.get(row.item, y - 10)
                parts += self._arrow(row.item, columns, begin, y, over)
            elif row.item.arrived_ns < 0:
                parts += self._lost(row.item, columns, y, over)
        return [*parts, *over]

    def _mark(self, mark: Mark, columns: list[int], y: int) -> list[str]:
        x, wrong = columns[mark.column], " wrong" if mark.is_bad else ""
        return [
            f'<circle class="dot{wrong}" cx="{x}" cy="{y}" r="5"/>',
            f'<text class="did{wrong}" x="{x + 11}" y="{y + 4}">{escape(mark.text)}</text>',
        ]

    def _arrow(self, arrow: Arrow, columns: list[int], begin: int, end: int, over: list[str]) -> list[str]:
        x1, x2 = columns[arrow.column], columns[arrow.target]
        late = " late" if arrow.late_ns else " wrong" if arrow.is_bad else ""
        x, y = (x1 + x2) / 2, (begin + end) / 2
        lines = [arrow.text, f"held {lasting(arrow.late_ns)}"] if arrow.late_ns else [arrow.text]
        for index, line in enumerate(lines):
            where = f'x="{x:.0f}" y="{y + index * 15 - (3 if arrow.late_ns else 7):.0f}"'
            over.append(f'<text class="word{late}" {where}>{escape(line)}</text>')
        return [f'<line class="way{late}" x1="{x1}" y1="{begin}" x2="{x2}" y2="{end}"/>']

    def _lost(self, arrow: Arrow, columns: list[int], y: int, over: list[str]) -> list[str]:
        x1, x2 = columns[arrow.column], columns[arrow.target]
        half = (x1 + x2) // 2
        over.append(f'<text class="word late" x="{half}" y="{y - 1}">{escape(arrow.text)}: {arrow.never}</text>')
        return [f'<line class="way late" x1="{x1}" y1="{y}" x2="{half}" y2="{y + 8}"/>']
