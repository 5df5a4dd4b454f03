"""A run log that takes no more than so many bytes: its beginning, which can be judged like a run that ended there.

The end would be of more use to a reader who looks for what happened last. But a log from the middle of a run does not
say what there was before: no check could tell what is wrong from what it has not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.runtime.runlog.frames import Writer


class Bounded:
    """Passes events on as long as there is room."""

    def __init__(self, writer: Writer, limit_bytes: int) -> None:
        self._writer = writer
        self._limit_bytes = limit_bytes
        self.full_at_ns: int | None = None
        """The time of the last event that was taken; None: all were."""

    def append(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``."""
        if self.full_at_ns is not None:
            return
        self._writer.append(time_ns, actor, kind, data)
        if self._writer.written_bytes >= self._limit_bytes:
            self.full_at_ns = time_ns
