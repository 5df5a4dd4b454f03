"""How far a run is: a line on a terminal, nothing elsewhere (the result is enough there). On Ray, below it, how busy
the cells are.

A thread draws it, so that it moves whatever the run is busy with. Neighbour: :mod:`kemu.lab.scenario.playing.progress`,
what the run says of itself.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TextIO

from kemu.doors.cli import pipes
from kemu.lab.scenario.playing import progress as states
from kemu.lab.scenario.playing.progress import Progress
from kemu.runtime import loads

WIDTH = 24
EVERY_S = 0.1
FIRST_S = 0.3
"""A run that is over by then shows nothing."""
WINDOW_S = 5.0
"""How long ago the pace is measured from."""
LEAST_S = 2.0
"""Sooner no estimate is made."""


class Bar:
    """Lines that are rewritten, from :meth:`start` to :meth:`close`."""

    def __init__(self, stream: TextIO, text: Callable[[float], str], *, plain_every_s: float = 0.0) -> None:
        """``text``: what it says so many seconds after its start. ``plain_every_s``: where there is no terminal, it is
        printed so often, a line each; 0: never."""
        self._plain_every_s = plain_every_s
        self._stream = stream
        self._text = text
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._drawn = 0
        """Lines."""
        self._thread: threading.Thread | None = None
        self._begun = time.monotonic()

    def start(self) -> None:
        """Show the bar, unless it is shown already."""
        draw = self._draw if self._stream.isatty() else self._print if self._plain_every_s else None
        if self._thread is None and draw is not None:
            self._over.clear()
            self._thread = threading.Thread(target=draw, name="kemu progress", daemon=True)
            self._thread.start()

    def aside(self, say: Callable[[], object]) -> None:
        """Print something else, with the bar removed meanwhile."""
        with self._lock:
            self._clear()
            say()

    def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._over.set()
            thread.join()
            self._clear()

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Within this the bar is removed, and has no thread."""
        was_shown = self._thread is not None
        self.close()
        yield
        if was_shown:
            self.start()

    def _draw(self) -> None:
        wait_s = FIRST_S
        while not self._over.wait(wait_s):
            wait_s = EVERY_S
            columns = _columns(self._stream)
            lines = [line[: columns - 1] for line in self._text(time.monotonic() - self._begun).split("\n")]
            with self._lock:
                pipes.steer(self._stream, self._back())
                self._stream.write("\n".join(lines))
                self._stream.flush()
                self._drawn = len(lines)

    def _print(self) -> None:
        while not self._over.wait(self._plain_every_s):
            print(self._text(time.monotonic() - self._begun), file=self._stream, flush=True)

    def _back(self) -> str:
        """Move to the beginning of the bar, and remove it."""
        return f"\x1b[{self._drawn - 1}A\r\x1b[J" if self._drawn > 1 else "\r\x1b[2K"

    def _clear(self) -> None:
        if self._drawn:
            pipes.steer(self._stream, self._back())
            self._stream.flush()
            self._drawn = 0


def _columns(stream: TextIO) -> int:
    """Columns of the terminal of this stream; the standard output may be a file."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


_USUAL_COLUMNS = 80


@contextlib.contextmanager
def waiting(stream: TextIO, what: str) -> Iterator[None]:
    """Show a line with the current task and its duration."""
    bar = Bar(stream, lambda elapsed_s: f"{what}, {elapsed_s:.0f} s")
    bar.start()
    try:
        yield
    finally:
        bar.close()


class Line:
    """The text of a run's progress bar. ``elapsed_s``: real seconds since the command began."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._phase = ("", 0)
        self._begun_s = 0.0
        self._samples: deque[tuple[float, tuple[float, float]]] = deque()
        """When, and how far: as a share of each of two measures."""

    def restart(self) -> None:
        """Measure the pace again, after a pause of the run."""
        self._phase = ("", 0)

    def text(self, progress: Progress, elapsed_s: float) -> str:
        phase = (progress.phase, progress.variant)
        if phase != self._phase:
            self._phase, self._begun_s = phase, elapsed_s
            self._samples.clear()
        variant = f" {progress.variant}/{progress.variants}" if progress.variants else ""
        title = f"{self._title}{variant}"
        if progress.phase == states.LOADING:
            return f"{title}: reading the scenario, {elapsed_s:.0f} s"
        if progress.phase == states.STARTING and not progress.actors:
            return f"{title}: preparing the cluster, {elapsed_s:.0f} s"
        if progress.phase == states.STARTING:
            share = progress.set_up
            what = f"starting {progress.actors} actors, {share:.0%} done"
            left = self._left(elapsed_s, share, 0.0)
        elif progress.phase == states.JUDGING:
            share = progress.read_bytes / progress.log_bytes if progress.log_bytes else 0.0
            what = f"judging, {progress.read_bytes >> 20} of {progress.log_bytes >> 20} MiB of the log"
            left = self._left(elapsed_s, share, 0.0)
        else:
            share = progress.now_ns / progress.duration_ns if progress.duration_ns else 0.0
            pods = progress.pods
            time_s, end_s = progress.now_ns / 1e9, progress.duration_ns / 1e9
            what = f"{time_s:.1f} of {end_s:g} s, {progress.bound} of {pods} pods bound"
            left = self._left(elapsed_s, share, progress.bound / pods if pods else 0.0)
        filled = round(min(share, 1.0) * WIDTH)
        bar = "━" * filled + "╌" * (WIDTH - filled)
        line = f"{title} {bar} {what}, {left or f'{elapsed_s - self._begun_s:.0f} s so far'}"
        return "\n".join([line, *_cells(progress.loads)]) if progress.phase == states.RUNNING else line

    def _left(self, now_s: float, *shares: float) -> str:
        """At the pace of the last seconds. A run ends with its time, or sooner when nothing can happen any more: the
        measure that is done first counts."""
        samples = self._samples
        samples.append((now_s, (shares[0], shares[1])))
        while len(samples) > 2 and samples[1][0] <= now_s - WINDOW_S:
            samples.popleft()
        before_s, before = samples[0]
        if now_s - self._begun_s < LEAST_S or now_s == before_s:
            return ""
        paces = [(share - was) / (now_s - before_s) for share, was in zip(shares, before, strict=True)]
        estimates = [(1 - share) / pace for share, pace in zip(shares, paces, strict=True) if pace > 0 and share < 1]
        return f"about {duration(min(estimates))} left" if estimates else ""


CELLS = 6
"""The most cells that are shown: the busiest ones."""


def _cells(found: Mapping[str, loads.Load]) -> list[str]:
    """How busy they were in the last second."""
    shown = [load for load in loads.by_pressure(found) if load.cpu or load.memory_bytes]
    if not shown:
        return []
    size = max(len(load.name) for load in shown[:CELLS])
    lines = [
        f"  {load.name:{size}}  {load.cpu:>4.0%}  {load.calls_per_s:>7,.0f}  {load.late_s * 1000:>4,.0f} ms"
        f"  {load.memory_bytes / 2**20:>3,.0f} MiB  {load.log_lag_s:>8.2f} s"
        for load in shown[:CELLS]
    ]
    lines.insert(0, f"  {'cell':{size}}  core  calls/s    queue   memory  log behind")
    if len(shown) > CELLS:
        lines.append(f"  and {len(shown) - CELLS} more, less busy")
    return lines


def duration(seconds: float) -> str:
    """A duration, rounded like an estimate."""
    if seconds < 99.5:
        return f"{max(round(seconds), 1)} s"
    if seconds < 5970:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"
