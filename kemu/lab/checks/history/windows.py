"""The time of a run that is measured (``measure``): which pods its figures count, and which part of the run.

Everything that *must* hold does so in the whole run: checks, and expectations about pods, nodes and counters, never ask
for the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.settings.declared import Complaint, setting
from kemu.emulated.settings.shapes import DURATION
from kemu.emulated.settings.values import duration_text

KEY = "measured"
"""In verdict.json: the window, where the scenario states one."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """From when until when, as a scenario states it; the whole run by default."""

    from_ns: int = setting(DURATION, "Pods that are created before it do not count; {default} by default.", "0s")
    until_ns: int | None = setting(DURATION, "Nor those from then on; by default the end of the run.")

    @property
    def is_whole(self) -> bool:
        return self.from_ns == 0 and self.until_ns is None

    def has(self, time_ns: int) -> bool:
        return self.from_ns <= time_ns and (self.until_ns is None or time_ns < self.until_ns)

    def share(self, begin_ns: int, end_ns: int) -> int:
        """How much of a span lies in it, in ns."""
        last_ns = end_ns if self.until_ns is None else min(end_ns, self.until_ns)
        return max(0, last_ns - max(begin_ns, self.from_ns))

    def data(self, end_ns: int) -> dict[str, Any]:
        """What verdict.json says of it; nothing of a whole run. ``end_ns``: of the run."""
        if self.is_whole:
            return {}
        until_ns = end_ns if self.until_ns is None else min(self.until_ns, end_ns)
        return {KEY: {"from_s": self.from_ns / 1e9, "until_s": max(self.from_ns, until_ns) / 1e9}}

    def complaints(self) -> Iterator[Complaint]:
        if self.until_ns is not None and self.until_ns <= self.from_ns:
            yield Complaint(("until",), f"is not after from, {duration_text(self.from_ns)}")


def of(verdict: Mapping[str, Any]) -> Window:
    """The window of a verdict.json."""
    stated = verdict.get(KEY)
    if stated is None:
        return Window()
    return Window(from_ns=round(stated["from_s"] * 1e9), until_ns=round(stated["until_s"] * 1e9))


def text(verdict: Mapping[str, Any]) -> str:
    """What the figures are of, for people; empty: of the whole run."""
    stated = of(verdict)
    if stated.is_whole or stated.until_ns is None:
        return ""
    span = f"{duration_text(stated.from_ns)} to {duration_text(stated.until_ns)}"
    return f"figures measured from {span}: of the pods that arrived then, and of that time"
