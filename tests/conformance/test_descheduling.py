"""Every recorded turn of the real descheduler's strategies is kemu's, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.emulated.descheduler import balances, clusters, evictions, policies, strategies, utilization
from kemu.lab.conformance import agreements, case_files, registry

DATA = Path(__file__).parent / "data" / "descheduler" / "descheduler.jsonl.gz"


def judged() -> agreements.Report:
    return agreements.judge(registry.kind("descheduler"), list(case_files.read(DATA)))


def test_every_case_agrees() -> None:
    report = judged()
    assert report.total >= 200
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_every_strategy_has_cases() -> None:
    asked = {case.question["plugin"] for case in case_files.read(DATA)}
    assert asked == {*policies.DESCHEDULE, *policies.BALANCE}


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        (clusters.Cluster, "fits", lambda self, pod, node: True),
        (evictions.Filter, "filter", lambda self, pod: True),
        (strategies, "by_priority", lambda pods: None),
        (balances, "_counts", lambda node, constraint, pod: True),
    ],
)
def test_a_mistake_in_a_rule_is_found(owner: object, name: str, other: object, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "by_priority":
        monkeypatch.setattr(utilization, name, other)
    monkeypatch.setattr(owner, name, other)
    assert judged().disagreements
