"""The example of a controller with its tests, run as its users run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_bugs_of_the_controller_are_found(tmp_path: Path) -> None:
    """Each of its tests runs with the bugs and without them."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "--rootdir=.",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        ".",
    ]
    found = subprocess.run(
        command,
        cwd=ROOT / "examples" / "controllers",
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stdout
    assert re.search(r"^9 passed", found.stdout, re.MULTILINE), found.stdout
