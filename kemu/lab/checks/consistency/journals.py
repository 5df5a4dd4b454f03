"""The check that the store finds its journal as it left it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kemu.lab.checks.history import History
from kemu.lab.checks.results import Check, Result, counted, seconds


class JournalIsIntact(Check):
    """When the store starts again, its journal has no damage but what a crash explains: an unfinished end."""

    id: ClassVar[str] = "journal-is-intact"
    kinds: ClassVar[tuple[str, ...]] = ("store.recovered", "store.corrupt")

    def __init__(self) -> None:
        self._recoveries = 0
        self._torn = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "store.recovered":
            self._recoveries += 1
            self._torn += data["torn_bytes"] > 0
        else:
            what = f"{data['file']}: offset {data['offset']}: {data['what']}"
            self._findings.append(f"{actor} has served nothing since {seconds(time_ns)}: {what}")

    def result(self, history: History) -> Result:
        good = f"{counted(self._recoveries, 'recovery', 'recoveries')}, {self._torn} torn"
        return self.concluded(self._findings, self._recoveries, "no store has read its journal", good)
