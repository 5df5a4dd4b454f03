"""Ctrl-C while a run goes on in this process: the log is closed, a sentence says how far it came, the process ends.

At once, whatever the run is busy with: to drop 50,000 actors one by one would take seconds. Only where kemu is the
program: a caller in Python gets KeyboardInterrupt.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from kemu.doors.cli import exits, failures
from kemu.lab.scenario.playing import progress as states
from kemu.lab.scenario.playing.progress import Progress

RETRY_S = 0.02
"""When the log is just being written."""


@contextlib.contextmanager
def answered(
    progress: Progress, out: Callable[[], Path], tidy: Callable[[], None], *, as_json: bool
) -> Iterator[Callable[[], None]]:
    """Within this, or until the function that it gives is called. ``out``: the run folder; ``tidy``: called when
    the log is closed, takes the progress bar away."""

    def answer(*_: object) -> None:
        writer = progress.writer
        if writer is not None and writer.is_busy:
            signal.setitimer(signal.ITIMER_REAL, RETRY_S)
            return
        if writer is not None:
            writer.close()
        tidy()
        code = failures.tell(failure(progress, out()), as_json=as_json)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

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


def failure(progress: Progress, out: Path) -> failures.Failure:
    """What is told."""
    if progress.phase == states.LOADING:
        return failures.Failure("interrupted", "interrupted before the run began", exits.INTERRUPTED)
    if progress.phase == states.JUDGING:
        text = f"interrupted while the run was judged; its log is in {out}, without a verdict"
    elif progress.phase == states.STARTING:
        text = f"interrupted while the actors started; the run log as far as it went is in {out}"
    else:
        at = f"{progress.now_ns / 1e9:.3f} s of {progress.duration_ns / 1e9:g} s"
        text = f"interrupted at {at}; the run log as far as it went is in {out}"
    return failures.Failure("interrupted", text, exits.INTERRUPTED, more={"run": str(out)})
