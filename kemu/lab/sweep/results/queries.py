"""SQL over results, in DuckDB without files, network and extensions.

    database = queries.Database(folders.of(path))
    answer = database.ask('SELECT variant, avg("waiting.p99_s") FROM runs GROUP BY variant')

A query reads the tables and nothing else, so a query of another person is safe to run. One thread computes it: sums of
numbers do not depend on who was first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kemu.errors import KemuError
from kemu.lab.sweep.results import tables
from kemu.lab.sweep.results.folders import Source

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_FILE = "_file"
_ROWS_AT_ONCE = 10_000
_READS = ("SELECT", "EXPLAIN")
"""Statements that are carried out; DESCRIBE, SHOW and SUMMARIZE are of the first sort."""
_SETTINGS = (
    "threads=1",
    "temp_directory=''",
    "python_enable_replacements=false",
    "autoinstall_known_extensions=false",
    "autoload_known_extensions=false",
    "enable_external_access=false",
    "lock_configuration=true",
)


class QueryWrong(KemuError):
    """What the database says of a query that it cannot carry out."""


@dataclass(frozen=True)
class Answer:
    names: Sequence[str]
    types: Sequence[str]
    """As DuckDB names them: ``VARCHAR``, ``DOUBLE``, ``BIGINT`` …"""
    rows: Iterator[tuple[Any, ...]]


class Database:
    """The tables of :mod:`tables` as views, of one source."""

    def __init__(self, source: Source) -> None:
        import duckdb  # which complains at the end of a process where a module still holds it

        self._error: type[Exception] = duckdb.Error
        self._connection = duckdb.connect(":memory:")
        self._connection.register(_FILE, source.data)
        for name in ("runs", *tables.NESTED):
            self._connection.execute(f"CREATE VIEW {name} AS {_view(name, list(source.head.axes.values()))}")
        for setting in _SETTINGS:
            self._connection.execute(f"SET {setting}")

    def _checked(self, query: str) -> duckdb.Statement:
        """Raises QueryWrong."""
        statements = self._connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type.name not in _READS:
            raise QueryWrong("a query is one SELECT (or DESCRIBE, SUMMARIZE, EXPLAIN) statement")
        return statements[0]

    def arrow(self, query: str) -> pa.Table:
        """The whole answer. Raises QueryWrong."""
        try:
            self._checked(query)
            table: pa.Table = self._connection.sql(query).to_arrow_table()
        except self._error as error:
            raise QueryWrong(_explained(str(error))) from None
        return table.rename_columns(_unique(table.column_names))

    def ask(self, query: str) -> Answer:
        """Raises QueryWrong."""
        try:
            found = self._connection.execute(self._checked(query))
        except self._error as error:
            raise QueryWrong(_explained(str(error))) from None
        columns = found.description or []
        names = _unique([str(column[0]) for column in columns])
        return Answer(names, [str(column[1]) for column in columns], self._fetched())

    def count(self, table: str) -> int:
        """The number of rows."""
        return int(next(self.ask(f"SELECT count(*) FROM {table}").rows)[0])

    def _fetched(self) -> Iterator[tuple[Any, ...]]:
        try:
            while rows := self._connection.fetchmany(_ROWS_AT_ONCE):
                yield from rows
        except self._error as error:
            raise QueryWrong(_explained(str(error))) from None


def _view(name: str, axes: Sequence[str]) -> str:
    nested = ", ".join(tables.NESTED)
    if name == "runs":
        counted = ", ".join(f"len({each}) AS {each}" for each in tables.NESTED if each in tables.names(tables.COUNTERS))
        return f"SELECT * EXCLUDE ({nested}), {counted} FROM {_FILE}"
    identity = ", ".join(_quoted(each) for each in (*tables.names(tables.IDENTITY), *axes))
    return f"SELECT each.* EXCLUDE (one), one.* FROM (SELECT {identity}, unnest({name}) AS one FROM {_FILE}) AS each"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unique(names: Sequence[str]) -> list[str]:
    """``a``, ``a_1`` where two columns have one name."""
    found: list[str] = []
    for name in names:
        number, unique = 0, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found


def _explained(error: str) -> str:
    families = {column.name.partition(".")[0] for column in (*tables.METRICS, *tables.COUNTERS)} | {"refused"}
    if any(f'Referenced table "{family}" not found' in error for family in families):
        return f'{error}\nnames with a point stand in double quotes: "waiting.p99_s"'
    return error
