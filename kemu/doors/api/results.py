"""The tables of results as frames: of a sweep, a run, a matrix, or a Parquet file.

    pods = kemu.results("runs/queues").to_pandas("pods")
    waits = kemu.results(sweep).to_polars(sql="SELECT variant, waited_s FROM pods WHERE NOT censored")

Role: ``kemu results`` for programs, on :mod:`kemu.lab.sweep.results`; docs/results.md has the columns.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kemu.doors.api.runs import Run
from kemu.doors.api.sweeps import Sweep
from kemu.errors import KemuError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

TABLES = ("runs", "priorities", "pods", "attempts", "faults", "nodes")


def results(source: str | os.PathLike[str] | Sweep | Run) -> Results:
    """The results in a folder or a Parquet file, of a sweep, or of a run that left a folder (``out``).

    Raises KemuError where there are none, and ModuleNotFoundError without the extra ``sweep``.
    """
    if isinstance(source, Sweep):
        return Results(source.file, source)
    if isinstance(source, Run):
        if source.folder is None:
            raise KemuError("the run left no folder: kemu.run(…, out=FOLDER) leaves one")
        return Results(Path(source.folder))
    return Results(Path(os.fspath(source)))


class Results:
    """Tables; each method takes the name of one, or a query over all of them."""

    def __init__(self, path: Path, kept: object = None) -> None:
        """``kept``: what holds the file."""
        _need("pyarrow", "results", "sweep")
        _need("duckdb", "results", "sweep")
        from kemu.lab.sweep.results import folders, queries

        self._database = queries.Database(folders.of(path))
        self._kept = kept
        self._path = path

    def to_arrow(self, table: str = "runs", *, sql: str = "") -> pa.Table:
        """A ``pyarrow.Table``. ``sql``: one SELECT, in place of a whole table. Raises KemuError."""
        if not sql and table not in TABLES:
            raise KemuError(f"{table}: no table of that name; there are {', '.join(TABLES)}")
        return self._database.arrow(sql or f"SELECT * FROM {table}")

    def to_pandas(self, table: str = "runs", *, sql: str = "") -> pd.DataFrame:
        """The same as a ``pandas.DataFrame``."""
        _need("pandas", "to_pandas", "frames")
        frame: pd.DataFrame = self.to_arrow(table, sql=sql).to_pandas(maps_as_pydicts="strict")
        return frame

    def to_polars(self, table: str = "runs", *, sql: str = "") -> pl.DataFrame:
        """The same as a ``polars.DataFrame``."""
        found: Any = _need("polars", "to_polars", "frames")
        frame: pl.DataFrame = found.from_arrow(self.to_arrow(table, sql=sql))
        return frame

    def __repr__(self) -> str:
        rows = ", ".join(f"{self._database.count(table):,} {table}" for table in ("runs", "pods"))
        return f"<kemu.Results of {self._path}: {rows}>"


def _need(package: str, what: str, extra: str) -> object:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        text = f"{what} needs the Python package {package}: pip install 'kemu[{extra}]'"
        raise ModuleNotFoundError(text, name=package) from None


__all__ = ["Results", "results"]
