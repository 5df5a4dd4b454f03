"""The results of a sweep, of a run or of a matrix, wherever the user points.

A sweep has left its Parquet file. Of a run folder, and of those of a matrix, the run logs are folded into the same
tables.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from kemu.errors import KemuError
from kemu.lab.checks.history import History, windows
from kemu.lab.sweep.cells import DONE, Cell, CellRecord
from kemu.lab.sweep.results import files, journals, rows
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.frames import FILE_NAME as RUN_LOG
from kemu.runtime.runlog.frames import Reader


@dataclass(frozen=True)
class Source:
    """Where the tables can be read."""

    data: pa.Table | pyarrow.dataset.Dataset
    """As :mod:`files` writes them."""
    head: files.Head


def of(path: Path) -> Source:
    """The source in a folder, or a Parquet file itself. Raises KemuError."""
    file = path if path.is_file() else path / files.FILE_NAME
    if file.is_file():
        head = files.head_of(file)
        return Source(pyarrow.dataset.dataset(file, format="parquet"), head)
    if (path / folders.CELLS_FILE).is_file():
        raise KemuError(
            f"{path}: the sweep is not over, so there are no results yet; {sweep_command(path)} goes on with it"
        )
    found = folders.runs_in(path)
    if not (found[0] / RUN_LOG).is_file():
        raise KemuError(folders.not_a_run(path, f"{files.FILE_NAME} or {RUN_LOG}"))
    records = [record_of(folder, index) for index, folder in enumerate(found)]
    sink = pa.BufferOutputStream()
    files.write_to(sink, records, _paths(records))
    table = pq.read_table(pa.BufferReader(sink.getvalue()))
    return Source(table, files.Head(json.loads(table.schema.metadata[files.METADATA])["axes"], {}))


def sweep_command(folder: Path) -> str:
    """The command that goes on with the sweep of a folder, or judges it again."""
    begun = journals.begun_in(folder)
    file = Path(begun.get("experiment", ""))
    words = [
        "kemu",
        "sweep",
        folders.shown(file) if file.is_file() else folders.shown(folder / folders.EXPERIMENT_FILE),
    ]
    if "data" in begun:
        words += ["--data", folders.shown(Path(begun["data"]))]
    return shlex.join([*words, "--out", folders.shown(folder)])


def record_of(folder: Path, index: int = 0) -> CellRecord:
    """The one of a run folder. Raises KemuError where there is no verdict, RunLogError where the log is damaged."""
    verdict = folders.verdict_of(folder)
    history, attempts = History(), rows.Attempts()
    history.window = windows.of(verdict)
    with Reader(folder / RUN_LOG) as reader:
        for event in reader:
            history.feed(*event)
            attempts.take(*event)
    history.now_ns = max(history.now_ns, round(verdict["virtual_s"] * 1e9))
    cell = Cell(verdict.get("variant", {}), index, verdict["seed"])
    return CellRecord(cell, DONE, "", rows.of_run(verdict, history, attempts))


def _paths(records: Sequence[CellRecord]) -> list[str]:
    return list(dict.fromkeys(path for record in records for path in record.cell.variant))
