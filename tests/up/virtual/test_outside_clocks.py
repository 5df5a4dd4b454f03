"""Programs outside that take the time of a cluster for theirs, by the recipes of examples/clock."""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.lab.up import embedded

EXAMPLES = Path(__file__).parents[3] / "examples/clock"
DATE = dt.datetime(2026, 11, 28, 9, tzinfo=dt.UTC)
PYTHON = """
import datetime, sys, time
for line in sys.stdin:
    before = time.monotonic()
    time.sleep(0.05)
    assert 0.04 < time.monotonic() - before
    print(datetime.datetime.now(datetime.timezone.utc).timestamp(), time.time(), flush=True)
"""
GO = """package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	begun := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		time.Sleep(50 * time.Millisecond)
		now := time.Now()
		fmt.Println(float64(now.UnixNano())/1e9, float64(begun.Add(time.Since(begun)).UnixNano())/1e9)
	}
}
"""


def _check(command: list[str], more: dict[str, str], folder: Path) -> None:
    """Its time of day is that of the cluster, also after a step."""
    with embedded.up(nodes=1, date=DATE, folder=folder) as cluster:
        env = {**os.environ, **more, "KEMU_CLOCK": str(cluster.folder / "clock")}
        with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for seconds in (0.0, 3600.0, 0.25):
                cluster.step(seconds)
                print(file=process.stdin, flush=True)
                for text in process.stdout.readline().split():
                    assert float(text) == pytest.approx(DATE.timestamp() + cluster.now_s, abs=1e-3)
            process.stdin.close()


def test_python_by_a_library_that_is_loaded_before_libc(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("not beside the project: a C compiler")
    library = tmp_path / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", library, EXAMPLES / "clock.c"], check=True)
    _check([sys.executable, "-c", PYTHON], {"LD_PRELOAD": str(library)}, tmp_path / "run")


def test_go_by_an_overlay(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("not beside the project: Go")
    spec = importlib.util.spec_from_file_location("go_overlay", EXAMPLES / "go_overlay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    overlay = module.write(tmp_path / "overlay")
    (tmp_path / "main.go").write_text(GO)
    (tmp_path / "go.mod").write_text("module clock\n\ngo 1.21\n")
    subprocess.run(["go", "build", "-overlay", overlay, "-o", "clock", "."], cwd=tmp_path, check=True)
    _check([str(tmp_path / "clock")], {}, tmp_path / "run")
