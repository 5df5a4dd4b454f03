"""Every recorded decision of the real kubelet is kemu's decision too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.conformance import cases, registry, reports

DATA = Path(__file__).parent / "data" / "kubelet"

FAMILIES = [
    "qos",
    "critical",
    "thresholds",
    "config-defaults",
    "admission",
    "critical-preemption",
    "eviction-rank",
    "eviction-manager",
    "eviction-loop",
    "taint-eviction",
    "node-failure",
]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_agrees(family: str) -> None:
    report = reports.judge(registry.kind("kubelet"), cases.read(DATA / f"{family}.jsonl.gz"))
    assert report.total >= 100
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_no_family_is_left_out() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")} == {*FAMILIES}
