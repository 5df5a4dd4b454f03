"""``kemu explore`` whose process is stopped from outside in the middle, and goes on with ``--resume``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli import main as cli
from kemu.lab.exploration.files import CAMPAIGN_FILE
from kemu.lab.exploration.strategies.registry import USUAL
from tests.exploration.scenarios import RACE

RUNS = 80
"""More than two generations: feedback learns."""
PATIENCE_S = 60.0


def arguments(folder: Path) -> list[str]:
    (folder / "race.yaml").write_text(RACE)
    # What it finds is not the question, so it counts nothing that fails.
    only = ["--check", "no-node-overcommitted", "--no-shrink"]
    return ["explore", str(folder / "race.yaml"), "--seed", "3", "--runs", str(RUNS), "--jobs", "2", *only,
            "--out", str(folder / "out"), "--json"]  # fmt: skip


def records(folder: Path) -> list[dict[str, Any]]:
    """Of all whole lines."""
    text = (folder / "out" / CAMPAIGN_FILE).read_text()
    lines = text[: text.rfind("\n") + 1].splitlines()[1:]
    return [{**json.loads(line), "seconds": 0} for line in lines]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("whole")
    cli.main(arguments(folder))
    found = records(folder)
    assert [record["number"] for record in found] == list(range(RUNS))
    assert {record["strategy"] for record in found} == set(USUAL)
    return found


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Any) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux which processes there are")
@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL], ids=["SIGINT", "SIGKILL"])
def test_a_search_that_is_stopped_goes_on_to_the_same_end(
    stop: signal.Signals, expected: list[dict[str, Any]], tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "kemu.doors.cli.main", *arguments(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    file = tmp_path / "out" / CAMPAIGN_FILE
    until(lambda: process.poll() is not None or (file.exists() and file.read_bytes().count(b"\n") > 32))
    workers = children(process.pid)
    assert len(workers) == 2
    process.send_signal(stop)
    process.wait(PATIENCE_S)
    before = records(tmp_path)
    assert before == expected[: len(before)]
    assert 32 <= len(before) < RUNS
    until(lambda: not any(map(is_alive, workers)))

    cli.main([*arguments(tmp_path), "--resume"])
    assert records(tmp_path) == expected
