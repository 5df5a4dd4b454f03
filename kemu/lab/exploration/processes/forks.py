"""Which processes may fork, how their children behave, and one that is asked and answers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from typing import BinaryIO

from kemu.lab.exploration.processes import pipes

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


@contextlib.contextmanager
def no_return() -> Iterator[None]:
    """A forked process has nothing to do in the frames of the one that forked."""
    try:
        yield
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


class Child:
    """A process that this one forks, as this one sees it."""

    def __init__(self, serve: Callable[[BinaryIO, BinaryIO], object]) -> None:
        """``serve``: called in the child with where requests come from and where answers go; the child ends with it."""
        requests_out, requests = os.pipe()
        answers, answers_in = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            with no_return():
                enter(parent)
                os.close(requests)
                os.close(answers)
                serve(os.fdopen(requests_out, "rb"), os.fdopen(answers_in, "wb"))
        os.close(requests_out)
        os.close(answers_in)
        self._requests, self._answers = os.fdopen(requests, "wb"), os.fdopen(answers, "rb")

    def _ask(self, request: object) -> object:
        """The answer; None: it has died."""
        try:
            pipes.send(self._requests, request)
        except BrokenPipeError:
            return None
        return pipes.receive(self._answers)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for pipe in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                pipe.close()


def is_alone() -> bool:
    """Whether no other thread of this process could hold what a child needs; False where the system does not say so."""
    try:
        return len(os.listdir("/proc/self/task")) == 1 and threading.current_thread() is threading.main_thread()
    except OSError:
        return False


def become_worker(parent: int, kept: Collection[int]) -> None:
    """In a child that is to stay, first of all: see :func:`enter`. Of the files of the process that forked it keeps
    these and standard error, which takes what user code prints."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    enter(parent)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            with contextlib.suppress(OSError):  # the folder itself
                os.close(int(name))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
