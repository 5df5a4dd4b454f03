"""The Go programs of ``tests/clients/go``: built into the cache of the real parts, and run against any API server."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.realkube import binaries

SOURCES = Path(__file__).parent / "go"
PROGRAMS = ("informers", "typed", "dynamic", "metadata", "elections", "workqueue", "manager")
BUILD_S = 900.0


def executable() -> Path:
    """The built programs. Skips the calling test where they are not and cannot be built; nightly may download."""
    files = sorted(path for path in SOURCES.iterdir() if path.suffix in (".go", ".mod", ".sum"))
    digest = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()[:12]
    built = binaries.cache() / f"clients-{digest}"
    if built.exists():
        return built
    if shutil.which("go") is None:
        pytest.skip("not beside the project: the Go toolchain")
    environment = dict(os.environ)
    if os.environ.get("KEMU_NIGHTLY") != "1":
        environment["GOPROXY"] = "off"
    built.parent.mkdir(parents=True, exist_ok=True)
    passing = built.with_name(f"{built.name}.{os.getpid()}")
    done = subprocess.run(
        ["go", "build", "-o", passing, "."],
        cwd=SOURCES,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_S,
    )
    if done.returncode:
        if "GOPROXY=off" in done.stderr:
            pytest.skip("not beside the project: the Go modules that tests/clients/go needs")
        raise AssertionError(f"go build: {done.stderr[-3000:]}")
    passing.rename(built)
    return built


def command(kubeconfig: Path, program: str, *options: str) -> list[str]:
    return [str(executable()), f"-kubeconfig={kubeconfig}", *options, program]


def run(
    kubeconfig: Path, program: str, *options: str, timeout_s: float = 60.0
) -> tuple[dict[str, Any], dict[str, float]]:
    """What a program printed: what it saw, and its timings. Raises AssertionError with its output when it fails."""
    done = subprocess.run(
        command(kubeconfig, program, f"-timeout={timeout_s - 5:.0f}s", *options),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    assert done.returncode == 0, f"{program}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return summary, summary.pop("timings")
