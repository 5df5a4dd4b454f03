"""The Parquet file of results: a row for each run, with the other tables as nested columns.

The same cells give the same bytes, in whatever order they ended: rows stand in the order of variant and seed, settings
of the writer are fixed, and nothing in the file tells of the time or the machine.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kemu.errors import KemuError
from kemu.lab.scenario.playing import runner
from kemu.lab.sweep.cells import Cell, CellRecord, CellRows, Json
from kemu.lab.sweep.results import rows, tables
from kemu.lab.sweep.results.tables import Column
from kemu.runtime.runlog import folders

FILE_NAME = folders.TABLES_FILE
FORMAT = "kemu-results/1"
METADATA = b"kemu"
"""The key of the file's metadata under which :class:`Head` stands, as JSON."""
_RUNS_IN_GROUP = 32
"""So many runs make a row group: they are held in memory at once."""

_TYPES: Mapping[str, pa.DataType] = {
    tables.TEXT: pa.string(),
    tables.TEXTS: pa.list_(pa.string()),
    tables.INTEGER: pa.int64(),
    tables.NUMBER: pa.float64(),
    tables.BOOLEAN: pa.bool_(),
    tables.COUNTS: pa.map_(pa.string(), pa.int64()),
    tables.NUMBERS: pa.map_(pa.string(), pa.float64()),
}


@dataclass(frozen=True)
class Head:
    """What a file says of all of its runs."""

    axes: Mapping[str, str]
    """Path that varies → name of its column."""
    about: Mapping[str, Json]
    """What the experiment says of itself."""


@dataclass(frozen=True)
class Results:
    head: Head
    records: Sequence[CellRecord]
    """In the order of variant and seed, without the tables below ``runs``."""


# Writing ------------------------------------------------------------------------------------------------------------


def write(
    folder: Path, records: Iterable[CellRecord], paths: Sequence[str] = (), about: Mapping[str, Json] | None = None
) -> Path:
    """``paths``: those that vary, in the order of the experiment. Returns the file."""
    file = folder / FILE_NAME
    beside = file.with_suffix(".tmp")
    write_to(beside, records, paths, about)
    os.replace(beside, file)
    return file


def write_to(
    file: Path | pa.BufferOutputStream,
    records: Iterable[CellRecord],
    paths: Sequence[str] = (),
    about: Mapping[str, Json] | None = None,
) -> None:
    """As :func:`write`, to a file of any name or into memory."""
    ordered = sorted(records, key=lambda record: (record.cell.index, record.cell.seed))
    axes = tables.axis_columns(paths)
    columns = _columns(ordered, axes)
    head = {"format": FORMAT, "axes": axes, "about": dict(about or {})}
    fields = [pa.field(column.name, _TYPES[column.type]) for column in columns]
    fields += [pa.field(name, pa.list_(pa.struct(_fields(nested)))) for name, nested in tables.NESTED.items()]
    schema = pa.schema(fields, {METADATA: json.dumps(head, ensure_ascii=False).encode()})
    with pq.ParquetWriter(file, schema, compression="zstd", compression_level=3, version="2.6") as writer:
        for group in _groups(ordered):
            writer.write_table(_table(group, schema, columns, axes))


def _columns(records: Sequence[CellRecord], axes: Mapping[str, str]) -> list[Column]:
    """Those of ``runs``."""
    refused = {name for record in records if record.rows for name in record.rows.run if name.startswith(tables.REFUSED)}
    values = {path: [record.cell.variant.get(path) for record in records] for path in axes}
    return [
        *tables.IDENTITY,
        *(Column(name, _type(values[path]), "") for path, name in axes.items()),
        *tables.RUN,
        *tables.METRICS,
        *(column for column in tables.COUNTERS if column.name not in tables.NESTED),
        *(Column(name, tables.INTEGER, "") for name in sorted(refused)),
    ]


def _type(values: Iterable[Json]) -> str:
    """That all of them have; text otherwise."""
    found = {type(value) for value in values if value is not None}
    if found == {bool}:
        return tables.BOOLEAN
    if found == {int}:
        return tables.INTEGER
    return tables.NUMBER if found and found <= {int, float} else tables.TEXT


