"""Processes of real parts of Kubernetes, and what they use."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kemu.errors import KemuError

_STOP_S = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    """One process, whose output goes to a file of the folder."""

    def __init__(self, name: str, command: Sequence[str | Path], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={key: value for key, value in os.environ.items() if key != "KUBECONFIG"},
            )

    def check(self) -> None:
        """Raises KemuError with the end of its output when it has ended."""
        code = self._process.poll()
        if code is not None:
            text = self.log.read_text(errors="replace").strip()
            raise KemuError(f"{self.name} ended with {code}:\n{text[-2000:]}")

    def cpu_s(self) -> float:
        """CPU time so far, of all its threads."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_mib(self) -> float:
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
