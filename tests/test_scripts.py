"""``scripts/test`` leaves nothing behind, and touches nothing of other runs."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WAITS = """
import os
import subprocess
def test_waits():
    with open("begun", "a") as file:
        file.write(f"{os.getpgid(0)}\\n")
    subprocess.Popen(["sleep", "600"]).wait()
"""
COMPUTES = """
import os
def test_computes():
    with open("begun", "a") as file:
        file.write(f"{os.getpgid(0)}\\n")
    while True:
        pass
"""


PASSES = """
def test_passes(tmp_path):
    pass
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two files of tests, of which one only computes, and what ``scripts/test`` needs."""
    for name in ("scripts/test", "tests/__init__.py", "tests/again.py", "tests/computing.py", "tests/costs.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name, text in (
        ("scripts/setup", "#!/bin/sh\n"),
        (".venv/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n'),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


FEW = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist -p pytest_timeout"}


def test_what_other_runs_left_stays(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """pytest removes files of older runs, and fails if somebody still writes there."""
    for name in ("tests/test_some.py", "tests/test_more.py"):
        (checkout / name).write_text(PASSES)
    files = tmp_path_factory.mktemp("files")
    older = [files / f"pytest-of-{getpass.getuser()}" / f"pytest-{number}" for number in range(9)]
    for folder in older:
        folder.mkdir(parents=True)
    places = {"TMPDIR": str(files), "PYTEST_DEBUG_TEMPROOT": str(files)}
    subprocess.run(
        [checkout / "scripts" / "test"], env={**os.environ, **FEW, **places}, check=True, stdout=subprocess.DEVNULL
    )
    assert all(folder.exists() for folder in older)
    assert list(files.iterdir()) == [older[0].parent]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_what_was_started(checkout: Path, number: signal.Signals) -> None:
    (checkout / "tests" / "test_waits.py").write_text(WAITS)
    (checkout / "tests" / "test_computes.py").write_text(COMPUTES)
    begun = checkout / "begun"
    script = subprocess.Popen(
        [checkout / "scripts" / "test"], env={**os.environ, **FEW}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    groups: set[int] = set()
    try:
        deadline = time.monotonic() + 300
        while len(groups) < 2:
            assert script.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
            groups = set(map(int, begun.read_text().split())) if begun.exists() else set()
        script.send_signal(number)
        assert script.wait(60) == 128 + number
        deadline = time.monotonic() + 60
        while any(map(lives, groups)):  # as long as nobody has waited for those that ended
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        script.terminate()
        for group in filter(lives, groups):
            os.killpg(group, signal.SIGKILL)
        script.communicate(timeout=60)


def lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
