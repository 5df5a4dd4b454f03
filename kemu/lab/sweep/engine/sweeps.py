"""A sweep from beginning to end, or from where it was stopped.

    with Workers(jobs=2) as executor, Sweep(experiment, folder) as sweep:
        for record in sweep.go(executor):
            ...
        file = sweep.write()

The folder holds the journal, the experiment as it was written, its scenario, and the results. The same command goes on
with what the folder holds; when everything is done, it only judges again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from kemu.lab.exploration import branches
from kemu.lab.exploration.processes.tasks import Executor
from kemu.lab.sweep.cells import FAILED, CellRecord, CellRows
from kemu.lab.sweep.engine import cell_tasks, needs
from kemu.lab.sweep.engine.cell_tasks import CellSource, CellTask
from kemu.lab.sweep.experiments.experiments import SIM, Experiment
from kemu.lab.sweep.results import files, tables
from kemu.lab.sweep.results.journals import Journal, Key
from kemu.runtime.runlog import folders

_GRACE_S = 60.0
_BUSY = 4
"""How many times longer than its CPU time a cell may take, on a machine that is busy with other things."""


def limit_s(experiment: Experiment) -> float:
    """Real time in which a worker must answer: user code may wait for ever without an event."""
    return _GRACE_S + _BUSY * experiment.limits.cpu_s


class Sweep:
    """Sweep of one experiment in one folder."""

    def __init__(self, experiment: Experiment, folder: Path, *, force: bool = False) -> None:
        """``force``: replace what the folder holds. Raises KemuError for a folder with something else."""
        self.experiment = experiment
        self.folder = folder
        folders.check_replaced(folder, folders.Held("sweep", experiment.name), force=force)
        if force:
            folders.clear(folder)
        self._journal = Journal(folder, {**experiment.identity(), "tables": tables.fingerprint()}, _begun(experiment))
        self.records: dict[Key, CellRecord] = {}
        """Records of the cells of the experiment that are over, without their large tables."""
        known = (key for key in self._keys() if key in self._journal)
        for record in self._journal.records(known):
            self._take(record)
        self.found = len(self.records)
        """How many of them were over before."""
        self._source = CellSource.of(experiment)
        self.needs = needs.learned(self._source.scenario, self.records.values())
        """What cells need, as far as it is known by now."""
        self._passed_over: dict[Key, CellRecord] = {}
        """That had no machine. They are not journaled: there may be one the next time."""
        (folder / folders.EXPERIMENT_FILE).write_text(experiment.text, encoding="utf-8")
        (folder / folders.SCENARIO_FILE).write_text(experiment.scenario.to_yaml(), encoding="utf-8")

    def _keys(self) -> Iterator[Key]:
        return ((cell.index, cell.seed) for cell in self.experiment.cells())

    def _take(self, record: CellRecord) -> CellRecord:
        rows = None if record.rows is None else CellRows(record.rows.run)
        kept = replace(record, rows=rows)
        self.records[record.cell.index, record.cell.seed] = kept
        return kept

    def go(self, executor: Executor) -> Iterator[CellRecord]:
        """Carry out the cells that are not over yet; each record when it is in the journal. Those without a machine are
        not in it: the same command tries them again."""
        left = [cell for cell in self.experiment.cells() if (cell.index, cell.seed) not in self.records]
        is_large = len(self.experiment.scenario.nodes) >= branches.LEAST_NODES and len(self.experiment.overrides) > 1
        tasks = [CellTask(number, cell, cell.seed if is_large else None) for number, cell in enumerate(left)]
        # Of a real control plane most is in other processes, and there is one at a time.
        placed_by = self.needs if self.experiment.runtime == SIM else None
        for result in executor.run(self._source, tasks, in_order=False, needs=placed_by):
            self.needs.learn(result.record)
            if result.is_over:
                self._journal.append(result.record)
            else:
                self._passed_over[result.record.cell.index, result.record.cell.seed] = result.record
            yield self._take(result.record)

    @property
    def is_over(self) -> bool:
        return len(self.records) == self.experiment.size

    def ordered(self) -> list[CellRecord]:
        """The records, by variant and seed."""
        return [self.records[key] for key in sorted(self.records)]

    def write(self) -> Path:
        """The results of all cells that are over, in one file."""
        about = _about(self.experiment)
        kept = self._journal.records(key for key in self.records if key not in self._passed_over)
        records = itertools.chain(kept, self._passed_over.values())
        return files.write(self.folder, records, self.experiment.varied, about)

    def crash(self) -> Path | None:
        """The report of a bug of kemu's that a cell has come upon: that cell is carried out once more."""
        cells = (one.cell for one in self.ordered() if one.status == FAILED and one.detail.startswith(cell_tasks.BUG))
        cell, file = next(cells, None), self.folder / folders.CRASH_FILE
        return None if cell is None else cell_tasks.report_crash(self._source, cell, file)

    def close(self) -> None:
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _begun(experiment: Experiment) -> dict[str, str]:
    """Where the user has its files, so that kemu can say how to go on with the sweep: a scenario is looked for beside
    the experiment, and not beside its copy."""
    stated = {"experiment": experiment.file, "data": experiment.data_dir}
    return {name: str(Path(path).absolute()) for name, path in stated.items() if path and Path(path).exists()}


def _about(experiment: Experiment) -> dict[str, Any]:
    """What the results say of themselves."""
    return {
        "name": experiment.name,
        "description": experiment.description,
        "scenario": experiment.scenario.name,
        "metrics": [metric.text for metric in experiment.metrics],
        "claims": [{"id": each.id, "says": each.says, "confidence": each.confidence} for each in experiment.claims],
    }
