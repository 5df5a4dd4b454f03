"""A sweep from beginning to end, or from where it was stopped.

    with Workers(jobs=2) as executor, Sweep(experiment, folder) as sweep:
        for record in sweep.go(executor):
            ...
        results = sweep.write()

The folder holds the journal, the experiment as it was written, and, once the sweep is over, the results. The same
command goes on with what the folder holds; when everything is done, it only judges again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

from kemu.exploration.processes.tasks import Executor
from kemu.sweep.cells import Cell, CellRecord, CellRows
from kemu.sweep.engine.cell_tasks import CellSource, CellTask
from kemu.sweep.engine.journals import Journal
from kemu.sweep.experiments.experiments import Experiment
from kemu.sweep.results import files

EXPERIMENT_FILE = "experiment.yaml"
NO_SIGN_OF_LIFE_S = 60.0
"""Of real time beyond that of the CPU limit, several times over, after which a cell is given up: user code may wait
for ever without an event."""


def limit_s(experiment: Experiment) -> float:
    """Of real time, in which a worker must answer, on a machine that is busy with other things."""
    return NO_SIGN_OF_LIFE_S + 4 * experiment.limits.cpu_s


class Sweep:
    """Of one experiment in one folder."""

    def __init__(self, experiment: Experiment, folder: Path, *, force: bool = False) -> None:
        """``force``: replace whatever sweep the folder holds. Raises KemuError for a folder with another sweep."""
        self.experiment = experiment
        self.folder = folder
        if force:
            clear(folder)
        self._journal = Journal(folder, experiment.identity())
        self.records: dict[Cell | tuple[int, int], CellRecord] = {}
        """Of the cells of the experiment that are over, by variant and seed, without their large tables."""
        wanted = {(cell.index, cell.seed) for cell in experiment.cells()}
        for record in self._journal.records():
            if (record.cell.index, record.cell.seed) in wanted:
                self._take(record)
        self.found = len(self.records)
        """How many cells an earlier sweep had done."""
        shutil.copyfile(experiment.file, folder / EXPERIMENT_FILE)

    def _take(self, record: CellRecord) -> CellRecord:
        rows = None if record.rows is None else CellRows(record.rows.run)
        kept = replace(record, rows=rows)
        self.records[(record.cell.index, record.cell.seed)] = kept
        return kept

    def go(self, executor: Executor) -> Iterator[CellRecord]:
        """Carry out the cells that are not done yet; each record when it is in the journal."""
        left = [cell for cell in self.experiment.cells() if (cell.index, cell.seed) not in self.records]
        tasks = [CellTask(number, cell) for number, cell in enumerate(left)]
        for result in executor.run(CellSource.of(self.experiment), tasks, in_order=False):
            self._journal.append(result.record)
            yield self._take(result.record)

    @property
    def is_over(self) -> bool:
        return len(self.records) == self.experiment.size

    def write(self) -> Path:
        """The results of all cells that are over, in one file."""
        keys = iter((cell.index, cell.seed) for cell in self.experiment.cells())
        known = (key for key in keys if key in self._journal)
        return files.write(self.folder, self._journal.records(known), self.experiment.varied)

    def close(self) -> None:
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def clear(folder: Path) -> None:
    """Remove what a sweep has left there, and nothing else."""