def _fields(columns: Sequence[Column]) -> list[pa.Field[Any]]:
    return [pa.field(column.name, _TYPES[column.type]) for column in columns]


def _groups(records: Sequence[CellRecord]) -> Iterator[Sequence[CellRecord]]:
    for first in range(0, max(len(records), 1), _RUNS_IN_GROUP):
        yield records[first : first + _RUNS_IN_GROUP]


def _table(
    records: Sequence[CellRecord], schema: pa.Schema, columns: Sequence[Column], axes: Mapping[str, str]
) -> pa.Table:
    lines = [_line(record, columns, axes) for record in records]
    arrays = [_array([line[column.name] for line in lines], column) for column in columns]
    parts = [rows.nested(record.rows) if record.rows is not None else {} for record in records]
    for name, nested in tables.NESTED.items():
        arrays.append(_nested_array([part.get(name) for part in parts], nested))
    return pa.Table.from_arrays(arrays, schema=schema)


def _line(record: CellRecord, columns: Sequence[Column], axes: Mapping[str, str]) -> dict[str, Any]:
    cell, run = record.cell, record.rows.run if record.rows is not None else {}
    line = {
        "variant": runner.variant_name(cell.variant),
        "variant_index": cell.index,
        "seed": cell.seed,
        **{name: cell.variant.get(path) for path, name in axes.items()},
        "status": record.status,
        "detail": record.detail,
        "variant_json": json.dumps(dict(cell.variant), ensure_ascii=False),
    }
    # A run with figures was never refused anything for a reason that it does not name.
    missing = {column.name: 0 if run and column.name.startswith(tables.REFUSED) else None for column in columns}
    return {**missing, **run, **line}


def _array(values: Sequence[Any], column: Column) -> pa.Array[Any]:
    if column.type == tables.TEXT:
        values = [value if value is None or isinstance(value, str) else runner.plain(value) for value in values]
    return pa.array(values, _TYPES[column.type])


def _nested_array(parts: Sequence[rows.Columns | None], columns: Sequence[Column]) -> pa.Array[Any]:
    """A list of structs for each run."""
    first = columns[0].name
    lengths = [len(part[first]) if part is not None else 0 for part in parts]
    offsets = pa.array(itertools.accumulate(lengths, initial=0), pa.int32())
    arrays = [
        pa.array([value for part in parts if part is not None for value in part[column.name]], _TYPES[column.type])
        for column in columns
    ]
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(arrays, fields=_fields(columns)))


# Reading ------------------------------------------------------------------------------------------------------------


def read(file: Path) -> Results:
    """The runs and the figures of their priorities. Raises KemuError for a file that is none of ours."""
    head = head_of(file)
    found = pq.read_table(file, columns=[name for name in pq.read_schema(file).names if name not in _LARGE])
    return Results(head, [_record(row) for row in found.to_pylist()])


_LARGE = ("pods", "attempts", "nodes")


def head_of(file: Path) -> Head:
    """Raises KemuError for a file that is none of ours."""
    try:
        stated = json.loads((pq.read_schema(file).metadata or {})[METADATA])
    except FileNotFoundError:
        raise KemuError(f"{file}: no such file") from None
    except (pa.ArrowInvalid, LookupError, ValueError):
        raise KemuError(f"{file}: is not a file of results, or is damaged") from None
    if stated["format"] != FORMAT:
        raise KemuError(f"{file}: has the format {stated['format']}; this version of kemu reads {FORMAT}")
    return Head(stated["axes"], stated["about"])


def _record(row: dict[str, Any]) -> CellRecord:
    cell = Cell(json.loads(row.pop("variant_json")), row.pop("variant_index"), row.pop("seed"))
    status, detail = row.pop("status"), row.pop("detail")
    row["faults"] = len(row["faults"])
    for each in (row, *row["priorities"]):
        each["upper_bounds"] = dict(each["upper_bounds"] or ())
    return CellRecord(cell, status, detail, CellRows(row) if row["digest"] is not None else None)
