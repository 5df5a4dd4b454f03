"""What a driver leaves behind when it is killed: its own events, and which other segments there are.

The cells keep their events in segment files (``segments``); the driver keeps its own in one, too, in the same folder.
Between them it notes every process of a cell, with the file of its events, and every second how many of them it has
got. So :mod:`recoveries` knows whether what it finds is all there was.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kemu.runtime.host.segments import Segment
from kemu.runtime.ray.driver.logs.merges import Source

FOLDER = "logs"
"""In the directory of the run: the segments of cells and driver."""
PREFIX = "driver-"
NOTES = "ledger"
"""The actor of notes, which are no events of the run."""
OPENED, RECEIVED, CLOSED = "opened", "received", "closed"
NOTE_EVERY_S = 1.0


class Ledger:
    """Made when there is something to keep: a runtime that is never used leaves no file."""

    def __init__(self, directory: Path, received: Callable[[], Mapping[Source, int]]) -> None:
        """``received``: how many events there are of each process whose log is not complete."""
        self._path = directory / FOLDER / f"{PREFIX}{os.getpid()}-{time.time_ns()}.segment"
        self._received = received
        self._segment: Segment | None = None
        self._noted_at = time.monotonic()
        self._is_closed = False

    def keep(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """An event of the driver, or a note."""
        if self._segment is None:
            if self._is_closed:
                return
            self._segment = Segment(self._path)
            # For as long as this process lives: then there is nothing to recover yet.
            fcntl.flock(self._segment.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._segment.append(time_ns, actor, kind, data)

    def open(self, source: Source, name: str, path: str, address: str) -> None:
        """A process of a cell has begun, which keeps its events in that file, on the machine with that address."""
        self.keep(0, NOTES, OPENED, {"source": list(source), "process": name, "path": path, "address": address})

    def look(self) -> None:
        """Note every second how many events have come."""
        now = time.monotonic()
        if now - self._noted_at >= NOTE_EVERY_S:
            self._noted_at = now
            if self._segment is not None:
                asyncio.get_running_loop().run_in_executor(None, self._segment.sync)
            self.keep(0, NOTES, RECEIVED, {"events": [[*source, count] for source, count in self._received().items()]})

    def close_source(self, source: Source, events: int) -> None:
        """All events of a process are known: so many."""
        self.keep(0, NOTES, CLOSED, {"source": list(source), "events": events})

    def close(self) -> None:
        self._is_closed = True
        if self._segment is not None:
            # Closing it would not let go before a sync that is under way has ended.
            fcntl.flock(self._segment.fileno(), fcntl.LOCK_UN)
            self._segment.close()
            self._segment = None


def is_in_use(path: Path) -> bool:
    """Whether the driver that writes it lives."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
