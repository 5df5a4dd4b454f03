"""What is said of a run that fails: no more than fits on one screen.

Role: below :mod:`runs` and :mod:`live_clusters`; the pytest plugin prints it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.doors.api.views import Finding
from kemu.lab.checks.history import History
from kemu.lab.tell import stories

MOST_LINES = 40
_MOST_FINDINGS = 6
_MOST_COLUMNS = 220
_MARKS = {True: "✓", False: "✗", None: "?"}


class RunFailed(AssertionError):
    """A run does not hold: checks or expectations fail, or could not be judged. The text says which, and the story."""


def told(
    headline: str, findings: Sequence[Finding], history: History | None, most: int = MOST_LINES, again: str = ""
) -> str:
    """At most so many lines: headline, findings, as much of the story as there is room for, how to have it again."""
    most -= bool(again)
    lines = headline.splitlines()
    for finding in findings[:_MOST_FINDINGS]:
        lines.append(f"  {_MARKS[finding.holds]} {finding.id}: {finding.detail}")
        if finding.says:
            lines.append(f"      expected: {finding.says}")
    if len(findings) > _MOST_FINDINGS:
        lines.append(f"  … and {len(findings) - _MOST_FINDINGS} more")
    room = most - len(lines) - 1
    if history is not None and room > 1:
        told_lines = story(history, room - 1)
        if told_lines:
            lines += ["what happened:", *(f"  {line}" for line in told_lines)]
    return "\n".join([*(_short(line) for line in lines[:most]), *([f"again: {again}"] if again else [])])


def story(history: History, limit: int) -> list[str]:
    """What happened, in at most ``limit`` lines, and one about what they do not tell."""
    lines, left_out = stories.tell(history, limit)
    found = [f"{line.when():>12}  {line.who:20}  {line.what}{f' ({line.why})' if line.why else ''}" for line in lines]
    return [*found, *([f"… and {sum(left_out.values())} less telling"] if left_out else [])]


def _short(line: str) -> str:
    return line if len(line) <= _MOST_COLUMNS else line[: _MOST_COLUMNS - 1] + "…"
