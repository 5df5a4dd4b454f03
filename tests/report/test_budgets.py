"""A disruption budget that is violated is told in the story and in the traces."""

from __future__ import annotations

from pathlib import Path

import pytest

import kemu
from kemu.lab.checks.history import History
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.telemetry import builder
from kemu.lab.tell import stories
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from tests.checks.test_ledgers import SCENARIO


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> runner.RunResult:
    out: Path = tmp_path_factory.mktemp("storm")
    return runner.run(loader.loads(SCENARIO), runner.Options(out=out))


def told(history: History, limit: int = 0) -> list[str]:
    return [line.what for line in stories.tell(history, limit).lines if "preempted" in line.what]


def test_each_preemption_beyond_a_budget_says_so(result: runner.RunResult) -> None:
    assert told(result.history) == [
        "web-1 is preempted on node-2",
        "web-2 is preempted on node-2, beyond the budget web, which keeps 2 of 3 pods",
        "web-3 is preempted on node-1, beyond the budget web, which keeps 1 of 3 pods",
    ]


def test_and_so_does_the_line_for_all_of_them(result: runner.RunResult) -> None:
    (line,) = told(result.history, 8)
    assert line == (
        "web-1, web-2 and web-3 are preempted on node-2 and node-1, 2 of them beyond the budget web, "
        "which keeps 1 of 3 pods"
    )


def test_or_that_it_is_all() -> None:
    history = kemu.run(SCENARIO.replace("minAvailable: 3", "minAvailable: 4")).history
    (line,) = told(history, 8)
    assert line == (
        "web-2, web-1 and web-3 are preempted on node-2 and node-1, all of them beyond the budget web, "
        "which keeps 1 of 4 pods"
    )


def test_a_trace_says_how_many_victims_a_budget_cannot_spare(result: runner.RunResult) -> None:
    with Reader(result.folder / FILE_NAME) as reader:
        spans = [span for part in builder.SpanBuilder().of_log(reader) for span in part if span.name == "preemption"]
    assert [(span.attributes["kemu.victims.budget_violations"], span.attributes["kemu.reason"]) for span in spans] == [
        (0, "makes room on node-2 by preempting default/web-1"),
        (1, "makes room on node-2 by preempting default/web-2, beyond a disruption budget"),
        (1, "makes room on node-1 by preempting default/web-3, beyond a disruption budget"),
    ]
