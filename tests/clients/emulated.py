"""`kemu up` in a process of its own, with the helpers that tests of a real cluster have."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.realkube import clusters, processes

START_S = 60.0
END_S = 60.0


class Emulated(clusters.Components):
    """A cluster of kemu that real components can be started beside."""

    def __init__(self, folder: Path, kubeconfig: Path, up: processes.Process) -> None:
        super().__init__(folder, kubeconfig)
        self.up = up
        self.run_folder = folder / "run"

    def lines(self) -> list[dict[str, Any]]:
        """What it has printed so far; the first line says where it is."""
        return [json.loads(line) for line in self.up.log.read_text().splitlines() if line.startswith("{")]

    def end(self) -> dict[str, Any]:
        """End it as Ctrl-C does; the verdict."""
        self.up.signal(signal.SIGINT)
        self.up.wait(END_S)
        return self.lines()[-1]


@contextlib.contextmanager
def start(folder: Path, *options: str) -> Iterator[Emulated]:
    """``options`` of ``kemu up``."""
    folder.mkdir(parents=True, exist_ok=True)
    kubeconfig = folder / "kubeconfig"
    main = "from kemu.doors.cli.main import main; raise SystemExit(main())"
    command = [
        sys.executable,
        "-c",
        main,
        "up",
        "--json",
        "--kubeconfig",
        kubeconfig,
        "--out",
        folder / "run",
        *options,
    ]
    up = processes.Process("kemu", command, folder)
    emulated = Emulated(folder, kubeconfig, up)
    try:
        deadline = time.monotonic() + START_S
        while not kubeconfig.exists():
            up.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"kemu up wrote no kubeconfig within {START_S:.0f} s:\n{up.tail()}")
            time.sleep(0.05)
        yield emulated
    finally:
        emulated.stop()
        up.stop()


def eventually(what: str, holds: Any, seconds: float = 30.0) -> Any:
    """The first answer that is neither False nor None nor empty. Raises AssertionError after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.1)
