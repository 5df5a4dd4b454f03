"""Asks the checkpoint of a run folder how it stands, wakes it, or tells it to end.

    found = waking.ask(folder)
    if found is not None and not found.is_running:
        code = waking.wake(folder, {"json": False}, forward)

A request is a line of JSON, ``{"do": "tell" | "end" | "wake"}``; a wake comes with the standard streams of the caller.
Neighbour: :mod:`sleeping`, which answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.runtime.runlog.folders import CHECKPOINT_FILE

MOST_BYTES = 1 << 16
"""Of a message."""
PATIENCE_S = 10.0
"""Within this a checkpoint answers."""
TRIES = 10
TELL, END, WAKE = "tell", "end", "wake"


@dataclass(frozen=True)
class Found:
    """A checkpoint that waits."""

    pid: int
    run_pid: int
    """Of the process whose copy it is."""
    is_running: bool
    """That process lives."""
    now_s: float
    """Virtual time at which it was made."""
    duration_s: float
    phase: str
    """As in :mod:`kemu.lab.scenario.playing.progress`."""
    left_s: float
    """Real seconds for which it still waits; while the run lives, those for which it will."""
    document: str
    """SHA-256 of the scenario as it was given, with its overrides."""

    def __str__(self) -> str:
        return f"{self.now_s:.0f} s of {self.duration_s:g} s"


class Gone(KemuError):
    """No checkpoint waits in the folder."""


class Died(KemuError):
    """The run that was to go on was killed at once."""


def ask(folder: Path) -> Found | None:
    """How the checkpoint stands; None where there is none."""
    for _ in range(TRIES):
        try:
            with _connection(folder) as opened:
                send(opened, {"do": TELL})
                return Found(**receive(opened))
        except (Gone, TimeoutError):
            return None
        except (OSError, TypeError):  # it has just given way to the next one
            continue
    return None


def end(folder: Path) -> None:
    """Tell the checkpoint to end, if there is one and its run is over."""
    with contextlib.suppress(Gone, OSError), _connection(folder) as opened:
        send(opened, {"do": END})
        receive(opened)


@contextlib.contextmanager
def woken(folder: Path, wants: Mapping[str, Any]) -> Iterator[tuple[int, socket.socket]]:
    """The run goes on, with the standard streams of this process. Gives its process, and a connection on which it says
    ``{"exit": code}`` at its end, and with which it dies. Raises Gone, Died, and KemuError where it cannot go on."""
    with _connection(folder) as opened:
        line = json.dumps({"do": WAKE, "wants": dict(wants)}).encode() + b"\n"
        socket.send_fds(opened, [line], [0, 1, 2])
        answer = receive(opened)
        if "error" in answer:
            raise KemuError(f"{folder}: {answer['error']}")
        if "pid" not in answer:
            raise Died(f"{folder}: the run was killed as it went on")
        opened.settimeout(None)
        yield answer["pid"], opened


def send(opened: socket.socket, message: Mapping[str, Any]) -> None:
    opened.sendall(json.dumps(message).encode() + b"\n")


def receive(opened: socket.socket) -> dict[str, Any]:
    """The next message; empty where the other side has gone."""
    line = b""
    while not line.endswith(b"\n") and len(line) < MOST_BYTES:
        some = opened.recv(MOST_BYTES)
        if not some:
            return {}
        line += some
    return dict(json.loads(line))


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """In the folder: the path of a socket has at most a hundred bytes."""
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextlib.contextmanager
def _connection(folder: Path) -> Iterator[socket.socket]:
    opened = socket.socket(socket.AF_UNIX)
    try:
        opened.settimeout(PATIENCE_S)
        try:
            with inside(folder):
                opened.connect(CHECKPOINT_FILE)
        except OSError as error:
            raise Gone(f"{folder}: no checkpoint: {error.strerror}") from None
        yield opened
    finally:
        opened.close()
