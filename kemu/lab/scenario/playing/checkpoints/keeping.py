"""The side of the run: makes a checkpoint now and then, and goes on from one when it is woken.

    checkpoints = Checkpoints(folder, document, progress)
    runner.run_all(scenario, Options(out=folder, checkpoints=checkpoints))
    checkpoints.finish()

It forks between two instants of the run, or between the run and its judgement: no actor's code runs then, and nothing
but the log is open. Only where kemu is the program: a caller's process is not copied.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.scenario.playing.checkpoints import sleeping, waking
from kemu.lab.scenario.playing.progress import Progress
from kemu.runtime.runlog.folders import CHECKPOINT_FILE
from kemu.runtime.runlog.frames import Writer

EVERY_S = 60.0
"""CPU time between two checkpoints, and before the first."""
EVERY_S_PER_GIB = 60.0
"""The same, for each GiB of the process: nearly all of it is copied after each checkpoint, as the run changes it."""
KEEP_S = 12 * 3600.0
"""Real time for which a checkpoint waits after its run has died."""


class Checkpoints:
    """Checkpoints of all that a command does in one folder; there is one at a time."""

    def __init__(
        self,
        folder: Path,
        document: str,
        progress: Progress,
        *,
        every_s: float = 0.0,
        still: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
        on_wake: Callable[[Mapping[str, Any]], object] = lambda wants: None,
        note: Callable[[str], object] = lambda text: None,
    ) -> None:
        """``document``: the scenario as it is run. ``every_s``: 0: by the size of the process. ``still``: within this
        the process has one thread. ``on_wake``: called where the run goes on, with what its caller wants. ``note``:
        told why there will be no more checkpoints."""
        self.folder = folder
        self.writer: Writer | None = None
        """Of the log that is being written."""
        self.asleep_s = 0.0
        """Real time that the run has lost between its checkpoints and their being woken."""
        self.made_s: float | None = None
        """Virtual time of the latest one."""
        self._document = digest(document)
        self._progress = progress
        self._every_s = every_s
        self._still, self._on_wake, self._note = still, on_wake, note
        self._begun_ns = time.time_ns()
        self._control: socket.socket | None = None
        """To the latest checkpoint."""
        self._caller: socket.socket | None = None
        self._children: list[int] = []
        self._is_off = not hasattr(os, "fork")
        self._due_s = time.process_time() + (every_s or EVERY_S)

    def rest(self) -> None:
        """The run is between two instants."""
        if time.process_time() >= self._due_s and not self._is_off:
            self._make()

    def before_judging(self) -> None:
        """The log is whole, and the cluster gone: a checkpoint costs little and saves the whole run."""
        if self._control is not None and not self._is_off:
            self._make()

    def finish(self) -> None:
        """The run is over, or would break again."""
        self._is_off = True
        self._drop()
        with contextlib.suppress(OSError):
            if self.made_s is not None:
                (self.folder / CHECKPOINT_FILE).unlink()

    def tell_exit(self, code: int) -> None:
        """To who has woken the run, if it was."""
        if self._caller is not None:
            with contextlib.suppress(OSError):
                waking.send(self._caller, {"exit": code})

    def _make(self) -> None:
        with self._still():
            why = self._reason_against()
            if why:
                self._is_off = True
                self._note(f"no more checkpoints: {why}")
                return
            woken = self._fork()
        if woken is not None:
            self._on_wake(woken)
        self._due_s = time.process_time() + (self._every_s or max(EVERY_S, EVERY_S_PER_GIB * _gib()))

    def _reason_against(self) -> str:
        if self._control is not None and _is_closed(self._control):
            return "the last one was killed, perhaps because memory is short"
        try:
            others = len(os.listdir("/proc/self/task")) - 1
        except OSError:
            others = threading.active_count() - 1
        if others:
            return f"the process has {others} more thread{'s' if others > 1 else ''}, which a copy of it would not have"
        return ""

    def _fork(self) -> Mapping[str, Any] | None:
        """Returns what is wanted, in the process that goes on later; None in this one."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        now_s = self._progress.now_ns / 1e9
        position = self.writer.position if self.writer is not None else 0
        at = time.perf_counter()
        # Python takes both from a process that has forked.
        loop, drawn = asyncio._get_running_loop(), random.getstate()
        mine, its = socket.socketpair()
        signal.pthread_sigmask(signal.SIG_BLOCK, sleeping.SIGNALS)
        pid = os.fork()
        if pid:
            its.close()
            self._children.append(pid)
            if _is_ready(mine):
                self._drop()
                self._control, self.made_s = mine, now_s
            else:
                mine.close()
                self._is_off = True
                self._note(f"no checkpoints: none can wait in {self.folder}, perhaps as it takes no sockets")
            signal.pthread_sigmask(signal.SIG_UNBLOCK, sleeping.SIGNALS)  # an interruption tells of the checkpoint
            return None
        try:
            mine.close()
            for other in (self._control, self._caller):
                if other is not None:
                    other.close()
            self._caller = None
            standing = {
                "now_s": now_s,
                "duration_s": self._progress.duration_ns / 1e9,
                "phase": self._progress.phase,
                "document": self._document,
            }
            woken = sleeping.sleep(
                self.folder, its, KEEP_S, lambda: standing, lambda: self._go_back(position), self._begun_ns
            )
        except BaseException:
            os._exit(1)
        woken.control.setblocking(False)
        self._control, self._caller, self.made_s = woken.control, woken.caller, now_s
        self._children = []
        asyncio._set_running_loop(loop)
        random.setstate(drawn)
        self.asleep_s += time.perf_counter() - at
        signal.pthread_sigmask(signal.SIG_UNBLOCK, sleeping.SIGNALS)  # an interruption tells who has woken the run
        return woken.wants

    def _go_back(self, position: int) -> None:
        if self.writer is not None:
            self.writer.go_back(position)
        elif not self.folder.is_dir():
            raise KemuError(f"{self.folder}: is gone")

    def _drop(self) -> None:
        """The checkpoint before is no longer needed."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(sleeping.OVER)
            self._control.close()
            self._control = None
        for pid in list(self._children[:-1]):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    continue
            self._children.remove(pid)


def digest(document: str) -> str:
    return hashlib.sha256(document.encode()).hexdigest()


def _is_ready(control: socket.socket) -> bool:
    control.settimeout(waking.PATIENCE_S)
    try:
        return control.recv(1) == sleeping.READY
    except OSError:
        return False
    finally:
        control.setblocking(False)


def _is_closed(control: socket.socket) -> bool:
    try:
        return not control.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _gib() -> float:
    """Of memory that the process has now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
