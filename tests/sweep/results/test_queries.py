"""SQL over results reads the tables, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.lab.sweep.results import files, folders, queries, tables
from tests.sweep.results import runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    files.write(folder, runs.records(), runs.PATHS)
    return folder


@pytest.fixture
def database(folder: Path) -> queries.Database:
    return queries.Database(folders.of(folder))


def test_the_tables_have_the_columns_of_the_documentation(database: queries.Database) -> None:
    identity = [*tables.names(tables.IDENTITY), "queue", "replicas"]
    for name, columns in tables.NESTED.items():
        assert list(database.ask(f"SELECT * FROM {name}").names) == [*identity, *tables.names(columns)]
    wide = database.ask("SELECT * FROM runs").names
    assert set(wide) == {*identity, *tables.names((*tables.RUN, *tables.METRICS, *tables.COUNTERS))}
    assert len(set(wide)) == len(wide)


def test_tables_join_on_variant_and_seed(database: queries.Database) -> None:
    query = """
        SELECT queue, seed, runs.faults, pods.name, waited_s, attempts.refused_nodes['NodeResourcesFit']
        FROM runs JOIN pods USING (variant, seed, queue) JOIN attempts USING (variant, seed, uid, queue)
        WHERE censored ORDER BY ALL LIMIT 1
    """
    ((queue, seed, faults, name, waited_s, refused),) = database.ask(query).rows
    assert (queue, seed, faults, name, refused) == ("fifo", 1, 1, "starved", 1)
    assert 50 < waited_s < 60


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "file system operations are disabled"),
        ("SELECT * FROM 'results.parquet'", "file system operations are disabled"),
        ("SELECT * FROM glob('/*')", "file system operations are disabled"),
        ("SELECT * FROM 'https://example.com/x.parquet'", "disabled|Missing Extension|extension"),
        ("SELECT * FROM folder", "Table with name folder does not exist"),
        ("COPY runs TO 'x.csv'", "one SELECT"),
        ("ATTACH 'x.db'", "one SELECT"),
        ("INSTALL httpfs", "one SELECT"),
        ("SET enable_external_access = true", "one SELECT"),
        ("DROP VIEW runs", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("", "one SELECT"),
        ("SELEC 1", "syntax error"),
        ("SELECT nope FROM runs", 'Referenced column "nope" not found'),
        ("SELECT waiting.p99_s FROM runs", 'stand in double quotes: "waiting.p99_s"'),
        ("SELECT name::INTEGER FROM pods", "Could not convert"),
    ],
)
def test_what_is_refused(database: queries.Database, query: str, complaint: str) -> None:
    folder = Path("anything")  # a variable of this name is no table
    with pytest.raises(queries.QueryWrong, match=complaint):
        list(database.ask(query).rows)
    assert folder.name == "anything"


def test_two_columns_of_one_name(database: queries.Database) -> None:
    assert list(database.ask("SELECT seed, seed, 1 AS seed_1 FROM runs").names) == ["seed", "seed_1", "seed_1_1"]


@pytest.mark.parametrize("query", ["DESCRIBE pods", "SUMMARIZE runs", "EXPLAIN SELECT 1", "FROM pods SELECT uid"])
def test_what_else_reads(database: queries.Database, query: str) -> None:
    assert list(database.ask(query).rows)
