"""Two signals end ``kemu up`` whatever its event loop is busy with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BUSY = """
import sys, threading, time
from kemu.lab.up import sessions

serve = sessions.Session._serve

async def busy(self, *arguments):
    on_up = self._on_up

    def up(found):
        on_up(found)
        end = time.monotonic() + 60
        while time.monotonic() < end:  # without a turn for anybody else
            sum(range(1000))

    self._on_up = up
    return await serve(self, *arguments)

sessions.Session._serve = busy
sys.argv = ["kemu", "up", "--nodes", "1", "--insecure-http", "--json", "--out", sys.argv[1]]
from kemu.doors.cli.main import main
raise SystemExit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_cluster_that_does_not_answer(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUSY, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["what"] == "up"
            process.send_signal(number)
            time.sleep(0.5)
            assert process.poll() is None
            process.send_signal(number)
            begun = time.monotonic()
            out, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert time.monotonic() - begun < 15
    assert process.returncode == 130
    assert not errors
    said = json.loads(out.splitlines()[-1])
    assert said["error"] == "interrupted"
    assert "without a verdict" in said["message"]
