"""``kemu results``: of a run, of a matrix, of a file; as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import pytest

from kemu.doors.cli import exits, main
from kemu.doors.cli.commands.figures import results
from kemu.lab.sweep.results import files, rows, tables
from tests.sweep.results import runs

MATRIX = runs.SCENARIO + '  matrix: {seed: 1..2, "schedulers[0].policy.queue": [fifo, priority]}\n'


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("matrix")
    (folder / "a.yaml").write_text(MATRIX.replace("nodes: [", "schedulers: [{name: default-scheduler}]\n  nodes: ["))
    assert main.main(["run", str(folder / "a.yaml"), "--out", str(folder / "run"), "--json"]) == exits.HOLDS
    return folder / "run"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = exits.HOLDS) -> str:
    capsys.readouterr()
    assert main.main(["results", *arguments]) == code
    return capsys.readouterr().out


def test_of_a_matrix(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT seed, queue, verdict, digest FROM runs ORDER BY variant_index"
    found = json.loads(printed(capsys, str(matrix), "--sql", query, "--json"))
    assert found["columns"] == ["seed", "queue", "verdict", "digest"]
    verdicts = [json.loads((matrix / f"variant-{n}" / "verdict.json").read_text()) for n in range(4)]
    assert [(row["seed"], row["queue"], row["digest"]) for row in found["rows"]] == [
        (each["seed"], each["variant"]["schedulers[0].policy.queue"], each["digest"]) for each in verdicts
    ]


def test_of_a_run_it_is_what_the_run_kept(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = list(csv.DictReader(io.StringIO(printed(capsys, str(matrix / "variant-0"), "--table", "pods", "--csv"))))
    kept = rows.nested(runs.execution()[1])["pods"]
    assert [row["name"] for row in found] == kept["name"]
    assert [row["censored"] for row in found] == ["", "false", "false", "true"]
    assert [float(row["created_s"]) for row in found] == kept["created_s"]


def test_of_a_file_that_was_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = files.write(tmp_path, runs.records(), runs.PATHS).rename(tmp_path / "mine.parquet")
    text = printed(capsys, str(file), "--sql", "SELECT status, count(*) AS runs FROM runs GROUP BY status ORDER BY 1")
    assert text.splitlines() == ["status  runs", "done       3", "failed     1"]


def test_without_a_query_it_tells_what_is_there(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, str(matrix)).splitlines()
    assert [line.split() for line in lines[1:4]] == [["runs", "4"], ["priorities", "8"], ["pods", "16"]]
    assert tuple(results.TABLES) == ("runs", *tables.NESTED)


def test_out_writes_a_file(matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "faults.csv"
    assert printed(capsys, str(matrix), "--table", "faults", "--csv", "--out", str(out)) == ""
    first = next(csv.DictReader(io.StringIO(out.read_text())))
    assert (first["kind"], json.loads(first["hits"])) == ("delay", ["apiserver/0 → kubelet/node-1"])


def test_mistakes_end_with_exit_code_2(matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["results", str(matrix), "--sql", "SELECT waited FROM pods"]) == exits.INPUT
    told = capsys.readouterr().err
    assert told.startswith("kemu: --sql: Binder Error")
    assert "waited_s" in told
    wrong = json.loads(printed(capsys, str(tmp_path), "--json", code=exits.INPUT))
    assert "has no results.parquet or run.kemu" in wrong["message"]
    assert main.main(["results", str(matrix), "--table", "pods", "--out", str(tmp_path / "no" / "file")]) == exits.INPUT


def test_a_sweep_that_is_not_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cells.kemu").write_bytes(b"")
    told = json.loads(printed(capsys, str(tmp_path), "--json", code=exits.INPUT))["message"]
    assert "the sweep is not over" in told
    assert f"kemu sweep {tmp_path}/experiment.yaml --out {tmp_path} goes on with it" in told


def test_the_command_that_goes_on_finds_a_scenario_that_stands_beside_the_experiment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "my files"
    home.mkdir()
    (home / "scenario.yaml").write_text(runs.SCENARIO)
    head = "apiVersion: kemu.dev/v1\nkind: Experiment\n"
    (home / "e.yaml").write_text(f"{head}metadata: {{name: e}}\nspec: {{scenario: scenario.yaml, seeds: 2}}\n")
    monkeypatch.chdir(tmp_path)
    out = Path("out")
    assert main.main(["sweep", "my files/e.yaml", "--out", "out", "--jobs", "1", "--json"]) == exits.HOLDS
    (out / "results.parquet").unlink()
    told = json.loads(printed(capsys, "out", "--json", code=exits.INPUT))["message"]
    command = told.partition("; kemu ")[2].partition(" goes on with it")[0]
    assert command == "sweep 'my files/e.yaml' --out out"
    assert main.main([*shlex.split(command), "--jobs", "1", "--json"]) == exits.HOLDS
    assert (out / "results.parquet").is_file()
    assert main.main(["report", "out"]) == exits.HOLDS


def test_many_columns_become_a_block_for_each_row_on_a_terminal(
    matrix: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    text = printed(capsys, str(matrix), "--table", "pods")
    assert max(map(len, text.splitlines())) <= 60
    assert "waited_s" in text
