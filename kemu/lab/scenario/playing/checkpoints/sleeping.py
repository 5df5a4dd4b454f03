"""A checkpoint: the copy of a process that waits in the run folder until it is woken, or until its time is over.

It has a session of its own, so what ends the run does not end it; it holds none of the run's streams, uses no CPU, and
is the first that the kernel ends where memory is short. When it is woken, a copy of itself goes on as the run, and it
waits on, until that has made its own checkpoint. Neighbours: :mod:`keeping`, which forks it; :mod:`waking`, which asks.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.scenario.playing.checkpoints import waking
from kemu.runtime.runlog.folders import CHECKPOINT_FILE

LOOK_S = 60.0
"""So often it looks whether its folder is still there."""
READY, OVER = b"r", b"x"
"""To the run: it waits; from the run: it is no longer needed. That the run dies is told by the end of the stream."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
"""Those that the run may handle in a way that a checkpoint must not."""
_OUT_OF_MEMORY = Path("/proc/self/oom_score_adj")


@dataclass(frozen=True)
class Woken:
    """In the process that goes on as the run."""

    control: socket.socket
    """To the checkpoint that it comes from."""
    caller: socket.socket
    wants: Mapping[str, Any]
    """What the caller asks for."""


def sleep(
    folder: Path,
    control: socket.socket,
    keep_s: float,
    tell: Callable[[], dict[str, Any]],
    check: Callable[[], None],
    begun_ns: int,
) -> Woken:
    """Call it in a process that was just forked. Returns in the copy that goes on, and nowhere else, with
    :data:`SIGNALS` blocked.

    ``tell``: the rest of :class:`waking.Found`. ``check``: called in that copy, raises KemuError where it cannot go on.
    ``begun_ns``: Unix time at which the run began.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # of the caller of a run that has gone on
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a run that has gone on
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.setsid()
    _let_go(control)
    score = _prefer_to_die()
    listener = _listener(folder)
    code = _Code(begun_ns)
    own = os.stat(folder / CHECKPOINT_FILE).st_ino
    with contextlib.suppress(OSError):  # the run may be dead already, and the checkpoint before has given way
        control.sendall(READY)
    run_pid, died = os.getppid(), None
    while True:
        found, _, _ = select.select([listener, *([control] if died is None else [])], [], [], LOOK_S)
        if control in found:
            if _said(control) == OVER:
                os._exit(0)
            died = time.monotonic()
        elif listener in found:
            caller, _ = listener.accept()
            caller.settimeout(waking.PATIENCE_S)
            left_s = keep_s if died is None else died + keep_s - time.monotonic()
            standing = {"pid": os.getpid(), "run_pid": run_pid, "is_running": died is None, "left_s": left_s, **tell()}
            message, streams = _request(caller)
            if message.get("do") == waking.WAKE and len(streams) == 3:
                refusal = f"the run goes on, in process {run_pid}" if died is None else code.change()
                if refusal:
                    waking.send(caller, {"error": refusal})
                else:
                    mine, its = socket.socketpair()
                    run_pid = os.fork()
                    if run_pid == 0:
                        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
                        listener.close()
                        control.close()
                        mine.close()
                        _go_on(caller, streams, handlers, score, check)
                        return Woken(its, caller, message.get("wants", {}))
                    its.close()
                    control.close()
                    control, died = mine, None
            elif message.get("do") == waking.END and died is not None:
                with contextlib.suppress(OSError):
                    (folder / CHECKPOINT_FILE).unlink()
                    waking.send(caller, {})
                os._exit(0)
            else:
                with contextlib.suppress(OSError):
                    waking.send(caller, standing)
            for stream in streams:
                os.close(stream)
            caller.close()
        if not _is_mine(folder, own) or (died is not None and time.monotonic() > died + keep_s):
            if _is_mine(folder, own):
                (folder / CHECKPOINT_FILE).unlink(missing_ok=True)
            os._exit(0)


def _go_on(
    caller: socket.socket,
    streams: list[int],
    handlers: Mapping[signal.Signals, Any],
    score: str,
    check: Callable[[], None],
) -> None:
    os.setsid()
    try:
        check()
    except KemuError as error:
        waking.send(caller, {"error": str(error)})
        os._exit(1)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    with contextlib.suppress(OSError):
        _OUT_OF_MEMORY.write_text(score)
    waking.send(caller, {"pid": os.getpid()})
    _die_with(caller)


def _die_with(caller: socket.socket) -> None:
    """A signal comes when the other side closes its end, as it does when it dies."""

    def look(*_: object) -> None:
        try:
            gone = not caller.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            gone = True
        if gone:
            os.kill(os.getpid(), signal.SIGKILL)

    caller.setblocking(False)
    signal.signal(signal.SIGIO, look)
    fcntl.fcntl(caller, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(caller, fcntl.F_SETFL, fcntl.fcntl(caller, fcntl.F_GETFL) | os.O_ASYNC)
    look()


def _let_go(control: socket.socket) -> None:
    """Of all that belongs to who started the run: its streams, and other files that were open then, such as locks."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.close(null)
    for number in map(int, os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):
            if number > 2 and number != control.fileno() and os.get_inheritable(number):
                os.close(number)


def _prefer_to_die() -> str:
    """Where memory is short, before the run. Returns what was set."""
    try:
        before = _OUT_OF_MEMORY.read_text()
        _OUT_OF_MEMORY.write_text("1000")
    except OSError:
        return "0"
    return before


def _listener(folder: Path) -> socket.socket:
    """Takes the place of that of an earlier checkpoint at once."""
    opened = socket.socket(socket.AF_UNIX)
    with waking.inside(folder):
        made = f"{CHECKPOINT_FILE}.{os.getpid()}"
        mask = os.umask(0o177)
        opened.bind(made)
        os.umask(mask)
        opened.listen()
        os.rename(made, CHECKPOINT_FILE)
    return opened


def _request(caller: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Of this user only; anything else is no request."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            if struct.unpack("3i", credentials)[1] != os.getuid():
                return {}, []
        line, streams, _, _ = socket.recv_fds(caller, waking.MOST_BYTES, 3)
        return dict(json.loads(line)), list(streams)
    except (OSError, ValueError):
        return {}, []


def _said(control: socket.socket) -> bytes:
    try:
        return control.recv(1)
    except OSError:
        return b""


def _is_mine(folder: Path, own: int) -> bool:
    try:
        return os.stat(folder / CHECKPOINT_FILE).st_ino == own
    except OSError:
        return False


class _Code:
    """The files of the modules that are loaded: a run whose code has changed would go on with some of each."""

    def __init__(self, begun_ns: int) -> None:
        self._begun_ns = begun_ns
        self._files = self._found()

    def _found(self) -> dict[str, tuple[int, int, int]]:
        found = {}
        for module in list(sys.modules.values()):
            file = getattr(module, "__dict__", {}).get("__file__")
            if isinstance(file, str):
                with contextlib.suppress(OSError):
                    stat = os.stat(file)
                    found[file] = stat.st_ino, stat.st_size, stat.st_mtime_ns
        return found

    def change(self) -> str:
        """What has changed since the run began; empty: nothing."""
        now = self._found()
        for file, before in self._files.items():
            if now.get(file) != before or before[2] > self._begun_ns:
                return f"{file} has changed since the run began, so it cannot go on: run it anew, with --force"
        return ""
