"""Writes lines for those who watch, in a thread: a terminal that is not read holds up no cluster."""

from __future__ import annotations

import queue
import sys
import threading
from typing import TextIO

_MOST_WAITING = 10_000


class Printer:
    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._lines: queue.Queue[str | None] = queue.Queue(_MOST_WAITING)
        self._left_out = 0
        self._thread = threading.Thread(target=self._write, name="prints", daemon=True)
        self._thread.start()

    def print(self, line: str) -> None:
        """Returns at once. What comes while too much waits is left out."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._left_out += 1

    def close(self, within_s: float = 2.0) -> None:
        """Returns when everything is written, or there is no reader."""
        try:
            self._lines.put(None, timeout=within_s)
        except queue.Full:
            return
        self._thread.join(within_s)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._out.write(f"{line}\n")
                if self._lines.empty():
                    self._out.flush()
            except (OSError, ValueError):  # there is no reader any more
                return
