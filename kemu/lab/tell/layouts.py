"""How text fits a terminal of any width: nothing is cut, what is too long goes on below.

Lines are :class:`rich.text.Text`: wrapped here, so that they stay as they are wherever they are printed. Neighbour:
:mod:`terminal`, which says what stands in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

GAP = 2
"""Columns between two cells."""
LEAST_TEXT = 12
"""Narrower than this a column of text is not made."""

_WRAPPER = Console(width=80, color_system=None)
"""Only wraps; how wide is said each time."""


def text(*parts: str | tuple[str, str] | Text) -> Text:
    """One line of plain and styled parts."""
    return Text.assemble(*parts)


_PLAIN = str.maketrans({"✓": "+", "✗": "x", "…": "~", "≥": ">", "→": ">", "·": "."})
"""For terminals that do not show more than ASCII; as wide as what they stand for."""


def show(console: Console, lines: Iterable[Text]) -> None:
    """Print lines that have been wrapped already."""
    for line in lines:
        line.rstrip()
        if not console.encoding.startswith("utf"):
            line.plain = line.plain.translate(_PLAIN).encode(console.encoding, "replace").decode(console.encoding)
        console.print(line, highlight=False, soft_wrap=True)


def hanging(lead: Text, body: Text, width: int) -> Iterator[Text]:
    """The body behind the lead; what does not fit goes on below, as far to the right as the body begins."""
    indent = cell_len(lead.plain)
    for number, line in enumerate(_wrapped(body, max(width - indent, 1))):
        yield (lead if number == 0 else Text(" " * indent)) + line


def flowing(line: Text, width: int, indent: int) -> Iterator[Text]:
    """One line; what does not fit goes on below, indented."""
    first = _wrapped(line, width)[0]
    yield first
    rest = line[len(first.plain) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    if rest.plain:
        yield from hanging(Text(" " * indent), rest, width)


def _wrapped(body: Text, width: int) -> list[Text]:
    if cell_len(body.plain) <= width:
        return [body]
    return list(body.wrap(_WRAPPER, width)) or [body]


def grid(items: Sequence[tuple[str, str]], width: int) -> list[Text]:
    """Names with their values, in as many columns as there is room for, downwards."""
    if not items:
        return []
    for columns in range(len(items), 0, -1):
        rows = -(-len(items) // columns)
        parts = [items[at : at + rows] for at in range(0, len(items), rows)]
        sizes = [(max(cell_len(name) for name, _ in part), max(cell_len(value) for _, value in part)) for part in parts]
        total = sum(name + GAP + value for name, value in sizes) + (len(parts) - 1) * 2 * GAP
        if total <= width or columns == 1:
            break
    lines = []
    for row in range(rows):
        line = Text()
        for place, (part, (name_size, value_size)) in enumerate(zip(parts, sizes, strict=True)):
            if row < len(part):
                name, value = part[row]
                line.append(" " * 2 * GAP if place else "")
                line.append(name.ljust(name_size + GAP))
                line.append(value.rjust(value_size), "bold")
        lines.append(line)
    return lines


def table(titles: Sequence[str], rows: Sequence[Sequence[str | Text]], width: int, *, keys: int = 1) -> list[Text]:
    """The first column is text, the others are numbers. Where the columns do not fit side by side they move closer,
    then the first one is folded; what still has no room stands below, behind the first column again.

    ``keys``: so many columns name a row and are repeated below. Only a single one is folded.
    """
    sizes = [max([cell_len(title), *(cell_len(str(row[place])) for row in rows)]) for place, title in enumerate(titles)]
    gap = GAP if sum(sizes) + GAP * (len(sizes) - 1) <= width else 1
    named = list(range(1, keys))
    numbers = sum(sizes[1:]) + gap * (len(sizes) - 1)
    sizes[0] = min(sizes[0], max(LEAST_TEXT, width // 3, width - numbers)) if keys == 1 else sizes[0]
    room = width - sum(sizes[:keys]) - gap * (keys - 1)
    parts: list[list[int]] = [[]]
    for place in range(keys, len(titles)):
        if parts[-1] and sum(sizes[one] + gap for one in (*parts[-1], place)) > room:
            parts.append([])
        parts[-1].append(place)
    lines: list[Text] = []
    for shown in parts:
        lines.append(_row(titles, [*named, *shown], sizes, gap, keys)[0])
        lines[-1].stylize("dim")
        for row in rows:
            if len(parts) == 1 or keys == 1 or any(str(row[place]) for place in shown):
                lines += _row(row, [*named, *shown], sizes, gap, keys)
    return lines


def _row(cells: Sequence[str | Text], shown: Sequence[int], sizes: Sequence[int], gap: int, keys: int) -> list[Text]:
    """``keys``: so many columns begin at the left, the others end at the right."""
    names = _wrapped(_text(cells[0]), sizes[0])
    line = names[0]
    line.pad_right(sizes[0] - cell_len(line.plain))
    for place in shown:
        cell = _text(cells[place])
        space = Text(" " * (sizes[place] - cell_len(cell.plain)))
        line = line + Text(" " * gap) + (cell + space if place < keys else space + cell)
    return [line, *names[1:]]


def _text(cell: str | Text) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text(cell)
