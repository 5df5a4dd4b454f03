"""Ctrl-C while a run goes on in this process: the log is closed, a sentence says how far it came, the process ends.

At once, whatever the run is busy with: to drop 50,000 actors one by one would take seconds. Only where kemu is the
program: a caller in Python gets KeyboardInterrupt.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits, failures, programs
from kemu.lab.scenario.playing import progress as states
from kemu.lab.scenario.playing.checkpoints.keeping import KEEP_S
from kemu.lab.scenario.playing.progress import Progress

RETRY_S = 0.02
"""When the log is just being written."""


@contextlib.contextmanager
def answered(progress: Progress, tell: Callable[[], int], tidy: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Within this, or until the function that it yields is called. ``tidy``: called when the log is closed, removes the
    progress bar away; ``tell``: then says how far the run came, and gives the exit code."""

    def answer(*_: object) -> None:
        writer = progress.writer
        if writer is not None and writer.is_busy:
            signal.setitimer(signal.ITIMER_REAL, RETRY_S)
            return
        if writer is not None:
            writer.close()
        tidy()
        code = tell()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exits.heard(code))

    def outside(*arguments: object) -> None:
        # The signal may come while an actor's code runs, which may not do this.
        contextvars.Context().run(answer, *arguments)

    before = {number: signal.signal(number, outside) for number in (signal.SIGINT, signal.SIGALRM)}

    def leave() -> None:
        while before:
            signal.signal(*before.popitem())

    try:
        yield leave
    finally:
        leave()


def failure(progress: Progress, out: Path, checkpoint_s: float | None = None) -> failures.Failure:
    """The message. ``checkpoint_s``: the virtual time of the checkpoint from which the run can be resumed."""
    if progress.phase == states.LOADING:
        return failures.Failure("interrupted", "interrupted before the run began", exits.INTERRUPTED)
    if progress.phase == states.JUDGING:
        text = f"interrupted while the run was judged; its log is in {out}, without a verdict"
    elif progress.phase == states.STARTING:
        text = f"interrupted while the actors started; the run log as far as it went is in {out}"
    else:
        at = f"{progress.now_ns / 1e9:.3f} s of {progress.duration_ns / 1e9:g} s"
        text = f"interrupted at {at}; the run log as far as it went is in {out}"
    more: dict[str, Any] = {"run": str(out)}
    if checkpoint_s is not None:
        more["checkpoint_s"] = round(checkpoint_s, 3)
        command = f"{programs.name()} run --resume {shlex.quote(str(out))}"
        text += f"\n{command} goes on at {checkpoint_s:.0f} s, from a checkpoint that waits for {KEEP_S / 3600:.0f} h"
    return failures.Failure("interrupted", text, exits.INTERRUPTED, more=more)
