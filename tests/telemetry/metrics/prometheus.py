"""The real Prometheus, for tests: promtool, and a server over blocks, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.real import executables


def program(name: str) -> str:
    """Skips the test where it is not installed."""
    found = shutil.which(name, path=f"{executables.cache()}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip(f"not installed: {name} of Prometheus (scripts/setup --system)")
    return found


def run(*words: str, given: str = "") -> str:
    """promtool; raises CalledProcessError."""
    done = subprocess.run(
        [program("promtool"), *words], input=given, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


class Server:
    def __init__(self, url: str) -> None:
        self._url = url

    def range(self, expression: str, begin_s: float, end_s: float, step_s: float) -> list[Any]:
        """The series of a query."""
        asked = urllib.parse.urlencode({"query": expression, "start": begin_s, "end": end_s, "step": step_s})
        with urllib.request.urlopen(f"{self._url}/api/v1/query_range?{asked}", timeout=30) as answer:
            found: list[Any] = json.load(answer)["data"]["result"]
        return found


@contextmanager
def serving(data: Path) -> Iterator[Server]:
    """``data``: with blocks."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = data / "prometheus.yaml"
    config.write_text("scrape_configs: []\n")
    command = [
        program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", "--log.level=error",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"{url}/-/ready", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, "Prometheus has ended"
                assert time.monotonic() < end, "Prometheus does not start"
                time.sleep(0.05)
        yield Server(url)
    finally:
        process.terminate()
        process.wait(20)
