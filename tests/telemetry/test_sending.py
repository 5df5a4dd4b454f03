"""The options of ``kemu run`` and ``kemu trace`` that send traces."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.doors.cli.main import main
from kemu.lab.telemetry import runs, waterfall
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from tests.telemetry.collectors import Collector, collector

SCENARIO = "races/two-schedulers-one-node"


@pytest.fixture
def here() -> Iterator[Collector]:
    with collector() as found:
        yield found


def sent(here: Collector, *words: str) -> dict[tuple[str, str], bytes]:
    """What arrives of a command, byte for byte."""
    here.spans = {}
    assert main([*words, "--otlp", here.endpoint]) == 0
    return {key: span.SerializeToString(deterministic=True) for key, span in here.spans.items()}


def test_a_run_sends_the_same_bytes_each_time_and_another_run_others(
    tmp_path: Path, here: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    first = sent(here, "run", SCENARIO, "--json", "--out", str(tmp_path / "a"))
    assert first == sent(here, "run", SCENARIO, "--json", "--out", str(tmp_path / "b"))
    assert first == sent(here, "trace", str(tmp_path / "a"))
    capsys.readouterr()
    others = [
        sent(here, "run", SCENARIO, "--json", "--out", str(tmp_path / "c"), *words)
        for words in (["--seed", "9"], ["--set", "duration=59s"], ["--run-id", "mine"])
    ]
    assert "kemu.run=mine" in capsys.readouterr().err
    others.append(sent(here, "trace", str(tmp_path / "a"), "--run-id", "mine"))
    traces = [{trace for trace, _ in spans} for spans in (first, *others)]
    assert sum(map(len, traces)) == len(set().union(*traces)) == 5 * 2, "two pods in each run"


def test_variants_are_runs_of_their_own(tmp_path: Path, here: Collector) -> None:
    scenario = tmp_path / "matrix.yaml"
    scenario.write_text(
        "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: m}\nspec:\n"
        "  nodes: [{name: n, allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}]\n"
        "  matrix: {duration: [10s, 20s]}\n"
        "  manifests: [{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main}]}}]\n"
    )
    spans = sent(here, "run", str(scenario), "--json", "--out", str(tmp_path / "run"))
    assert len({trace for trace, _ in spans}) == 2
    told = [waterfall.load(tmp_path / "run" / f"variant-{number}", "p").uid for number in (0, 1)]
    assert told[0] == told[1]
    with Reader(tmp_path / "run" / "variant-1" / FILE_NAME) as reader:
        assert runs.of_header(reader.header).variant == "duration=20s"


def test_a_run_that_ends_now(tmp_path: Path, here: Collector, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    before = time.time_ns()
    sent(here, "run", SCENARIO, "--json", "--out", out, "--at", "now")
    assert before <= max(span.end_time_unix_nano for span in here.spans.values()) <= time.time_ns()
    capsys.readouterr()
    sent(here, "trace", out, "red-pod", "--at", "2026-01-31T12:00:00Z")
    begun_s = 1_769_860_800
    assert {round(span.start_time_unix_nano / 1e9) - begun_s for span in here.spans.values()} <= set(range(60))
    found = re.search(r"trace ([0-9a-f]{32})$", capsys.readouterr().out.strip())
    assert found is not None
    of_trace = [span for (trace, _), span in here.spans.items() if trace == found[1]]
    assert {each.value.string_value for span in of_trace for each in span.attributes if each.key == "k8s.pod.name"} == {
        "red-pod"
    }


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--at", "now"], "--at needs --otlp"),
        (["--api-calls"], "--api-calls needs --otlp"),
        (["--otlp", "x:1", "--at", "yesterday"], "write now, or a time as 2026-01-31T12:00:00Z"),
        (["--otlp", "x:1", "--at", "1960-01-01"], "lies before 1970"),
        (["--otlp", "x:1", "--run-id", "a b"], "up to 63 letters"),
        (["--otlp", "x:1", "--at", "now", "--runtime", "ray"], "in real time traces are sent while the run lasts"),
    ],
)
def test_what_makes_no_sense_is_told_before_the_run(
    words: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", SCENARIO, "--out", str(tmp_path / "run"), *words]) == 2
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
