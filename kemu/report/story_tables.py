"""The story of a run in the terminal: a row for each line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kemu.checks.history import History
from kemu.checks.results import counted
from kemu.report import stories

MOST_LINES = 40
_TONE = {"good": "green", "bad": "red", "plain": "default"}


def show(console: Console, history: History, limit: int = MOST_LINES) -> None:
    lines, left_out = stories.tell(history, limit)
    if not lines:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold", width=_width_of_phrases(lines, console.width))
    table.add_column(overflow="fold", style="dim")
    for line in lines:
        table.add_row(
            f"{line.time_ns / 1e9:.3f} s",
            escape(line.who),
            f"[{_TONE[line.tone]}]{escape(line.what)}[/]",
            escape(line.why),
        )
    console.print(table)
    if left_out:
        console.print(f"[dim]… and {counted(left_out, 'less telling line')}[/]", highlight=False)
    console.print()


def _width_of_phrases(lines: Sequence[stories.Line], width: int) -> int:
    """Half of what times and names leave: less where that is not needed, more where a word or the reasons allow it."""
    left = width - max(len(f"{line.time_ns / 1e9:.3f} s  {line.who}  ") for line in lines) - len("  ")
    longest_word = max(len(word) for line in lines for word in line.what.split())
    whole = max(len(line.what) for line in lines)
    return max(1, min(whole, left, max(left // 2, longest_word, left - max(len(line.why) for line in lines))))
