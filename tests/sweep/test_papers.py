"""What papers need: pictures of a given size as PDF, means in LaTeX, frames, the artefact, CITATION.cff."""

from __future__ import annotations

import hashlib
import importlib
import importlib.resources
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

import kemu
from kemu.doors.cli.main import main
from kemu.errors import KemuError
from kemu.lab.sweep.plots import pages

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = """
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {name: crowd}
spec:
  scenario:
    duration: 40s
    nodes: [{name: node-1, allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}]
    schedulers: [{name: default-scheduler}]
    workloads:
      - name: jobs
        arrivals: {poisson: {rate: 1/s}, until: 20s}
        pods: {spec: {restartPolicy: Never, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
        life: {runSeconds: 3}
  vary:
    workloads[0].arrivals.poisson.rate: [0.8/s, 1.6/s]
    schedulers[0].policy.queue: [fifo, priority]
  seeds: 2
  metrics: [waiting.max_s, pods_bound]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("papers") / "crowd"
    kemu.experiment(EXPERIMENT, out=out)
    return out


# Pictures -----------------------------------------------------------------------------------------------------------


def plot(folder: Path, out: Path, *options: str) -> int:
    return main(["plot", str(folder), *options, "--out", str(out), "--title", "", "--font-size", "8"])


@pytest.mark.thorough
def test_a_pdf_has_the_size_and_the_fonts_asked_for_and_the_same_bytes_in_each_process(
    folder: Path, tmp_path: Path
) -> None:
    wanted = ["waiting", "--format", "pdf", "--size", "84mmx60mm"]
    assert plot(folder, tmp_path / "a", *wanted) == 0
    script = "import sys; from kemu.doors.cli.main import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["plot", str(folder), *wanted, "--out", str(tmp_path / "b"), "--title", "", "--font-size", "8"]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, capture_output=True, timeout=120)
    made = (tmp_path / "a" / "waiting.pdf").read_bytes()
    assert hashlib.sha256(made).digest() == hashlib.sha256((tmp_path / "b" / "waiting.pdf").read_bytes()).digest()
    box = re.search(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", made)
    assert box is not None
    assert [float(side) / 72 * 25.4 for side in box.groups()] == pytest.approx([84, 60], abs=0.01)
    assert b"LiberationSans" in made
    assert b"Date" not in made


def test_names_axes_and_size_of_an_svg(folder: Path, tmp_path: Path) -> None:
    options = ["starvation", "--metric", "waiting.max_s", "--size", "100mm", "--log-x", "--log-y"]
    assert plot(folder, tmp_path, *options, "--name", "queue=fifo", "in order of arrival") == 0
    svg = (tmp_path / "starvation.svg").read_text()
    assert "in order of arrival" in svg
    assert "queue=priority" in svg
    assert "queue=fifo" not in svg
    assert re.search(r'<svg[^>]* width="283.465pt"', svg)
    assert "How waiting changes" not in svg


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--size", "240"], ""),
        (["--size", "84furlongs"], "is no size"),
        (["--size", "1mm"], "from half an inch"),
        (["--font", "No Such Font"], "has no such font"),
        (["--name", "nobody", "x"], "no text of these pictures; they have"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    options: list[str], said: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = plot(folder, tmp_path, "starvation", "--metric", "waiting.max_s", *options)
    assert code == (2 if said else 0)
    assert said in capsys.readouterr().err


def test_no_logarithm_of_nothing(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plot(folder, tmp_path, "starvation", "--metric", "preemptions", "--log-y") == 3
    assert "some figure is 0, for which a logarithmic axis has no place" in capsys.readouterr().out


def test_sizes() -> None:
    assert pages.size_of("1in") == pages.Size(72)
    assert pages.size_of("2.54cmx1in") == pages.Size(pytest.approx(72), 72)  # type: ignore[arg-type]
    assert pages.size_of("240x160") == pages.Size(240, 160)


# Tables -------------------------------------------------------------------------------------------------------------


def test_means_in_latex_and_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", str(folder), "--means", "--latex", "--name", "queue", r"\emph{Queue}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == r"\begin{tabular}{llrr}"
    assert lines[2] == r"rate & \emph{Queue} & waiting.max\_s & pods\_bound \\"
    assert re.fullmatch(r"0\.8/s & fifo & \$[\\a-z .0-9]+\$ \{\\footnotesize \$\[[^&]+\$\} & \$.*\$\} \\\\", lines[4])
    assert len(lines) == 4 + 4 + 2
    assert main(["results", str(folder), "--means", "pods_bound(priority=0)"]) == 2
    assert "is not told by priority" in capsys.readouterr().err
    assert main(["results", str(folder), "--means", "pods_bound", "--csv"]) == 0
    heads, first, *_ = capsys.readouterr().out.splitlines()
    assert heads.split(",")[:4] == ["rate", "queue", "pods_bound mean", "pods_bound low"]
    database = kemu.results(folder)
    (row,) = database.to_arrow(sql="SELECT avg(pods_bound) AS mean FROM runs WHERE variant_index = 0").to_pylist()
    assert float(first.split(",")[2]) == pytest.approx(row["mean"])


def test_a_query_in_latex(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", str(folder), "--sql", "SELECT '50 % & a_b' AS \"x_1\", 2 AS n", "--latex"]) == 0
    assert r"x\_1 & n \\" in (out := capsys.readouterr().out)
    assert r"50 \% \& a\_b & 2 \\" in out
    assert main(["results", str(folder), "--table", "runs", "--latex", "--name", "a", "b"]) == 2


# Frames -------------------------------------------------------------------------------------------------------------


def test_all_frames_have_the_same_rows(folder: Path) -> None:
    results = kemu.results(folder)
    arrow, pandas, polars = results.to_arrow("pods"), results.to_pandas("pods"), results.to_polars("pods")
    assert arrow.num_rows == len(pandas) == polars.height > 0
    assert arrow.column_names == list(pandas.columns) == polars.columns
    assert arrow["waited_s"].to_pylist() == polars["waited_s"].to_list()
    assert kemu.results(folder / "results.parquet").to_pandas().shape[0] == 8
    with pytest.raises(KemuError, match="there are runs, priorities, pods"):
        results.to_arrow("nothing")
    with pytest.raises(KemuError, match="one SELECT"):
        results.to_arrow(sql="DROP TABLE runs")


def test_what_is_missing_explains_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_module = importlib.import_module

    def without(name: str, package: str | None = None) -> object:
        if name == "polars":
            raise ModuleNotFoundError("No module named 'polars'", name="polars")
        return import_module(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(
        ModuleNotFoundError, match=r"to_polars needs the Python package polars: pip install 'kemu\[frames\]'"
    ):
        kemu.results(folder).to_polars()


# The artefact -------------------------------------------------------------------------------------------------------


def is_valid_cff(file: Path) -> bool:
    schema = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "citation-file-format.json"
    validator = jsonschema.validators.validator_for(found := json.loads(schema.read_text()))(found)
    return bool(validator.is_valid(yaml.safe_load(file.read_text())))


def test_an_artefact_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paper = tmp_path / "paper"
    assert main(["artefact", str(paper), "--title", 'A "new"\npolicy']) == 0
    files = {file.name for file in paper.iterdir()}
    assert files == {"README.md", "CITATION.cff", "experiment.yaml", "policy.py", "reproduce", "requirements.txt"}
    assert yaml.safe_load((paper / "CITATION.cff").read_text())["title"] == "Artefact: A 'new' policy"
    assert f"kemu=={kemu.__version__}" in (paper / "requirements.txt").read_text()
    assert is_valid_cff(paper / "CITATION.cff")
    assert main(["artefact", str(paper)]) == 2
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.nightly("it makes two artefacts from nothing: a minute of CPU")
def test_an_artefact_has_the_same_bytes_in_each_empty_folder(tmp_path: Path) -> None:
    sums = []
    for number in range(2):
        paper = tmp_path / str(number) / "paper"
        assert main(["artefact", str(paper)]) == 0
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PYTHONHASHSEED": str(number), "PATH": path}
        subprocess.run(["./reproduce"], cwd=paper, env=env, check=True, capture_output=True, timeout=900)
        sums.append((paper / "expected.sha256").read_text())
    assert sums[0] == sums[1]
    assert len(sums[0].splitlines()) == 4


def test_the_citation_is_valid_and_of_this_version(tmp_path: Path) -> None:
    file = ROOT / "CITATION.cff"
    assert is_valid_cff(file)
    assert yaml.safe_load(file.read_text())["version"] == kemu.__version__
    assert f"version = {{{kemu.__version__}}}" in (ROOT / "docs" / "citing.md").read_text()
    (tmp_path / "CITATION.cff").write_text(file.read_text().replace("authors:", "writers:"))
    assert not is_valid_cff(tmp_path / "CITATION.cff")
