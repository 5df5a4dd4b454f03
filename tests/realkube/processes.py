"""Processes of real parts, each with its log; each is ended by its id, and dies with the test at the latest."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

STOP_S = 10.0
_PR_SET_PDEATHSIG = 1


class Process:
    """One process in ``folder``; its output goes to ``NAME.log`` there."""

    def __init__(self, name: str, command: Sequence[str | Path], folder: Path, nice: int = 0) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
        libc = ctypes.CDLL(None, use_errno=True)

        def dies_with_parent() -> None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            os.nice(nice)

        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                env=environment,
                preexec_fn=dies_with_parent,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise with the end of the log if the process has ended."""
        code = self._process.poll()
        if code is not None:
            raise RuntimeError(f"{self.name} ended with {code}:\n{self.tail()}")

    def tail(self, characters: int = 3000) -> str:
        return self.log.read_text(errors="replace")[-characters:]

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, seconds: float) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired."""
        return self._process.wait(seconds)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
