"""``kemu story``: what it prints, and how its filters answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kemu.doors.cli.main import main
from kemu.runtime.runlog.frames import FILE_NAME, Reader, Writer

SCENARIO = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: small}
spec:
  duration: 30s
  nodes: [{namePrefix: n, count: 2, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  manifests:
    - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}
  schedulers: [{name: default-scheduler}, {name: other}]
  workloads:
    - name: low
      arrivals: {count: 8}
      pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
    - name: high
      start: 10s
      arrivals: {count: 1}
      pods:
        spec:
          schedulerName: other
          priorityClassName: high
          containers: [{name: main, resources: {requests: {cpu: "4"}}}]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("story")
    (folder / "small.yaml").write_text(SCENARIO)
    assert main(["run", str(folder / "small.yaml"), "--out", str(folder / "run")]) == 0
    return folder / "run"


def told(capsys: pytest.CaptureFixture[str], run: Path, *words: str) -> str:
    capsys.readouterr()
    assert main(["story", str(run), *words]) == 0
    return "\n".join(line.rstrip() for line in capsys.readouterr().out.split("\n"))


def test_the_story_and_the_figures(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, run).splitlines()
    assert "10.006 s  scheduler other  high-0 is nominated to n2" in lines
    assert lines[-7:] == [
        "workload created bound unbound wait p50     p99     max overtaken preempted",
        "low            8     8       -  0.005 s 0.006 s 0.006 s         0         4",
        "high           1     1       -  0.025 s 0.025 s 0.025 s         0         -",
        "",
        "scheduler            attempts  unschedulable  bound  conflicts  preempted",
        "default-scheduler/0         8              -      8          -          -",
        "other/0                     2              1      1          -          4",
    ]


def test_filters(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, run, "--kind", "preempted", "--workload", "low", "--from", "10s", "--to", "20s")
    assert text.splitlines()[::2] == [
        f"{when} s  scheduler other  low-{number} is preempted on n2"
        for when, number in (("10.012", 1), ("10.012", 2), ("10.012", 4), ("10.020", 6))
    ] + [""]
    assert told(capsys, run, "--kind", "bound,running", "--pod", "high-0").count("high-0") == 2
    assert told(capsys, run, "--from", "29s", "--kind", "bound") == "nothing of that kind happened\n"


def test_as_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(told(capsys, run, "--json", "--kind", "preempted"))
    assert found["run"] == str(run)
    assert [line["pods"] for line in found["lines"]] == [[f"default/low-{number}"] for number in (1, 2, 4, 6)]
    assert {line["who"] for line in found["lines"]} == {"scheduler other"}
    assert found["left_out"] == {}
    assert list(found["workloads"]) == ["low", "high"]
    assert list(found["schedulers"]) == ["default-scheduler/0", "other/0"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--pod", "low-77"], "kemu: --pod: no pod low-77; did you mean low-7 or low-6 or low-5 or low-4?\n"),
        (["--to", "10"], "--to: '10' is not a duration; write 250ms, 90s or 1h30m\n"),
        (["--from", "2s", "--to", "1s"], "kemu: --from is later than --to\n"),
        (["--variant", "1"], "kemu: --variant 1: this is no run of a matrix\n"),
    ],
)
def test_mistakes(run: Path, words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["story", str(run), *words]) == 2
    assert capsys.readouterr().err.endswith(text)


def test_a_run_that_was_interrupted(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Reader(run / FILE_NAME) as reader:
        writer = Writer(tmp_path / FILE_NAME, reader.header)
        for event in reader:
            if event.time_ns <= 10_020_000_000:
                writer.append(*event)
        writer.close()
    lines = told(capsys, tmp_path, "--kind", "preempted").splitlines()
    assert lines[-2] == "the log ends at 10.019 s: the run was interrupted, or broke"
    assert json.loads(told(capsys, tmp_path, "--json"))["ended"] is False
    assert json.loads(told(capsys, run, "--json"))["ended"] is True
