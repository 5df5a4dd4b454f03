"""A controller as a child of this process: started, killed, started again, its output kept."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from kemu.errors import KemuError
from kemu.lab.hunt.projects import Controller
from kemu.lab.hunt.running.outputs import Output
from kemu.lab.hunt.running.waits import Waits
from kemu.lab.up.virtual import drivers
from kemu.runtime.real import programs

_CLOCKS = Path(__file__).with_name("clocks")
_END_S = 2.0
"""Real time in which the last words of a controller come."""


class Process:
    """One controller of one trial. Its children, if it has any, end with it."""

    def __init__(
        self,
        controller: Controller,
        words: Mapping[str, str],
        here: Path,
        output: Path,
        ready: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        """``words``: what ``{kubeconfig}`` and its like stand for. ``ready``: told, in a thread, when the line comes
        that says so; where the controller has none, never. ``ended``: told, in a thread, when it has ended by
        itself."""
        self.controller = controller
        self._words = words
        self._here = here
        self._output = output
        self._ready = ready
        self._ended = ended
        self._child: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._waits: Waits | None = None
        self.starts = 0
        self.crashes: list[str] = []
        """What it said before it ended by itself, or how it ended."""
        self.panics: list[str] = []
        """Of those that it survived, too."""
        self._wanted = False
        self.is_spare = False
        """Nobody minds if it has ended."""

    def start(self, timers: socket.socket | None = None) -> None:
        """``timers``: see :mod:`alarms`. Raises KemuError where there is no such program."""
        command = [_filled(word, self._words) for word in self.controller.command]
        env = {**os.environ, **{key: _filled(value, self._words) for key, value in self.controller.env.items()}}
        env["KUBECONFIG"] = self._words["kubeconfig"]
        env["KEMU_CLOCK"] = self._words["clock"]
        if self.controller.clock == "python":
            env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_CLOCKS), env.get("PYTHONPATH", "")]))
        passed = () if timers is None else (timers.fileno(),)
        if timers is not None:
            env["KEMU_TIMERS"] = str(timers.fileno())
        try:
            child = subprocess.Popen(
                command,
                cwd=self._here / self.controller.directory,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=programs.end_with_parent,
                pass_fds=passed,
            )
        except OSError as error:
            raise KemuError(f"{command[0]}: {error.strerror or error}") from None
        self._child, self._wanted, self._waits = child, True, Waits(child.pid)
        self.starts += 1
        self._reader = threading.Thread(target=self._read, args=(child,), name=f"hunt {self.controller.name}")
        self._reader.daemon = True
        self._reader.start()

    @property
    def runs(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def is_busy(self) -> bool:
        """See :class:`~kemu.lab.hunt.running.waits.Waits`."""
        return self._waits is not None and self._waits.is_busy()

    def rest_s(self) -> float | None:
        """See :class:`~kemu.lab.hunt.running.waits.Waits`; None, too, while it does not run."""
        return self._waits.rest_s() if self._waits is not None and self.runs else None

    def computed_s(self) -> float:
        """See :class:`~kemu.lab.hunt.running.waits.Waits`."""
        return 0.0 if self._waits is None else self._waits.computed_s()

    def naps(self) -> bool:
        """See :class:`~kemu.lab.hunt.running.waits.Waits`."""
        return self._waits is not None and self._waits.naps(drivers.NAP_S)

    def kill(self) -> None:
        """At once, as by a crash of its machine."""
        self._end()

    def may_end(self) -> None:
        """That it ends by itself is no crash from now on."""
        self._wanted, self.is_spare = False, True

    def stop(self) -> None:
        """For good. Nothing that it would do in order (as giving back a lease) belongs to the trial. Waits for its last
        words."""
        child = self._child
        if child is None:
            return
        self._end()
        child.wait()
        if self._reader is not None:
            self._reader.join(_END_S)

    def _end(self) -> None:
        self._wanted = False
        child = self._child
        if child is not None and child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)

    def _read(self, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        wanted = re.compile(self.controller.ready) if self.controller.ready else None
        told, said = wanted is None, Output()
        with child.stdout, self._output.open("a") as kept:
            for line in child.stdout:
                kept.write(line)
                kept.flush()
                if child is self._child and self._wanted:
                    said.take(line)
                if not told and wanted is not None and wanted.search(line):
                    told = True
                    self._ready()
        code = child.wait()
        self.panics += said.panics
        if child is self._child and self._wanted:
            why = next(iter(said.panics), said.last_error)
            if why and why not in self.panics:
                self.panics.append(why)
            self.crashes.append(why or f"it ended by itself, with exit code {code}")
            self._ended()


def _filled(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", value)
    return text
