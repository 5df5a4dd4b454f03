"""However a run ends, no process of it is left, nothing is on the terminal but what we say, and no file but logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kemu.runtime.ray.driver.logs.recoveries import Recovery
from tests.ray.world import Events, alive

pytestmark = [pytest.mark.ray, pytest.mark.slow]

REPOSITORY = Path(__file__).parents[2]

WAIT_S = 200
"""A busy machine may take long, but no run hangs."""


class Ending:
    """A run that is under way, and what it said."""

    def __init__(self, how: str, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.ray.ending", how, str(directory)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As in a terminal: Ctrl-C goes to all processes of the group.
            start_new_session=True,
        )
        self.started = json.loads(self.line())
        if not self.started["pids"]:
            raise AssertionError(self.process.communicate(timeout=WAIT_S)[1])
        assert len(self.started["pids"]) >= 4, "GCS, raylet and two cells at least"
        # A run that fails at its launch ends them while it tells of them.
        assert how == "launch" or all(alive(pid) for pid in self.started["pids"])

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self, *, grace_s: float = 0.0) -> tuple[int, str, str]:
        """Exit code, and the rest of what it wrote. No process may be left ``grace_s`` after its end."""
        out, err = self.process.communicate(timeout=WAIT_S)
        deadline = time.monotonic() + grace_s
        while (left := [pid for pid in self.started["pids"] if alive(pid)]) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left, f"left behind: {left}"
        return self.process.returncode, out, err


def has_events(out: str) -> bool:
    return bool(json.loads(out.splitlines()[-1])["events"])


def test_the_good_end(tmp_path: Path) -> None:
    ending = Ending("well", tmp_path)
    code, out, err = ending.end()
    assert code == 0
    assert has_events(out)
    assert err == "", "neither Ray nor gRPC has anything to say on the terminal"
    assert not Path(ending.started["temporary"]).exists()
    assert {path.name for path in tmp_path.iterdir()} == {"logs"}, "they go when the run has its verdict"


@pytest.mark.parametrize(
    ("how", "error"), [("error", "LookupError: in the driver"), ("launch", "UserCodeFailed: talker/1")]
)
def test_an_error(tmp_path: Path, how: str, error: str) -> None:
    ending = Ending(how, tmp_path)
    code, out, err = ending.end()
    assert code == 1
    assert error in err
    assert has_events(out), "what happened up to the error is in the log"
    assert not Path(ending.started["temporary"]).exists()


def once(process: subprocess.Popen[Any]) -> None:
    os.killpg(process.pid, signal.SIGINT)


def twice(process: subprocess.Popen[Any]) -> None:
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "cleaning up\n"
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize(("how", "press"), [("wait", once), ("stubborn", twice)], ids=["once", "twice"])
def test_control_c(tmp_path: Path, how: str, press: Callable[[subprocess.Popen[Any]], None]) -> None:
    ending = Ending(how, tmp_path)
    assert ending.line() == "the clock runs\n"
    time.sleep(0.2)
    press(ending.process)
    code, out, err = ending.end()
    assert code == -signal.SIGINT
    assert "KeyboardInterrupt" in err
    if how == "wait":
        assert has_events(out)
    assert not Path(ending.started["temporary"]).exists()


def test_even_a_kill_of_the_driver(tmp_path: Path) -> None:
    """The kernel tells the broker, which ends everything and clears up; the log can be had from what was kept."""
    ending = Ending("wait", tmp_path)
    assert ending.line() == "the clock runs\n"
    ending.process.kill()
    code, _, _ = ending.end(grace_s=20)
    assert code == -signal.SIGKILL
    assert not Path(ending.started["temporary"]).exists()
    events = Events()
    assert Recovery(tmp_path).hand_on(events) == []
    answers = [data["number"] for data in events.of("talker.answer")]
    assert answers == list(range(answers[0], answers[0] + len(answers)))
    assert [actor for _, actor, kind, _ in events if kind == "actor.started"] == ["echo/0", "talker/0"]
