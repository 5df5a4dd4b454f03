"""Run folders of earlier versions stay readable: ``old/`` has a few small ones of each, by its commit or version.

75fa48ba   before the first release: a race, a run that fails, a matrix, a run in real time, a cluster of ``kemu up``, a
           sweep, a search
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import kemu
from kemu.doors.cli.main import main

OLD = Path(__file__).parent / "old"
RUNS = {"race": "holds", "fails": "fails", "matrix": "fails", "wall": "holds", "upped": "unknown"}


@pytest.fixture(scope="module", params=[each.name.partition(".")[0] for each in sorted(OLD.glob("*.tar.xz"))])
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp(request.param)
    with tarfile.open(OLD / f"{request.param}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.11.4 on
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize("run", RUNS)
def test_its_story_is_told(old: Path, run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["story", str(old / run)]) == 0
    assert "is bound to node-" in capsys.readouterr().out


@pytest.mark.parametrize("run", RUNS)
def test_it_is_shown_as_a_page(old: Path, run: str, tmp_path: Path) -> None:
    assert main(["report", str(old / run), "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "node-1" in page
    assert page.rstrip().endswith("</html>")


def test_a_pod_is_traced(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(old / "race"), "blue-pod"]) == 0
    assert "OutOfcpu" in capsys.readouterr().out


def test_its_failure_is_explained(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(old / "fails")]) == 1
    assert "The scheduler found no node for small" in capsys.readouterr().out


def test_its_figures_are_printed(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["csv", str(old / "race")]) == 0
    assert "blue-pod" in capsys.readouterr().out
    assert main(["results", str(old / "matrix"), "--sql", "select count(*) as n from pods", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [{"n": 4}]


def test_python_reads_its_log(old: Path) -> None:
    assert [event.kind for event in kemu.events(old / "race", "kubelet.admit")] == ["kubelet.admit"] * 2


def test_a_replay_differs_and_says_why(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(old / "race")]) == 1
    said = capsys.readouterr().out
    assert "event 11 differs" in said
    assert "It was recorded by kemu 0.1.0, before its release" in said


def test_the_tables_of_a_sweep_are_read(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", str(old / "swept"), "--sql", "select count(*) as n from runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [{"n": 4}]


def test_a_sweep_that_is_kept_otherwise_is_no_page_and_says_so(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(old / "swept")]) == 2
    said = capsys.readouterr().err
    assert "its rows were kept by another version of kemu" in said
    assert "kemu results and kemu plot read its tables" in said


def test_what_a_search_found_fails_again(old: Path, tmp_path: Path) -> None:
    found = old / "found" / "failures" / "small.bound-1" / "scenario.yaml"
    assert main(["run", str(found), "--out", str(tmp_path / "again")]) == 1
