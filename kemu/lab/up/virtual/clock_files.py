"""The virtual time in a file, for programs outside that are to take it for theirs.

The file holds Unix time in seconds with nine digits after the point. libfaketime reads it with ``FAKETIME_FMT=%s``
(docs/chaos-for-clients.md says how, also for Go). It is overwritten in place, as some readers keep it open.
"""

from __future__ import annotations

import os
from pathlib import Path

from kemu.runtime.env import SECOND_NS

NAME = "clock"
"""In the run folder."""


class ClockFile:
    def __init__(self, file: Path, epoch_unix_s: int) -> None:
        self._epoch_ns = epoch_unix_s * SECOND_NS
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self.show(0)

    def show(self, now_ns: int) -> None:
        """``now_ns``: virtual time."""
        seconds, nanos = divmod(self._epoch_ns + now_ns, SECOND_NS)
        os.pwrite(self._descriptor, b"%d.%09d\n" % (seconds, nanos), 0)

    def close(self) -> None:
        os.close(self._descriptor)
