"""The text of an expression: lines, places, and how mistakes are shown."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from kemu.emulated.cel.errors import Issue

_MAX_ISSUES = 100
_MAX_SNIPPET = 16_384
#: An issue without a place.
NOWHERE = (-1, -1)


class Text:
    """An expression, addressed by offsets in code points."""

    def __init__(self, content: str) -> None:
        self.content = content
        self._starts = [0] + [at + 1 for at, character in enumerate(content) if character == "\n"]

    def place(self, offset: int) -> tuple[int, int]:
        """Line (from 1) and column (from 0) of an offset; without an offset (-1) `NOWHERE`. An empty text has no
        column: what is wrong with it stands before the first."""
        if offset < 0:
            return NOWHERE
        if not self.content:
            return 1, -1
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def _line(self, number: int) -> str | None:
        if not 1 <= number <= len(self._starts) or not self.content:
            return None
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.content)
        return self.content[start:end]

    def show(self, issues: Iterable[Issue]) -> str:
        """The issues in the order of their places, each with the line and a mark, as cel-go prints them."""
        ordered = sorted(issues, key=lambda issue: (issue.line, issue.column))
        shown = [self._show(issue) for issue in ordered[:_MAX_ISSUES]]
        if len(ordered) > _MAX_ISSUES:
            shown.append(f"{len(ordered) - _MAX_ISSUES} more errors were truncated")
        return "\n".join(shown)

    def _show(self, issue: Issue) -> str:
        head = f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}"
        line = self._line(issue.line)
        if line is None or len(line.encode()) > _MAX_SNIPPET:
            return head
        line = line.replace("\t", " ")
        dots = "".join("." if character.isascii() else "\uff0e" for character in line[: issue.column])
        at_mark = line[issue.column : issue.column + 1]
        mark = "^" if at_mark.isascii() else "\uff3e"
        return f"{head}\n | {line}\n | {dots}{mark}"
