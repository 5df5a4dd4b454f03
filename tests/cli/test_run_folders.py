"""Run folders: nothing of the user's is lost, nothing of an older run is left, what is damaged is called so."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import msgpack
import pytest

from kemu.cli.main import main
from kemu.runlog.frames import MAGIC
from kemu.scenario import catalog

RACE = "races/two-schedulers-one-node"
NODES = "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: small}\nspec:\n  nodes: [{name: n1}]\n"


@pytest.mark.parametrize("name", ["scenario.yaml", "run.kemu", "verdict.json", "cells"])
def test_a_file_that_no_run_has_made_is_not_replaced(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("mine")
    assert main(["run", RACE, "--out", str(tmp_path)]) == 2
    assert f"{tmp_path} is no run folder, but has a {name}" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_run_does_not_replace_its_own_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(NODES + "  # a comment\n")
    assert main(["run", str(scenario), "--out", str(tmp_path)]) == 2
    assert "the run would replace its own scenario" in capsys.readouterr().err
    assert scenario.read_text().endswith("# a comment\n")
    run = tmp_path / "run"
    assert main(["run", str(scenario), "--out", str(run)]) == 0
    assert main(["run", str(run / "scenario.yaml"), "--out", str(run)]) == 2


def test_of_an_older_run_nothing_is_left_but_what_the_user_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    single, double, triple = (tmp_path / f"{name}.yaml" for name in ("single", "double", "triple"))
    single.write_text(NODES)
    double.write_text(NODES + "  matrix: {seed: [1, 2]}\n")
    triple.write_text(NODES + "  matrix: {seed: [1, 2, 3]}\n")
    out = tmp_path / "out"
    for scenario, runs in ((single, 1), (triple, 3), (double, 2), (single, 1)):
        assert main(["run", str(scenario), "--out", str(out)]) == 0
        (out / "notes.txt").write_text("mine")
        capsys.readouterr()
        assert main(["replay", str(out)]) == 0
        assert capsys.readouterr().out.count(": the same") == runs
        assert (out / "run.kemu").exists() == (runs == 1)
    assert sorted(path.name for path in out.iterdir()) == [
        "notes.txt",
        "run.kemu",
        "run.kemu.index",
        "scenario.yaml",
        "verdict.json",
    ]


def test_a_folder_of_another_name_is_no_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "variant-x").mkdir()
    for command in (["replay", str(tmp_path)], ["trace", str(tmp_path), "a"]):
        assert main(command) == 2
        assert "not a run folder" in capsys.readouterr().err


def frame(payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload


HEADER = frame(msgpack.packb({"runtime": "sim"}))
LOGS = {
    "another format": (b"kemu-run-log/9\n" + HEADER, "a run log of format 9"),
    "no header": (MAGIC, "ends within a frame"),
    "a header that is a list": (MAGIC + frame(msgpack.packb([1, 2])), "the header is damaged"),
    "a header that is nothing": (MAGIC + frame(b"\xc1"), "the header is damaged"),
    "an event of two parts": (MAGIC + HEADER + frame(msgpack.packb([1, "a"])), "not an event"),
    "an event that is nothing": (MAGIC + HEADER + frame(b"\xc1"), "not an event"),
    "an event of another version": (
        MAGIC + HEADER + frame(msgpack.packb([1, "store", "store.txn", {}])),
        "cannot be understood",
    ),
    "an event with other data": (
        MAGIC + HEADER + frame(msgpack.packb([1, "scheduler/a/0", "sched.attempt", "text"])),
        "cannot be understood",
    ),
}


@pytest.mark.parametrize(("log", "what"), LOGS.values(), ids=list(LOGS))
def test_a_log_that_cannot_be_read_is_called_so(
    log: bytes, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scenario.yaml").write_text(catalog.find(RACE).read_text())
    (tmp_path / "run.kemu").write_bytes(log)
    assert main(["trace", str(tmp_path), "a"]) == 2
    error = capsys.readouterr().err
    assert str(tmp_path / "run.kemu") in error
    assert what in error
    assert main(["replay", str(tmp_path)]) in (1, 2)
