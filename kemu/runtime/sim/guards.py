"""Keeps actors inside the simulated world: threads, sockets, processes and real sleep raise.

The event loop refuses what goes through asyncio; this module catches the rest, by an audit hook and, where Python
raises no audit event, by a wrapper. Only code that belongs to an actor is checked: the driver of a run may write files
and draw progress bars. The linter checks that actors do not read the wall clock.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from kemu import errors
from kemu.runtime.sim.owners import OWNER

_FORBIDDEN_EVENTS = frozenset(
    (
        "_thread.start_new_thread",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.system",
        "socket.__new__",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "subprocess.Popen",
    )
)

_installed = False


def _check(what: str) -> None:
    owner = OWNER.get()
    if owner is not None:
        raise errors.Nondeterminism(
            f"{owner.name} used {what}, which reaches outside of the simulated world; actors touch it through env alone"
        )


def _audit(event: str, _: tuple[Any, ...]) -> None:
    if event in _FORBIDDEN_EVENTS:
        _check(event)


def _guarded(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        _check(what)
        return function(*args, **kwargs)

    return guarded


def install() -> None:
    """Once per process, permanently: audit hooks cannot be removed."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_audit)
        threading.Thread.start = _guarded(threading.Thread.start, "a thread")  # type: ignore[method-assign]
        time.sleep = _guarded(time.sleep, "time.sleep")
