"""Failed tests that wait for real time get a second chance, others don't."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEST = """
import os, socket, subprocess, sys
def test_waits():
    socket.socket().close()
    assert {waits}
def test_starts_a_process():
    subprocess.run([sys.executable, "-c", "0"])
    assert {starts}
def test_computes():
    assert {computes}
def test_compares_runs():
    subprocess.run([sys.executable, "-c", "0"], env={{**os.environ, "PYTHONHASHSEED": "1"}})
    assert {compares}
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
@pytest.mark.parametrize(
    ("failing", "again"),
    [
        ((), []),
        (("waits",), ["waits"]),
        (("waits", "starts"), ["waits", "starts_a_process"]),
        (("waits", "computes"), []),
        (("starts", "compares"), []),
    ],
)
def test_only_tests_that_wait_for_real_time_are_run_again(
    failing: tuple[str, ...], again: list[str], workers: tuple[str, ...], tmp_path: Path
) -> None:
    names = ("waits", "starts", "computes", "compares")
    (tmp_path / "test_it.py").write_text(TEST.format(**{name: name not in failing for name in names}))
    file = tmp_path / "again"
    unused = [word for plugin in ("cacheprovider", "hypothesispytest", "kemu") for word in ("-p", f"no:{plugin}")]
    options = ("-q", *unused, "-p", "tests.again", "--again", str(file), *workers)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == (1 if failing else 0), done.stdout + done.stderr
    assert file.read_text().splitlines() == [f"test_it.py::test_{name}" for name in again]
