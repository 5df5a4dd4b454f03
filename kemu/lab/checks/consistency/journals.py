"""The check that the store finds its journal as it left it."""

from __future__ import annotations

from typing import ClassVar

from kemu.lab.checks.history import History
from kemu.lab.checks.results import Check, Result, seconds
from kemu.runtime.runlog.events import StoreCorrupt, StoreRecovered
from kemu.runtime.words import counted


class JournalIsIntact(Check):
    """When the store starts again, its journal has no damage but what a crash explains: an unfinished end."""

    id: ClassVar[str] = "journal-is-intact"

    def __init__(self) -> None:
        self._recoveries = 0
        self._torn = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: StoreRecovered | StoreCorrupt) -> None:
        if isinstance(event, StoreRecovered):
            self._recoveries += 1
            self._torn += event.torn_bytes > 0
        else:
            what = f"{event.file}: offset {event.offset}: {event.what}"
            self._findings.append(f"{actor} has served nothing since {seconds(time_ns)}: {what}")

    def result(self, history: History) -> Result:
        good = f"{counted(self._recoveries, 'recovery', 'recoveries')}, {self._torn} torn"
        return self.concluded(self._findings, self._recoveries, "no store has read its journal", good)
