"""The Parquet file of results: a row for each run, with the other tables as nested columns.

The same cells give the same bytes, in whatever order they ended: rows stand in the order of variant and seed, and
nothing in the file tells of the time or the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kemu.sweep.cells import CellRecord

FILE_NAME = "results.parquet"


def write(folder: Path, records: Iterable[CellRecord], paths: Sequence[str] = ()) -> Path:
    """``paths``: those that vary, in the order of the experiment. Returns the file."""
    raise NotImplementedError
