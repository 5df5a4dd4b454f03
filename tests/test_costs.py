"""Costs of tests are written while they run, and summed up by file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import costs

ROOT = Path(__file__).parents[1]
TEST = """
import subprocess, sys, time
def test_one():
    time.sleep(0.2)
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
"""


def test_a_line_has_what_passed_and_cpu_of_the_process_and_its_children(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    words = ["-q", "-pno:hypothesispytest", "-pno:cacheprovider", "-p", "tests.costs", "--costs", "costs", "test_it.py"]
    command = [
        sys.executable,
        "-c",
        f"import sys, pytest; sys.path.insert(0, {str(ROOT)!r}); sys.exit(pytest.main({words}))",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    passed, own, others, test = (tmp_path / "costs").read_text().rstrip("\n").split("\t")
    assert test == "test_it.py::test_one"
    assert float(passed) > 0.2
    assert 0 <= float(own) < float(passed)
    assert float(others) > 0


def test_the_costliest_files_come_first() -> None:
    lines = ["1.00\t0.50\t0.10\tb.py::one[a\tb]", "2.00\t0.10\t2.50\ta.py::one", "1.00\t1.00\t0.00\ta.py::two"]
    told = [line.rpartition(": ")[2].split() for line in costs.summary(lines)]
    assert told == [["3", "of", "all"], ["2", "of", "a.py"], ["1", "of", "b.py"]]
    assert "4.2 s of CPU,    2.6 of it of processes, in     4.0 s" in next(costs.summary(lines))
