"""Processes of this machine: which belong to others, and their end.

A process is known by its pid and the time of its start: a pid that was given anew is never hit.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_GRACE_OF_KILLED_S = 30.0
_POLL_S = 0.01
_PR_SET_PDEATHSIG = 1
_REMOVALS = 5


@functools.cache
def psutil() -> Any:
    """It comes with Ray, in a folder that only ``import ray`` makes importable, which takes half a second."""
    try:
        import psutil as found  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        spec = importlib.util.find_spec("ray")
        if spec is None or spec.origin is None:
            raise
        sys.path.append(str(Path(spec.origin).parent / "thirdparty_files"))
        import psutil as found
    return found


def of(pid: int) -> Any | None:
    """None: there is none."""
    with contextlib.suppress(psutil().NoSuchProcess):
        return psutil().Process(pid)
    return None


def end_with_parent() -> None:
    """From now on this process ends, as by SIGKILL, when its parent does; on Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(pid: int) -> list[Any]:
    """All processes below this one."""
    process = of(pid)
    if process is None:
        return []
    with contextlib.suppress(psutil().NoSuchProcess):
        return list(process.children(recursive=True))
    return []


def using(directory: str) -> list[Any]:
    """Processes of this user that have a file below the directory open, or name it in their command."""
    others = (process for process in psutil().process_iter() if process.pid != os.getpid())
    return [process for process in others if _uses(process, directory)]


def _uses(process: Any, directory: str) -> bool:
    with contextlib.suppress(psutil().Error, OSError):
        if process.uids().real != os.getuid():
            return False
        if any(directory in word for word in process.cmdline()):
            return True
        for link in os.listdir(f"/proc/{process.pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{process.pid}/fd/{link}").startswith(f"{directory}/"):
                    return True
    return False


def runs(process: Any) -> bool:
    """A zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil().STATUS_ZOMBIE)
    except psutil().NoSuchProcess:
        return False


def is_stopped(pid: int) -> bool:
    """By SIGSTOP, a terminal or a debugger; with all of its threads: on a busy machine they go on after the signal for
    as long as the one that is to take it waits for a core."""
    with contextlib.suppress(psutil().Error):
        stopped = (psutil().STATUS_STOPPED, psutil().STATUS_TRACING_STOP)
        threads = [int(each) for each in os.listdir(tasks)] if os.path.isdir(tasks := f"/proc/{pid}/task") else [pid]
        return all(psutil().Process(thread).status() in stopped for thread in threads)
    return False


def end(processes: Iterable[Any], *, grace_s: float) -> list[Any]:
    """Wait until they are gone, after the grace by SIGKILL. Returns those that are left all the same."""
    alive = _left_after(grace_s, list(processes))
    for process in alive:
        with contextlib.suppress(psutil().Error):
            process.kill()
    return _left_after(_GRACE_OF_KILLED_S, alive)


def _left_after(seconds: float, processes: list[Any]) -> list[Any]:
    """Those that still run. To wait for them to be reaped is to wait for process 1."""
    deadline = time.monotonic() + seconds
    while (processes := [each for each in processes if runs(each)]) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return processes


def remove(directory: str) -> bool:
    """Returns whether the directory is gone."""
    for _ in range(_REMOVALS):
        shutil.rmtree(directory, ignore_errors=True)
        if not os.path.exists(directory):
            return True
        time.sleep(0.1)  # a process was still writing
    return False


def name(process: Any) -> str:
    with contextlib.suppress(psutil().Error):
        return str(process.name())
    return "?"
