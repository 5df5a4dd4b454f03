"""The real Jaeger, for tests: found beside the project, started on loopback and ended again.

The nightly builds it where that has not been done; by day a test that needs it takes no minutes for that, and skips.
"""

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

TOOL = Path(__file__).parents[3] / "shared" / "tools" / "jaeger"
OTLP = "127.0.0.1:4317"
QUERY = "http://127.0.0.1:16686"
PORTS = (4317, 16686)
BUILD_TIMEOUT_S = 1500


def query(path: str) -> Any:
    with urllib.request.urlopen(f"{QUERY}{path}", timeout=5) as answer:
        return json.load(answer)["data"]


def _is_jaeger() -> bool:
    try:
        return isinstance(query("/api/services"), list)
    except (OSError, ValueError, KeyError):
        return False


def _taken() -> list[int]:
    taken = []
    for port in PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                taken.append(port)
    return taken


def _is_built() -> bool:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kemu-tools"
    return any(os.access(found, os.X_OK) for found in cache.glob("jaeger-*"))


@contextmanager
def running() -> Iterator[None]:
    """Skips the test, with the reason, where there can be no Jaeger."""
    if not TOOL.is_file():
        pytest.skip("not beside the project: the tool that builds and starts Jaeger")
    # Another worker's Jaeger goes when its tests are over; one that stays is used as it is.
    waited_until = time.monotonic() + 20
    while (taken := _taken()) and time.monotonic() < waited_until:
        time.sleep(0.5)
    if taken:
        if not _is_jaeger():
            pytest.skip(f"ports {taken} are taken by something that is not Jaeger")
        yield
        return
    if not _is_built():
        if os.environ.get("KEMU_NIGHTLY") != "1":
            pytest.skip(f"not beside the project: Jaeger, which {TOOL} builds in minutes, and so does the nightly")
        if shutil.which("go") is None:
            pytest.skip("Jaeger has not been built, and there is no Go toolchain to do it")
        subprocess.run([TOOL, "build"], check=True, timeout=BUILD_TIMEOUT_S, env={**os.environ, "GOFLAGS": "-p=1"})
    process = subprocess.Popen([TOOL, "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        ready_until = time.monotonic() + 60
        while not (_is_jaeger() and 4317 in _taken()):
            assert process.poll() is None, f"Jaeger ended with {process.returncode}"
            assert time.monotonic() < ready_until, "Jaeger does not answer"
            time.sleep(0.25)
        yield
    finally:
        # The tool replaces itself by Jaeger: this is its pid. It has nothing to save, and would take its time.
        process.kill()
        process.wait(20)


def trace(trace_id: int, at_least: int) -> list[dict[str, Any]]:
    """The spans of a trace, when there are so many (or after a while), each with its ``service``."""
    until = time.monotonic() + 15
    while True:
        found = [span for each in _found(f"/api/traces/{trace_id:032x}") for span in _spans(each)]
        if len(found) >= at_least or time.monotonic() > until:
            return found
        time.sleep(0.25)


def search(service: str, operation: str = "", least: str = "", **tags: str) -> dict[str, list[dict[str, Any]]]:
    """The traces of the last two days in which a span has that service, name, duration and these tags (with ``__`` for
    dots), by trace id."""
    wanted = {"service": service, "operation": operation, "minDuration": least, "limit": "1500"}
    wanted["tags"] = json.dumps({key.replace("__", "."): value for key, value in tags.items()})
    asked = urllib.parse.urlencode({key: value for key, value in wanted.items() if value})
    return {each["traceID"]: _spans(each) for each in _found(f"/api/traces?{asked}")}


def _found(path: str) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = query(path)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return []
    return found


def _spans(found: dict[str, Any]) -> list[dict[str, Any]]:
    for span in found["spans"]:
        process = found["processes"][span["processID"]]
        span["service"] = process["serviceName"]
        span["resource"] = {tag["key"]: tag["value"] for tag in process["tags"]}
        span["attributes"] = {tag["key"]: tag["value"] for tag in span["tags"]}
    return list(found["spans"])
