"""``Any`` is no type: ruff refuses it in new files, and where it stands it may only become rarer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT = 431
"""Parameters and results of kemu/ that are ``Any``. Lower it with each that gets a type."""


def test_any_only_becomes_rarer() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ruff", "check", "--isolated", "--target-version", "py311", "--select", "ANN401"),
            *("--config", "lint.flake8-annotations.allow-star-arg-any=true", "--output-format", "json", "kemu"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    files = sorted({str(Path(one["filename"]).relative_to(ROOT)) for one in found})
    assert len(found) <= LEFT, f"{len(found)} of them now, in {files}"
