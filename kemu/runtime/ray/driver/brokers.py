"""The driver's end of its connection to a broker (:mod:`kemu.runtime.ray.broker`).

Answers are futures of :mod:`concurrent.futures`, so that a broker may serve several event loops, or none.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from kemu.runtime.ray import frames, processes
from kemu.runtime.ray.broker import nodes

_LONGEST_TEMPORARY_PATH = 40
"""Unix sockets allow 107 bytes, of which Ray adds about 65."""

PREFIX = "kemu-ray-"
"""Prefix of the temporary folders of brokers."""

_ERRORS = "broker.err"
_LAST_WORDS = 2000
_DYING_S = 5.0
"""Between the end of its connection and its own."""
_LEAVING_S = 15.0
"""For a broker to end what it has started; it needs less than a second, and on a busy machine a few."""


class Connection:
    """Thread-safe. ``process``: the broker, if it is this process's own."""

    def __init__(self, connection: socket.socket, temporary: str, process: subprocess.Popen[bytes] | None) -> None:
        self._socket = connection
        self.temporary = temporary
        self.process = process
        self.on_lost: dict[Callable[[str], None], None] = {}
        """Called, in another thread, with what has happened to the cluster."""
        self.lost = ""
        self.joined = ""
        """The address as it was given, of a cluster that was there before."""
        self._is_closed = False
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="broker", daemon=True).start()

    def call(self, method: str, *arguments: Any) -> Future[Any]:
        """Raises, from the future, ClusterLost when there is no answer to come, and RayFailed with Ray's own reason."""
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            if self.lost or self._is_closed:
                future.set_exception(frames.ClusterLost(self.lost or "the connection is closed"))
                return future
            self._waiting[number] = future
            with contextlib.suppress(OSError):  # the reader finds out, too
                self._socket.sendall(frames.packed([number, method, arguments]))
        return future

    def number(self) -> int:
        """One that this connection has not used yet."""
        return next(self._numbers)

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as stream:
            while len(header := stream.read(frames.LENGTH.size)) == frames.LENGTH.size:
                (length,) = frames.LENGTH.unpack(header)
                number, error, result = frames.unpacked(stream.read(length))
                if not number:
                    self._lose(result)
                    continue
                with self._lock:
                    future = self._waiting.pop(number, None)
                if future is None or not future.set_running_or_notify_cancel():
                    continue
                if error is None:
                    future.set_result(result)
                else:
                    kind, text = error
                    future.set_exception(frames.ERRORS.get(kind, frames.RayFailed)(text))
        if not self._is_closed:
            self._lose(f"the process that speaks with Ray {self._ending()}")

    def _ending(self) -> str:
        """How the broker ended, and what it had said, if it ended by itself."""
        process = self.process
        if process is None:
            return "closed its connection: another program has ended it, or kemu ray down"
        try:
            code = process.wait(_DYING_S)
        except subprocess.TimeoutExpired:
            return f"(pid {process.pid}) does not answer any more"
        if code < 0:
            # What stands in its output are Ray's notes, none of which says why.
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return f"(pid {process.pid}) was ended from outside, by {name}"
        return f"(pid {process.pid}) ended with exit code {code}{self._last_words()}"

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            text = Path(self.temporary, _ERRORS).read_bytes()[-_LAST_WORDS:].decode(errors="replace")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return f": {lines[-1]}"
        return ""

    def _lose(self, why: str) -> None:
        with self._lock:
            if self.lost or self._is_closed:
                return
            self.lost = why
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if future.set_running_or_notify_cancel():
                future.set_exception(frames.ClusterLost(why))
        for callback in list(self.on_lost):
            callback(why)

    def close(self) -> list[str]:
        """Leave, and wait until everything is gone that this process has started. Returns what is left all the same."""
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.cancel()
        started = [] if self.process is None else processes.descendants(self.process.pid)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self.process is None:
            return []
        try:
            self.process.wait(_LEAVING_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        left = processes.end(started, grace_s=0.0)
        left += processes.end(processes.using(self.temporary), grace_s=0.0)
        found = [f"process {process.pid} ({processes.name(process)})" for process in left]
        return found if processes.remove(self.temporary) else [*found, f"folder {self.temporary}"]


def start(temporary: str, address: str | None, workers: int) -> Connection:
    """A broker of this process's own: it ends with it. ``address``: of the cluster to join; None: a new one."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = spawn(temporary, address, workers, "--socket", str(theirs.fileno()), pass_fds=(theirs.fileno(),))
    return Connection(ours, temporary, process)


def spawn(
    temporary: str, address: str | None, workers: int, *arguments: str, pass_fds: tuple[int, ...] = ()
) -> subprocess.Popen[bytes]:
    """Start a broker that imports what this process can import."""
    code = f"import sys; sys.path[:] = {python_path()!r}; from kemu.runtime.ray.broker import server; server.main()"
    command = [sys.executable, "-c", code, "--temporary", temporary, "--workers", str(workers), *arguments]
    environment = nodes.environment(local=address is None)
    environment.pop("RAY_ADDRESS", None)
    if address is None:
        # Ray guards a cluster with a token, and would leave one in the home directory.
        environment.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    else:
        command += ["--address", address]
    with open(os.path.join(temporary, _ERRORS), "wb") as errors:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env=environment,
            pass_fds=pass_fds,
            start_new_session=True,  # Ctrl-C in a terminal is for the driver alone
        )


def python_path() -> list[str]:
    """Directories from which this process imports, in a form that another one can use."""
    return [str(Path(entry or ".").resolve()) for entry in sys.path]


def temporary_root() -> str:
    root = tempfile.gettempdir()
    return root if len(root) + len(f"/{PREFIX}xxxxxxxx") <= _LONGEST_TEMPORARY_PATH else "/tmp"


def temporary_folder() -> str:
    return tempfile.mkdtemp(prefix=PREFIX, dir=temporary_root())
