"""The story of a run in the terminal: time, actor, what happened, and why beside it or below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kemu.checks.history import History
from kemu.checks.results import counted
from kemu.report import layouts, stories

MOST_LINES = 40
TONES = {"good": "green", "bad": "red", "plain": "default"}
LEAST_ROOM = 30
"""For what happened and why: where an actor's name leaves less, they stand below it."""
GAP = "  "


def show(console: Console, history: History, limit: int = MOST_LINES) -> None:
    lines, left_out = stories.tell(history, limit)
    if not lines:
        return
    layouts.show(console, rows(lines, console.width))
    if left_out:
        layouts.show(console, [Text(f"… and {counted(left_out, 'less telling line')}", "dim")])
    console.print()


def rows(lines: Sequence[stories.Line], width: int) -> Iterator[Text]:
    """Reasons stand in a column of their own where most of them fit there; what does not fit stands below its row."""
    if not lines:
        return
    times = [f"{line.time_ns / 1e9:.3f} s" for line in lines]
    time_size = max(map(len, times))
    widest_who = max(width - time_size - len(GAP) * 2 - LEAST_ROOM, 0)
    who_size = max((size for line in lines if (size := cell_len(line.who)) <= widest_who), default=0)
    room = width - time_size - who_size - 2 * len(GAP)
    what_size = _column([line for line in lines if line.why], room)
    for time, line in zip(times, lines, strict=True):
        lead = layouts.text((time.rjust(time_size), "dim"), GAP)
        who = Text(line.who, "cyan")
        if cell_len(line.who) > who_size:
            yield from layouts.hanging(lead, who, width)
            lead = Text(" " * (time_size + len(GAP) + who_size + len(GAP)))
        else:
            who.pad_right(who_size - cell_len(line.who))
            lead = lead + who + GAP
        yield from _said(line, lead, what_size, width)


def _column(lines: Sequence[stories.Line], room: int) -> int:
    """How wide what happened is where the reasons stand in a column beside it; 0: most of them do not fit there."""
    what_size = max((cell_len(line.what) for line in lines), default=0)
    fitting = sum(what_size + len(GAP) + cell_len(line.why) <= room for line in lines)
    return what_size if 2 * fitting > len(lines) else 0


def _said(line: stories.Line, lead: Text, what_size: int, width: int) -> Iterator[Text]:
    what = Text(line.what, TONES[line.tone])
    why = Text(line.why, "dim")
    padded = max(what_size, cell_len(line.what))
    if line.why and cell_len(lead.plain) + padded + len(GAP) + cell_len(line.why) <= width:
        what.pad_right(padded - cell_len(line.what))
        yield lead + what + GAP + why
        return
    yield from layouts.hanging(lead, what, width)
    if line.why:
        yield from layouts.hanging(Text(" " * (cell_len(lead.plain) + len(GAP))), why, width)
