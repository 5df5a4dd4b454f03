"""``kemu up`` as a process of its own, and what to ask of it."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

STARTS_WITHIN_S = 30
"""On a machine that is busy with tests; docs/up.md says how long it takes on one that is not."""


class Process:
    """Of ``kemu up --json``."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder / "run"
        command = [sys.executable, "-m", "kemu.doors.cli.main", "up", "--json", "--out", str(self.folder), *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self._line()
        self.up = json.loads(line)
        config = yaml.safe_load(Path(self.up["kubeconfig"]).read_text())
        self.cluster = config["clusters"][0]["cluster"]
        self.token = config["users"][0]["user"].get("token", "")

    def _line(self) -> str:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return line

    def ask(self, path: str, body: Any = None, *, method: str | None = None, token: str | None = None) -> Any:
        """Raises HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.cluster['server']}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        shown = self.token if token is None else token
        if shown:
            request.add_header("Authorization", f"Bearer {shown}")
        context = None
        if "certificate-authority-data" in self.cluster:
            authority = base64.b64decode(self.cluster["certificate-authority-data"]).decode()
            context = ssl.create_default_context(cadata=authority)
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return json.load(answer)

    def eventually(self, path: str, holds: Any, within_s: float = 20.0) -> Any:
        end = time.monotonic() + within_s
        while True:
            found = self.ask(path)
            if holds(found) or time.monotonic() > end:
                assert holds(found), found
                return found
            time.sleep(0.05)

    def end(self, number: int = signal.SIGINT) -> tuple[int, list[dict[str, Any]]]:
        """Exit code, and what it printed meanwhile."""
        self.process.send_signal(number)
        out, errors = self.process.communicate(timeout=30)
        assert not errors, errors
        return self.process.returncode, [json.loads(line) for line in out.splitlines()]


@contextlib.contextmanager
def up(folder: Path, *words: str) -> Iterator[Process]:
    made = Process(folder, *words)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()
        for pipe in (made.process.stdout, made.process.stderr):
            assert pipe is not None
            pipe.close()
