"""The progress of ``kemu sweep``: how many cells are done, their times, and the estimate for the others."""

from __future__ import annotations

import collections
import time
from types import TracebackType
from typing import Self, TextIO

from kemu.doors.cli import progress
from kemu.doors.cli.commands.figures import sweep_reports
from kemu.lab.exploration.processes.tasks import Executor
from kemu.lab.sweep.cells import FAILED, SATURATED, CellRecord
from kemu.lab.sweep.engine.sweeps import Sweep

PLAIN_EVERY_S = 60.0
"""Where lines cannot be rewritten, in a log of CI."""
ESTIMATE_EVERY_S = 1.0


class Progress:
    """A line that is rewritten on a terminal; elsewhere a line every minute."""

    def __init__(self, sweep: Sweep, executor: Executor, stream: TextIO, *, quiet: bool) -> None:
        self._sweep, self._executor, self._stream, self._quiet = sweep, executor, stream, quiet
        self._statuses = collections.Counter(record.status for record in sweep.records.values())
        self._cpu_s = sum(record.cpu_s for record in sweep.records.values())
        over = collections.Counter(index for index, _ in sweep.records)
        seeds, variants = len(sweep.experiment.seeds), len(sweep.experiment.variants)
        self._left = {index: seeds - over[index] for index in range(variants) if over[index] < seeds}
        """Cells of each variant."""
        self._estimated_s, self._estimate = 0.0, ""
        self._bar = progress.Bar(stream, lambda _: self.line(), plain_every_s=PLAIN_EVERY_S)

    def __enter__(self) -> Self:
        if not self._quiet:
            self._bar.start()
            if not self._stream.isatty():
                print(self._begin(), file=self._stream, flush=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.close()

    def _begin(self) -> str:
        experiment, found = self._sweep.experiment, self._sweep.found
        known = f", of which {found:,} are done already" if found else ""
        return f"{experiment.name}: {sweep_reports.size_text(experiment)}{known}"

    def take(self, record: CellRecord) -> None:
        """Count a finished cell."""
        index = record.cell.index
        self._statuses[record.status] += 1
        self._cpu_s += record.cpu_s
        left = {**self._left, index: self._left[index] - 1}
        self._left = {index: count for index, count in left.items() if count}  # the thread that draws has the other one

    def line(self) -> str:
        size, over = self._sweep.experiment.size, len(self._sweep.records)
        bar = ""
        if self._stream.isatty():
            filled = round(over / size * progress.WIDTH)
            bar = f"{'━' * filled}{'╌' * (progress.WIDTH - filled)} "
        now_s = time.monotonic()
        if now_s - self._estimated_s >= ESTIMATE_EVERY_S:
            self._estimated_s, self._estimate = now_s, self._left_text()
        # A narrow terminal cuts the end off.
        words = [f"{over:,} of {size:,} cells", *[self._estimate] * bool(self._estimate)]
        words.append(f"{self._executor.running:,} running")
        words += [f"{self._statuses[status]:,} {status}" for status in (FAILED, SATURATED) if self._statuses[status]]
        words.append(f"{progress.duration(self._cpu_s)} of CPU")
        return f"{self._sweep.experiment.name} {bar}{', '.join(words)}"

    def _left_text(self) -> str:
        found = self._sweep.needs.left_s(self._left, self._executor.running)
        if found is None or not self._left:
            return ""
        low, high = (progress.duration(seconds) for seconds in found)
        if low == high:
            return f"about {high} left"
        (least, unit), (most, other) = low.split(), high.split()
        return f"{least} to {most} {unit} left" if unit == other else f"{low} to {high} left"
