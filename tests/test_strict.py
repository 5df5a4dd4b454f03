"""``KEMU_STRICT=1`` makes a skip a failure, but for what no script of the project can install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TEST = """
import pytest
def test_one():
    pytest.skip({reason!r})
"""


@pytest.mark.parametrize(
    ("strict", "reason", "code"),
    [
        ("1", "etcd is not installed", 1),
        ("1", "not beside the project: a tool", 0),
        ("", "etcd is not installed", 0),
    ],
)
def test_a_skip_fails_when_strict(strict: str, reason: str, code: int, tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parent / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(TEST.format(reason=reason))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "KEMU_STRICT": strict},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == code, done.stdout


def test_examples_are_drawn_as_one_profile_says_for_all() -> None:
    """Whoever loads another one, loads it for all tests that are collected with it."""
    root = Path(__file__).parent
    loading = [path for path in root.rglob("*.py") if "\nsettings.load_profile(" in path.read_text()]
    assert loading == [root / "conftest.py"]
