"""Keeps actors from reaching outside of the simulated world: threads, sockets, processes and real sleep raise.

The event loop refuses what goes through asyncio; this catches the rest by an audit hook. The driver of a run may do
what it likes (it writes files and draws progress bars); only code that belongs to an actor is held.
"""

from __future__ import annotations

import sys
from typing import Any

from kemu import errors
from kemu.runtime.loops import OWNER

_FORBIDDEN = frozenset(
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
        "time.sleep",
    )
)

_installed = False


def _hook(event: str, _: tuple[Any, ...]) -> None:
    if event in _FORBIDDEN:
        owner = OWNER.get()
        if owner is not None:
            raise errors.Nondeterminism(
                f"{owner.name} used {event}, which reaches outside of the simulated world;"
                " actors touch it through env alone"
            )


def install() -> None:
    """Once for each process; hooks of this kind cannot be removed."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)
