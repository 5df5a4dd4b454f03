"""The programs of ``tests/clients/programs``, each in a process of its own, as users run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

OPERATORS = ("kopf_operator", "asynchronous_operator")
PROGRAMS = ("synchronous", "asynchronous", *OPERATORS)
ROOT = Path(__file__).resolve().parents[2]


def run(kubeconfig: Path, program: str, timeout_s: float = 120.0) -> dict[str, Any]:
    """What a program printed. Raises AssertionError with its output when it fails."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            f"tests.clients.programs.{program}",
            str(kubeconfig),
            program.replace("_", "-"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        cwd=ROOT,
    )
    assert done.returncode == 0, f"{program}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
