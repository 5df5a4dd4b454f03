"""The three questions of docs/traces.md, answered by Perfetto's own trace processor and by the run log."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import kemu
from kemu.doors.cli import main as cli
from kemu.runtime.runlog.frames import Reader
from tests.telemetry import trace_processor

ROOT = Path(__file__).parents[2]
QUESTIONS = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "traces.md").read_text(), re.DOTALL)
S = 10**9


@pytest.mark.nightly("it starts a browser")
def test_three_questions_in_sql(tmp_path: Path) -> None:
    assert len(QUESTIONS) == 3
    out, file = tmp_path / "run", tmp_path / "run.pftrace"
    kemu.run(str(ROOT / "tests" / "telemetry" / "metrics" / "cluster.yaml"), out=out)
    assert cli.main(["trace", str(out), "--perfetto", str(file)]) == 0
    with trace_processor.opened(file) as processor:
        waits, nodes, attempts = map(processor.ask, QUESTIONS)
        assert processor.ask("select name from stats where severity = 'error' and value > 0") == []
    with Reader(out / "run.kemu") as reader:
        events = list(reader)
    # The two that no node takes waited from 20 s until the end.
    assert {pod for pod, _ in waits[:2]} == {"too-big", "gated"}
    assert all(wait == pytest.approx(160, abs=0.1) for _, wait in waits[:2])
    admitted = Counter(data["node"] for _, _, kind, data in events if kind == "kubelet.admit" and data["ok"])
    assert {node: pods for node, pods, _ in nodes} == {f"node {node}": pods for node, pods in admitted.items()}
    tried = [(data["result"], time - data["start"]) for time, _, kind, data in events if kind == "sched.attempt"]
    for result in ("scheduled", "unschedulable"):
        took = [each for one, each in tried if one == result]
        (row,) = (each for each in attempts if each[0] == result)
        assert row[1:] == [len(took), pytest.approx(sum(took) / len(took) / 1e6), pytest.approx(max(took) / 1e6)]
