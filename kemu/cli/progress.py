"""How far a run is: a bar on a terminal, nothing elsewhere (the result is enough there)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TextIO

WIDTH = 28
EVERY_S = 0.1


class Bar:
    """One line that is rewritten; the terminal is touched at most ten times a second."""

    def __init__(self, stream: TextIO, title: str) -> None:
        self._stream = stream
        self._title = title
        self._shown = False
        self._next_s = 0.0
        self._active = stream.isatty()

    def update(self, now_ns: int, duration_ns: int, kinds: Mapping[str, int]) -> None:
        if not self._active:
            return
        wall_s = time.monotonic()
        if wall_s < self._next_s:
            return
        self._next_s = wall_s + EVERY_S
        share = min(1.0, now_ns / duration_ns) if duration_ns else 0.0
        filled = round(share * WIDTH)
        bar = "━" * filled + "╌" * (WIDTH - filled)
        bound = kinds.get("sched.bind", 0)
        pods = "1 pod" if bound == 1 else f"{bound} pods"
        text = f"{self._title} {bar} {now_ns / 1e9:.1f} s of {duration_ns / 1e9:g} s, {pods} bound"
        self._stream.write(f"\r\x1b[2K{text}")
        self._stream.flush()
        self._shown = True

    def close(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._shown = False
