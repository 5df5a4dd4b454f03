"""The process of a worker: reads batches of tasks from its standard input, and writes each record when it has it.

Started by :mod:`kemu.lab.exploration.workers`. Messages are pickles behind their length. What user code prints goes to
standard error.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from typing import Any

from kemu.errors import KemuError
from kemu.lab.exploration.processes import forks, pipes
from kemu.lab.exploration.processes.tasks import SLOW, SourceT, Task

OUT_OF_MEMORY = b"out of memory"
"""In the place of a record."""


def main() -> None:
    # Of a Ctrl-C, which reaches all processes of a terminal, only the campaign knows what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    collector = Collector()
    forks.allow(answers.fileno())
    sources: dict[int, Any] = {}
    pipes.send(answers, "ready")
    while (message := pipes.receive(requests)) is not None:
        batch, key, source, tasks = message
        if source is not None:
            sources[key] = source
        for task in tasks:
            answer = one(sources[key], task)
            try:
                pipes.send(answers, (batch, task.number, answer))
            except BrokenPipeError:
                os._exit(1)  # the process that asked is dead
            if answer == OUT_OF_MEMORY:
                os._exit(1)
            collector.after_a_run()


def one(source: SourceT, task: Task[SourceT, Any]) -> Any:
    """The record; a text if it cannot be carried out; OUT_OF_MEMORY, after which the process must not be used."""
    try:
        return task.carry_out(source)
    except MemoryError:
        return OUT_OF_MEMORY
    except KemuError as error:
        return str(error)
    except Exception:
        return traceback.format_exc()


class _TooLong(KeyboardInterrupt):
    """The time is over. What is derived from it goes through the tasks of a run, which take any other exception."""


def one_within(limit_s: float, source: SourceT, task: Task[SourceT, Any]) -> Any:
    """The same, where the process cannot be ended from outside without losing the runs before; only in a main
    thread."""

    def alarm(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, limit_s, 1.0)
    try:
        answer = one(source, task)
    except _TooLong:
        answer = task.given_up(SLOW, limit_s)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return answer


class Collector:
    """Collects garbage between runs, not during them.

    A run leaves parts of its cluster behind in cycles. Collected at once, their memory serves the next run, and there
    is little to look at: what the first run has imported and cached lives as long as the worker, and is frozen; what
    later ones have cached is older than the cycles of the next run, and is looked at now and then.
    """

    ALL_EVERY = 64
    """Runs."""

    def __init__(self) -> None:
        gc.disable()
        self._runs = 0
        self._collections = 0
        """Of the process, when the last run was over."""

    def after_a_run(self) -> None:
        # A run that collects by itself, as long ones do, makes what it leaves behind older.
        is_young = self._runs % self.ALL_EVERY and _collections() == self._collections
        gc.collect(0 if is_young else 2)
        if not self._runs:
            gc.freeze()
        self._runs += 1
        self._collections = _collections()


def _collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


if __name__ == "__main__":
    main()
