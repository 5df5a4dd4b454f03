"""The runs of a matrix in the terminal, side by side: one table of their figures, then what was judged in all of them.

What is the same in all variants is told once. Neighbour: :mod:`terminal`, which shows a single run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from kemu.lab.checks.history import History, windows
from kemu.lab.scenario.playing import runner
from kemu.lab.tell import layouts, story_tables, tables, terminal
from kemu.runtime.words import counted

ALIKE = 3
"""The most variants that are named where the same does not hold in several."""
COUNTERS = 3
STORIES = 2
"""The most variants whose stories are told."""
STORY_PODS = 12
"""Nor of variants with more pods."""

_TELLING = {
    "preemptions": "preemptions",
    "admissions_rejected": "rejected",
    "bind_conflicts": "conflicts",
    "pods_bound": "bound",
    "pods_running": "running",
    "nominations": "nominations",
    "scheduling_attempts": "attempts",
}
"""Counters that compare variants best, in that order, and their titles."""

Verdict = Mapping[str, Any]


def show(
    console: Console,
    verdict: Verdict,
    histories: Sequence[History],
    description: str,
    commands: terminal.Next = (),
) -> None:
    """The variants of a verdict, what to try next, and what was expected of each and of all."""
    terminal.show_title(console, verdict, description)
    variants, width = verdict["variants"], console.width
    if len(variants) <= STORIES and all(len(history.pods) <= STORY_PODS for history in histories):
        for variant, history in zip(variants, histories, strict=True):
            layouts.show(console, [Text(_name(variant), "bold")])
            story_tables.show(console, history)
    if window := windows.text(verdict):
        layouts.show(console, [Text(window, "bold")])
    layouts.show(console, figures(variants, width))
    console.print()
    terminal.show_next(console, commands)
    layouts.show(console, judged(verdict, width))
    console.print()
    terminal.show_headline(console, verdict)


def _name(variant: Verdict) -> str:
    return runner.variant_name(variant["variant"])


# Figures ------------------------------------------------------------------------------------------------------------


def figures(variants: Sequence[Verdict], width: int) -> list[Text]:
    """A row for each variant and priority; what tells the variants apart stands first."""
    waits = [variant["waiting"] for variant in variants]
    has_waits = sum(group["pods"] for groups in waits for group in groups.values()) > 1
    has_verdicts = len({variant["verdict"] for variant in variants}) > 1
    counters = _counters(variants)
    names, named = _columns(variants, width)
    titles = [*names, *(["priority"] if has_waits else []), *(["verdict"] if has_verdicts else [])]
    titles += [*(tables.WAITING if has_waits else ()), *(_TELLING[counter] for counter in counters)]
    rows = []
    for variant, words, groups in zip(variants, named, waits, strict=True):
        once = [_verdict(variant)] if has_verdicts else []
        counts = [str(variant["counts"][counter]) for counter in counters]
        for place, (priority, group) in enumerate(groups.items() if has_waits and groups else [("-", None)]):
            blank = place > 0
            row: list[str | Text] = [*("" if blank else word for word in words)]
            row += [priority] if has_waits else []
            row += [""] * len(once) if blank else once
            row += (tables.waits(group) if group else ["-"] * len(tables.WAITING)) if has_waits else []
            rows.append([*row, *([""] * len(counts) if blank else counts)])
    legend = tables.legend([group for groups in waits for group in groups.values()], width) if has_waits else []
    if len(titles) == len(names):
        return []
    return layouts.table(titles, rows, width, keys=len(names) + has_waits) + legend


def _columns(variants: Sequence[Verdict], width: int) -> tuple[list[str], list[list[str]]]:
    """What the variants set, a column each with their values; one with their names where there is no room for that."""
    settings = [runner.variant_settings(variant["variant"]) for variant in variants]
    titles = [name for name, _ in settings[0]]
    values = [[value for _, value in each] for each in settings]
    if all([name for name, _ in each] == titles for each in settings):
        size = sum(max(len(row[place]) for row in [titles, *values]) for place in range(len(titles)))
        if size + 2 * len(titles) <= width // 2:
            return titles, values
    return ["variant"], [[_name(variant)] for variant in variants]


def _counters(variants: Sequence[Verdict]) -> list[str]:
    """Those in which the variants differ, and each of them otherwise."""
    found: dict[tuple[int, ...], str] = {}
    for counter in _TELLING:
        column = tuple(variant["counts"][counter] for variant in variants)
        if len(set(column)) > 1:
            found.setdefault(column, counter)
    return list(found.values())[:COUNTERS]


def _verdict(variant: Verdict) -> Text:
    """Not ``holds`` where nothing was expected."""
    is_asked = variant["expectations"] or variant["verdict"] != "holds"
    return Text(variant["verdict"], terminal.TITLE[variant["verdict"]]) if is_asked else Text("-")


# What was judged ----------------------------------------------------------------------------------------------------


def judged(verdict: Verdict, width: int) -> Iterator[Text]:
    """What holds in all variants, then what could not be judged, and at the end what failed: each thing once, with the
    variants in which it does not hold."""
    variants = verdict["variants"]
    yield from _notes(variants, width)
    yield from _passing_checks(variants, width)
    found = _grouped(variants)
    of_all = verdict["expectations"][sum(len(variant["expectations"]) for variant in variants) :]
    good = [group for group in found if all(one["holds"] for _, one in group)]
    if len(good) > terminal.PASSED:
        yield layouts.text(terminal.MARK[True], f" {len(good)} of {counted(len(found), 'expectation')} hold")
    else:
        for group in good:
            first = group[0][1]
            sentence = layouts.text((first["id"], "bold"), f"  {first['says']}")
            if len(group) > 1:
                sentence += layouts.text((f": in {_several(len(group))}", "dim"))
            yield from layouts.hanging(layouts.text(terminal.MARK[True], " "), sentence, width)
    yield from _comparisons(of_all, True, width)
    yield from _broken_checks(variants, width)
    for holds in (None, False):
        for group in found:
            if _worst(group) is holds and group not in good:
                yield from _lacking(group, holds, width)
        yield from _comparisons(of_all, holds, width)


Group = Sequence[tuple[str, Mapping[str, Any]]]
"""One check or expectation: the variants in which it was judged, and how."""


def _grouped(variants: Sequence[Verdict]) -> list[Group]:
    groups: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    for variant in variants:
        for one in variant["expectations"]:
            groups.setdefault((one["id"], one["says"]), []).append((_name(variant), one))
    return list(groups.values())


def _worst(group: Group) -> bool | None:
    found = [one["holds"] for _, one in group]
    return False if False in found else None if None in found else True


def _lacking(group: Group, holds: bool | None, width: int) -> Iterator[Text]:
    """A sentence that is not true in some variants, with what was found there."""
    first = group[0][1]
    sentence = layouts.text((first["id"], "bold"), f"  {first['says']}")
    yield from layouts.hanging(layouts.text(terminal.MARK[holds], " "), sentence, width)
    yield from _where([(name, one["detail"]) for name, one in group if one["holds"] is holds], len(group), width)


def _where(found: Sequence[tuple[str, str]], judged_in: int, width: int) -> Iterator[Text]:
    """What was found in which variants."""
    for name, detail in [one for one in found if one[1]][:ALIKE]:
        parts = detail.split("; ")
        yield from layouts.hanging(Text(terminal.INDENT), Text.assemble((f"{name}: ", ""), (parts[0], "dim")), width)
        for part in parts[1:]:
            yield from layouts.hanging(Text(terminal.INDENT * 2), Text(part, "dim"), width)
    if judged_in > 1:
        told = f"in {_among(len(found), judged_in)}"
        yield from layouts.hanging(Text(terminal.INDENT), Text(told, "dim"), width)


def _among(number: int, of_all: int) -> str:
    if number < of_all:
        return f"{number} of {_several(of_all)}"
    return "both variants" if of_all == 2 else f"all {_several(of_all)}"


def _several(number: int) -> str:
    return counted(number, "variant")


def _comparisons(of_all: Sequence[Mapping[str, Any]], holds: bool | None, width: int) -> Iterator[Text]:
    for one in of_all:
        if one["holds"] is holds:
            note = f"  {one['says']}"
            yield from terminal.finding(terminal.MARK[holds], one["id"], note, one["detail"], width)


def _checks(variant: Verdict) -> Iterator[Mapping[str, Any]]:
    """Those that no expectation names."""
    named = [match[1] for one in variant["expectations"] if (match := terminal.CHECK.match(one["text"])) is not None]
    return (check for check in variant["checks"] if check["id"] not in named)


def _passing_checks(variants: Sequence[Verdict], width: int) -> Iterator[Text]:
    """One line for what all variants share."""
    hold: dict[str, int] = {}
    idle: dict[str, int] = {}
    broken = {check["id"] for variant in variants for check in _checks(variant) if check["holds"] is False}
    for variant in variants:
        for check in _checks(variant):
            if check["asked"] and check["id"] not in broken:
                counts = hold if check["holds"] else idle
                counts[check["id"]] = counts.get(check["id"], 0) + 1
    everywhere = sum(count == len(variants) for count in hold.values())
    some = len(hold) - everywhere
    never = sum(check not in hold for check in idle)
    all_of_them = f" in {_among(len(variants), len(variants))}" if len(variants) > 1 else ""
    parts = [f"{counted(everywhere, 'check')} {_holds(everywhere)}{all_of_them}"] * bool(everywhere)
    if some:
        parts.append(f"{some} {_holds(some)} in some and had nothing to judge in the others")
    parts += [f"{never} had nothing to judge"] * bool(never)
    if parts:
        mark = terminal.MARK[True] if hold else terminal.NEUTRAL
        yield from layouts.hanging(layouts.text(mark, " "), Text(", ".join(parts)), width)


def _holds(number: int) -> str:
    return "holds" if number == 1 else "hold"


def _broken_checks(variants: Sequence[Verdict], width: int) -> Iterator[Text]:
    """First those that were not asked for, one finding each."""
    broken: dict[tuple[bool, str], list[tuple[str, str]]] = {}
    for variant in variants:
        expected = terminal.expected_to_fail(variant["expectations"])
        for check in variant["checks"]:
            if check["holds"] is False and check["id"] not in expected:
                broken.setdefault((check["asked"], check["id"]), []).append((_name(variant), check["detail"]))
    for (asked, name), found in sorted(broken.items(), key=lambda item: item[0][0]):
        mark, note = terminal.MARK[False], ""
        if not asked:
            mark, note = terminal.WARNING, "  nobody asked: the verdict stays"
            found = [
                (variant, detail.partition("; ")[0] if place == 0 else "")
                for place, (variant, detail) in enumerate(found)
            ]
        yield from layouts.hanging(layouts.text(mark, " "), layouts.text((name, "bold"), note), width)
        yield from _where(found, len(variants), width)


def _notes(variants: Sequence[Verdict], width: int) -> Iterator[Text]:
    """What a reader has to know of a variant besides: its log has gaps, it had no pods, a fault never came."""
    found: dict[str, list[str]] = {}
    for variant in variants:
        notes = [f"incomplete log {gap}" for gap in variant.get("incomplete", ())]
        notes += [
            *variant["empty"],
            *(f"the fault {fault} never came" for fault in variant.get("faults_never_came", ())),
        ]
        for note in notes:
            found.setdefault(note, []).append(_name(variant))
    for note, names in found.items():
        named = ", ".join(names[:ALIKE]) + (", …" if len(names) > ALIKE else "")
        told = layouts.text(note, (f": {_several(len(names))} ({named})", "dim"))
        yield from layouts.hanging(layouts.text(terminal.WARNING, " "), told, width)
