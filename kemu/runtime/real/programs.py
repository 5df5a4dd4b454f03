"""One program that runs as a process of this machine: how it is started, what it says, how it ends.

No process outlives this one: the kernel ends it when its parent dies (``PR_SET_PDEATHSIG``).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kemu.errors import KemuError
from kemu.runtime.env import SECOND_NS

START_S = 90.0
_LOOK_EVERY_S = 0.1
_LONGEST_LINE = 8 << 20
"""Bytes."""
_TOLD_LINES = 3
_PR_SET_PDEATHSIG = 1
_TICK_NS = SECOND_NS // os.sysconf("SC_CLK_TCK")
_LIBC = ctypes.CDLL(None, use_errno=True)


def end_with_parent() -> None:
    """For a process that was just forked: the kernel kills it when its parent dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass(frozen=True)
class Program:
    """What is started."""

    executable: Path
    options: Sequence[str]
    log: Path
    """A file for what it prints; a process that is started again appends."""
    hear: Callable[[str], object] | None = None
    """Told of each line that it prints to stderr."""
    unkept: tuple[bytes, ...] = ()
    """Lines with one of these texts are heard, but do not go into the log."""
    is_ready: Callable[[], Awaitable[bool]] | None = None
    """None: as soon as it runs."""
    stop_s: float = 5.0
    """How long it may take to end after SIGTERM."""

    @property
    def name(self) -> str:
        return self.log.stem


class Process:
    """One life of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The code with which it ended; negative: the signal."""
        self.is_meant = False
        """It is to end: it was stopped or killed by the run."""

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def cpu_ns(self) -> int:
        """The time of cores that it has used; 0 when it has ended."""
        try:
            # The name in brackets may hold spaces; utime and stime are fields 14 and 15 (proc_pid_stat(5)).
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0
        return (int(fields[11]) + int(fields[12])) * _TICK_NS

    async def start(self) -> None:
        """Returns when it is ready. Raises KemuError where it ends instead, or is not ready in time."""
        program = self.program
        with program.log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                program.executable,
                *program.options,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.PIPE if program.hear is not None else output,
                cwd=program.log.parent,
                # Times in logs are read; a kubeconfig of the user's is none of its business.
                env={**{key: value for key, value in os.environ.items() if key != "KUBECONFIG"}, "TZ": "UTC"},
                preexec_fn=end_with_parent,
                limit=_LONGEST_LINE,
                start_new_session=True,  # Ctrl-C is for kemu, which ends it in order
            )
        self._reader = asyncio.create_task(self._follow(self._process), name=f"log of {program.name}")
        deadline = asyncio.get_running_loop().time() + START_S
        while program.is_ready is not None and not await program.is_ready():
            if self.ended.done():
                raise KemuError(f"{program.name} has ended with {self.ended.result()}: {self.last_words()}")
            if asyncio.get_running_loop().time() > deadline:
                raise KemuError(f"{program.name} is not ready after {START_S:g} s: {self.last_words()}")
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        if process.stderr is not None:
            assert self.program.hear is not None
            with self.program.log.open("ab") as kept:
                while line := await process.stderr.readline():
                    if not any(text in line for text in self.program.unkept):
                        kept.write(line)
                    self.program.hear(line.decode(errors="replace"))
        self.ended.set_result(await process.wait())

    def last_words(self) -> str:
        """The end of its log, and where that is."""
        lines = self.program.log.read_text(errors="replace").splitlines()[-_TOLD_LINES:]
        return " / ".join(lines) + f" ({self.program.log})"

    def send(self, number: signal.Signals, *, is_meant: bool = True) -> None:
        """A signal. Not ``is_meant``: what comes of it is not the run's doing."""
        if is_meant and number in (signal.SIGKILL, signal.SIGTERM):
            self.is_meant = True
        if self._process is not None and not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def gone(self) -> None:
        """Return when it has ended, or was never started."""
        if self._reader is not None:
            await self._reader

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL where that is not enough. What it had printed is read."""
        if self._process is None:
            return
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        done, _ = await asyncio.wait([self.ended], timeout=self.program.stop_s)
        if not done:
            self.send(signal.SIGKILL)
        await self.gone()
