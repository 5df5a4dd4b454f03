"""Starts the process that serves the page, and tells it what it cannot see in the files.

    page = start(8765)
    page.scenario("race", "", 1)
    page.begin(folder, "", 60.0)
    …
    page.judged()
    page.end("over", "holds: 3 expectations")
    page.close()

It is a process of its own: a run in virtual time has one thread, which no browser is to hold up.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.errors import InfrastructureError, KemuError

_GRACE_S = 5.0


class Page:
    """Served by another process."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    def scenario(self, name: str, description: str, runs: int) -> None:
        """``runs``: how many there will be."""
        self._tell("scenario", name=name, description=description, runs=runs)

    def search(self, status: str, figures: str, lines: Sequence[str]) -> None:
        """How far a search is whose findings are the runs of the page."""
        self._tell("search", state={"status": status, "figures": figures, "lines": list(lines)})

    def begin(self, folder: Path, name: str, duration_s: float) -> None:
        """A run: its log has a header. ``name``: of the variant."""
        self._tell("begin", folder=str(folder.resolve()), name=name, duration_s=duration_s)

    def judged(self) -> None:
        """It is over."""
        self._tell("judged")

    def end(self, phase: str, text: str, verdict: Mapping[str, Any] | None = None) -> None:
        """There will be no further run; the page can still be read. ``phase``: ``over``, ``interrupted`` or ``lost``,
        as in :mod:`runs`, which takes long to import."""
        self._tell("end", phase=phase, text=text, verdict=verdict)

    def explained(
        self,
        run: int,
        explanation: Mapping[str, Any] | None,
        commands: Sequence[tuple[str, str]],
        causes: Mapping[str, Any] | None = None,
    ) -> None:
        """Why a run that is over went as it did, as in explanation.json; ``commands``: with what they do; ``causes``:
        None: those stay that the page has found."""
        self._tell("explained", run=run, explanation=explanation, commands=list(commands), causes=causes)

    def close(self) -> None:
        """End the process. Browsers keep what they show."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _tell(self, what: str, **data: Any) -> None:
        # Without the page the run goes on.
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"what": what, **data}) + "\n")
            self._process.stdin.flush()


def start(port: int) -> Page:
    """``port``: 0 for any. Raises KemuError where it is in use, ModuleNotFoundError where a package is missing."""
    for name in ("starlette", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(name, name=name)
    process = subprocess.Popen(
        [sys.executable, "-m", "kemu.lab.tell.live", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        # Ctrl-C is for the command alone.
        start_new_session=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    told = json.loads(line) if line else {}
    if "url" in told:
        return Page(process, told["url"])
    assert process.stdin is not None
    process.stdin.close()
    process.stdout.close()
    process.wait()
    if "error" in told:
        raise KemuError(told["error"])
    raise InfrastructureError("the process that was to serve the page has ended")
