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
]

NOT_YET: dict[str, str] = {
    "node-failure": "being built",
}
"""Families that are recorded and not yet required, and why."""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_agrees(family: str) -> None:
    report = reports.judge(registry.kind("kubelet"), cases.read(DATA / f"{family}.jsonl.gz"))
    assert report.total >= 100
    assert not report.disagreements, report.disagreements[0]


@pytest.mark.parametrize("family", NOT_YET)
def test_not_yet(family: str) -> None:
    pytest.skip(NOT_YET[family])


def test_no_family_is_left_out() -> None:
    recorded = {path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")}
    assert recorded == {*FAMILIES, *NOT_YET}
    assert not {*FAMILIES} & {*NOT_YET}
