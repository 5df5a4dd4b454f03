"""Pods with ResourceClaims are decided about, and bound, as by the real plugin DynamicResources and its allocator."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from kemu.lab.conformance import agreements, case_files, registry
from kemu.lab.conformance.scheduler import devices

DATA = Path(__file__).parent / "data" / "devices"
FAMILIES = ("devices", "device-search")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_agrees(family: str) -> None:
    report = agreements.judge(registry.kind("devices"), case_files.read(DATA / f"{family}.jsonl.gz"))
    assert report.total >= 100
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_no_family_is_left_out() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")} == {*FAMILIES}


def test_allocations_and_writes_count() -> None:
    cases = case_files.read(DATA / "device-search.jsonl.gz")
    case = next(one for one in cases if any(plan.get("results") for plan in one.expect.get("allocations", {}).values()))
    answered = devices.answer(case.question)
    assert devices.agrees(case.expect, answered) == []
    for part in ("allocations", "bound"):
        wrong = copy.deepcopy(case.expect)
        del wrong[part]
        assert devices.agrees(wrong, answered), part
    other = copy.deepcopy(case.expect)
    plan = next(plan for plan in other["allocations"].values() if plan.get("results"))
    plan["results"][0]["devices"]["results"][0]["device"] += "-x"
    assert devices.agrees(other, answered)
