"""Every recorded sync of the real workload controllers is kemu's, too; so are whole rollouts, with all their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.conformance import agreements, case_files, registry
from kemu.controllers.workloads.deployments import revisions, rollouts
from tests.conformance.generators import workloads as generated

DATA = Path(__file__).parent / "data" / "workloads"


def judged(family: str, number: int | None = None) -> agreements.Report:
    cases = list(case_files.read(DATA / f"{family}.jsonl.gz"))[:number]
    return agreements.judge(registry.kind("workloads"), cases)


@pytest.mark.parametrize("family", generated.FAMILIES)
def test_every_case_agrees(family: str) -> None:
    report = judged(family)
    assert report.total >= 30
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_no_family_is_left_out() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")} == {*generated.FAMILIES}


# Planted bugs -------------------------------------------------------------------------------------------------------


def test_a_surge_that_is_rounded_down_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rounded_up = rollouts.scaling.scaled
    monkeypatch.setattr(rollouts.scaling, "scaled", lambda value, total, up: rounded_up(value, total, up=False))
    assert judged("deployments", 60).disagreements


def test_pods_that_may_be_missing_rounded_up_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rounded_down = rollouts.scaling.scaled
    monkeypatch.setattr(rollouts.scaling, "scaled", lambda value, total, up: rounded_down(value, total, up=True))
    assert judged("deployments").disagreements


def test_a_template_that_is_compared_with_its_hash_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions, "identity", lambda template: template.SerializeToString(deterministic=True))
    assert judged("deployments", 20).disagreements
