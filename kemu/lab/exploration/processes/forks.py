"""Which processes may fork, and how their children behave."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1

_allowed: list[tuple[int, ...]] = []
_closings: list[Callable[[], object]] = []


def allow(*not_kept: int) -> None:
    """This process may fork: no thread of it holds what a child needs. ``not_kept``: descriptors that are its own."""
    _allowed[:] = [not_kept]


def may_fork() -> bool:
    return bool(_allowed)


def when_idle(close: Callable[[], object]) -> None:
    """``close`` ends children that are kept for what may come."""
    _closings.append(close)


def idle() -> None:
    """This process has nothing to do, and does not know when it will have."""
    for close in _closings:
        close()


def enter(parent: int) -> None:
    """In a child, first of all: it ends when the process that forked it does, however that dies, where the system can
    do that, and keeps nothing of it open. It must not return into the frames of that process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for descriptor in _allowed.pop() if _allowed else ():
        os.close(descriptor)
