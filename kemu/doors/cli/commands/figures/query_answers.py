"""How ``kemu results`` prints the answer to a query: as text, CSV, JSON or LaTeX.

Neighbour: :mod:`results`, the command.
"""

from __future__ import annotations

import csv
import decimal
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kemu.doors.cli.commands.figures import mean_tables
from kemu.emulated.objects.plain import Json
from kemu.lab.sweep.results.queries import Answer
from kemu.lab.tell import layouts

MOST_ROWS = 200
"""On a terminal."""
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL")
"""What the types of columns begin with that are shown at the right."""


def write(answer: Answer, form: str, file: TextIO) -> None:
    """``form``: ``json``, ``csv``, ``latex`` or ``text``."""
    if form == "json":
        rows = [{name: _plain(value) for name, value in zip(answer.names, row, strict=True)} for row in answer.rows]
        file.write(json.dumps({"columns": list(answer.names), "rows": rows}, ensure_ascii=False) + "\n")
    elif form == "csv":
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(answer.names)
        writer.writerows([_cell(value) for value in row] for row in answer.rows)
    elif form == "latex":
        columns = "".join("r" if kind.startswith(_NUMBERS) else "l" for kind in answer.types)
        lines = [[mean_tables.escaped(_shown(value)) for value in row] for row in answer.rows]
        file.write(mean_tables.tabular([mean_tables.escaped(name) for name in answer.names], lines, columns))
    else:
        _show(answer, file)


def _plain(value: object) -> Any:
    """The value for JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _cell(value: Json) -> Json:
    """The value for CSV: empty if unknown, lists as JSON."""
    plain = _plain(value)
    if isinstance(plain, bool):
        return str(plain).lower()
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list) else plain


# As text ------------------------------------------------------------------------------------------------------------


def _show(answer: Answer, file: TextIO) -> None:
    console = Console(file=file)
    most = MOST_ROWS if console.is_terminal else None
    rows = [[_shown(value) for value in row] for row in itertools.islice(answer.rows, most)]
    rest = sum(1 for _ in answer.rows)
    sizes = [max(cell_len(name), *(cell_len(row[at]) for row in rows), 0) for at, name in enumerate(answer.names)]
    if console.is_terminal and sum(sizes) + layouts.GAP * (len(sizes) - 1) > console.width:
        layouts.show(console, _as_records(answer.names, rows, console.width))
    else:
        layouts.show(console, _side_by_side(answer, rows, sizes))
    if rest:
        note = f"{rest:,} more rows; --csv prints all, LIMIT and WHERE choose"
        layouts.show(console, layouts.flowing(Text(note, "dim"), console.width, 0))


def _side_by_side(answer: Answer, rows: Sequence[Sequence[str]], sizes: Sequence[int]) -> Iterator[Text]:
    gap = " " * layouts.GAP
    numbers = [kind.startswith(_NUMBERS) for kind in answer.types]
    for number, row in enumerate([answer.names, *rows]):
        cells = [
            " " * (size - cell_len(cell)) + cell if right else cell + " " * (size - cell_len(cell))
            for cell, size, right in zip(row, sizes, numbers, strict=True)
        ]
        yield Text(gap.join(cells), "dim" if number == 0 else "")


def _as_records(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[Text]:
    """Each row as a block with a line for each column, if the columns do not fit side by side."""
    lead = min(max(map(cell_len, names)), max(width // 2, 1))
    for number, row in enumerate(rows):
        if number:
            yield Text()
        for name, cell in zip(names, row, strict=True):
            yield from layouts.hanging(Text(name.ljust(lead) + " " * layouts.GAP, "dim"), Text(cell), width)


def _shown(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | decimal.Decimal):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_shown(each)}" for key, each in value.items())
    return str(value)
