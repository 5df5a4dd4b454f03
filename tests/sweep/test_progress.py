"""What a sweep says while it runs."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from kemu.doors.cli.commands.figures import sweep_progress
from kemu.lab.exploration.workers import Inline
from kemu.lab.sweep.engine.sweeps import Sweep
from tests.sweep import test_sweeps

LINE = r"small (?P<bar>[━╌]* ?)(?P<over>\d) of 6 cells(, (\d+ to \d+|about \d+) s left)?, 1 running, \d+ s of CPU"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "bar"), [(io.StringIO(), 0), (Terminal(), 25)])
def test_a_line_says_how_far_it_is_and_how_long_the_rest_takes(tmp_path: Path, stream: io.StringIO, bar: int) -> None:
    executor = Inline()
    with Sweep(test_sweeps.experiment(), tmp_path) as sweep:
        shown = sweep_progress.Progress(sweep, executor, stream, quiet=False)
        lines = [shown.line()]
        for record in sweep.go(executor):
            shown.take(record)
            shown._estimated_s = 0.0
            lines.append(shown.line())
    found = [re.fullmatch(LINE, line) for line in lines]
    assert all(found)
    assert [int(each["over"]) for each in found if each] == list(range(7))
    assert {len(each["bar"]) for each in found if each} == {bar}
    assert "left" not in lines[0]  # nothing is known yet
    assert all(" left, " in line for line in lines[1:-1])
    assert "left" not in lines[-1]


def test_without_a_terminal_there_are_lines_and_quiet_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_progress, "PLAIN_EVERY_S", 0.01)
    streams = io.StringIO(), io.StringIO()
    executor = Inline()
    with Sweep(test_sweeps.experiment(), tmp_path) as sweep:
        with (
            sweep_progress.Progress(sweep, executor, streams[0], quiet=False) as told,
            sweep_progress.Progress(sweep, executor, streams[1], quiet=True) as quiet,
        ):
            for record in sweep.go(executor):
                told.take(record)
                quiet.take(record)
        first, *others = streams[0].getvalue().splitlines()
    assert first == "small: 2 variants with 3 seeds each: 6 cells"
    assert others
    assert all(re.fullmatch(LINE, line) for line in others)
    assert streams[1].getvalue() == ""
