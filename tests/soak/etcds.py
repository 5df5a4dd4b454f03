"""A real etcd, which comes back on the same port and folder after it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.scenarios import test_real_etcd

RESTART_S = 1.0


class Etcd:
    def __init__(self, directory: Path) -> None:
        for attempt in range(5):
            self._process, port = test_real_etcd.start(directory / str(attempt))
            if test_real_etcd.serves(self._process, port):
                break
        self.address = f"127.0.0.1:{port}"
        self._command = [str(part) for part in self._process.args]  # type: ignore[union-attr]
        self._again_at: float | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def died(self, now: float) -> None:
        """It was killed just now."""
        self._process.wait()
        self._again_at = now + RESTART_S

    def tend(self, now: float, apart: dict[int, None]) -> None:
        """Start it again when its time has come."""
        if self._again_at is not None and now >= self._again_at:
            self._again_at = None
            null = subprocess.DEVNULL
            self._process = subprocess.Popen(self._command, stdout=null, stderr=null)
            apart[self._process.pid] = None

    def end(self) -> None:
        if self.runs:
            os.kill(self.pid, signal.SIGCONT)
            self._process.terminate()
        self._process.wait()
