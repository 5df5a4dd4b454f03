"""Causes as lines for a terminal: each root, its chain below it, and what disappears without it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from kemu.lab.tell import layouts, people
from kemu.lab.tell.causes.roots import CONFIGURATION, Causes, Check, Link

HEAD_LINKS = 4
"""Links of each root where there is little room."""


def lines(causes: Causes, width: int, most: int = 0) -> Iterator[Text]:
    """Nothing where nothing went wrong. ``most``: so many roots, each with fewer links; 0: all of them."""
    if not causes.symptoms:
        return
    if not causes.roots:
        yield Text("Why: no action, fault or configuration explains what went wrong", "bold")
        for link in causes.symptoms[:HEAD_LINKS]:
            yield from layouts.hanging(layouts.text("   ", (f"{when(link)}  ", "dim")), Text(link.what), width)
        return
    share = sum(root.share for root in causes.roots)
    count = len(causes.roots)
    many = f"{count} roots explain" if count > 1 else "1 root explains"
    yield Text(f"Why: {many} {people.percentage(share)} of what went wrong", "bold")
    for number, root in enumerate(causes.roots[:most] if most else causes.roots, 1):
        lead = layouts.text((f"{number}. ", "bold"))
        since = "since the start" if not root.at_ns else f"at {_second(root.at_ns)} s"
        what = root.what if root.kind == CONFIGURATION and not root.at_ns else f"{root.what} {since}"
        yield from layouts.hanging(
            lead, layouts.text((what, "bold"), (f"  {people.percentage(root.share)}", "dim")), width
        )
        if root.detail:
            yield from layouts.hanging(Text("   "), Text(root.detail, "dim"), width)
        for link in root.chain[-HEAD_LINKS:] if most else root.chain:
            yield from layouts.hanging(layouts.text("   → ", (f"{when(link)}  ", "dim")), Text(link.what), width)
        if root.check is not None:
            yield from layouts.hanging(Text("   "), Text(checked(root.check), _tone(root.check)), width)


def _second(time_ns: int) -> str:
    seconds = time_ns / 1e9
    return f"{seconds:.0f}" if seconds >= 100 or seconds == round(seconds) else f"{seconds:.3g}"


def when(link: Link) -> str:
    """``412-810 s``, with a digit where it is over within ten seconds."""
    digits = 1 if link.last_ns - link.first_ns < 10_000_000_000 else 0
    begin, end = f"{link.first_ns / 1e9:.{digits}f}", f"{link.last_ns / 1e9:.{digits}f}"
    return f"{begin} s" if begin == end else f"{begin}-{end} s"


def _tone(check: Check) -> str:
    return "dim" if check.holds is None else "green" if check.holds else "yellow"


def checked(check: Check) -> str:
    """``Without it: 0 instead of 212 pods evicted``"""
    if check.holds is None:
        return f"Not checked: {check.why}."
    lead = f"With {check.instead}" if check.instead else f"Without {check.without}"
    if not check.effects:
        return f"{lead}, the same goes wrong."
    parts = [f"{one.after:,.0f} instead of {one.before:,.0f} {one.unit} {one.what}" for one in check.effects]
    doubt = "" if check.holds else "; most of it stays, so it is not the cause, or not the only one"
    return f"{lead}: {', '.join(parts)}{doubt}."


def told(causes: Causes, width: int) -> str:
    return "\n".join(line.plain.rstrip() for line in lines(causes, width))
