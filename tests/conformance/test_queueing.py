"""Every recorded search for victims of Kueue's scheduler is kemu's, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.emulated.queues import preemption
from kemu.lab.conformance import agreements, case_files, registry

DATA = Path(__file__).parent / "data" / "queues" / "queues.jsonl.gz"


def judged() -> agreements.Report:
    return agreements.judge(registry.kind("queues"), list(case_files.read(DATA)))


def test_every_case_agrees() -> None:
    report = judged()
    assert report.total >= 80
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_both_ways_have_cases() -> None:
    asked = [case.question["fairSharing"] for case in case_files.read(DATA)]
    assert min(asked.count(True), asked.count(False)) >= 30


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        (preemption, "_is_above_threshold", lambda attempt, other: False),
        (preemption, "_is_valid", lambda attempt, found, borrowing: True),
        (preemption._Attempt, "targets", lambda self, chosen, borrowing: preemption._restore(chosen) or chosen),
        (preemption, "_second_rule", lambda attempt, candidates, chosen: False),
    ],
)
def test_a_mistake_in_a_rule_is_found(owner: object, name: str, other: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, other)
    assert judged().disagreements
