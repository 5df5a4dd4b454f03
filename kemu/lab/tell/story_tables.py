"""The story of a run in the terminal: time, actor, what happened, and why beside it or below it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kemu.lab.checks.history import History
from kemu.lab.tell import layouts, stories
from kemu.lab.tell.happenings import Happening

MOST_LINES = 40
LEAST_LINES = 8
"""On a screen that is very small."""
TONES = {"good": "green", "bad": "red", "plain": "default"}
LEAST_ROOM = 30
"""For what happened and why: where an actor's name leaves less, they stand below it."""
GAP = "  "


def show(console: Console, history: History, run: str = "") -> None:
    """In at most ``MOST_LINES`` lines. ``run``: the run folder, for the command that tells the rest."""
    show_story(console, stories.tell(history, MOST_LINES), f"kemu story {shlex.quote(run)} --all" if run else "")


def show_story(console: Console, story: stories.Story, command: str = "") -> None:
    """``command``: what tells the rest."""
    if story.lines:
        layouts.show(console, [*rows(story.lines, console.width), *_left_out(story, command, console.width)])
        console.print()


def fitted(found: Sequence[Happening], width: int, height: int) -> stories.Story:
    """What fits so many rows of a screen; more if the screen is very small."""
    limit = max(height, LEAST_LINES)
    while True:
        story = stories.told(found, limit)
        taken = len([*rows(story.lines, width), *_left_out(story, "?" * width, width)])
        if taken <= height or limit <= LEAST_LINES:
            return story
        limit = max(LEAST_LINES, min(limit - 1, limit * height // taken))


def _left_out(story: stories.Story, command: str, width: int) -> list[Text]:
    """What no line tells of; the command that does stands on a line of its own if it has to."""
    if not story.left_out:
        return []
    text = "… not told: " + ", ".join(f"{count} {kind}" for kind, count in Counter(story.left_out).most_common())
    whole = f"{text}; told by {command}" if command else text
    if len(whole) <= width:
        return [Text(whole, "dim")]
    lines = list(layouts.hanging(Text(""), Text(text, "dim"), width))
    return [*lines, Text(f"  {command}", "dim")] if command else lines


def rows(lines: Sequence[stories.Line], width: int) -> Iterator[Text]:
    """Reasons stand in a column of their own where most of them fit there; what does not fit stands below its row."""
    if not lines:
        return
    times = [line.when() for line in lines]
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
