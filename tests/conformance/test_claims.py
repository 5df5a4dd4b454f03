"""Claims for devices live and pods are evicted by taints of devices as with the real controllers."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from kemu.lab.conformance import agreements, case_files, registry
from kemu.lab.conformance.controllers import devices

DATA = Path(__file__).parent / "data" / "claims"
FAMILIES = ("claims", "device-taints")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_agrees(family: str) -> None:
    report = agreements.judge(registry.kind("claims"), case_files.read(DATA / f"{family}.jsonl.gz"))
    assert report.total >= 100
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_no_family_is_left_out() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")} == {*FAMILIES}


def test_every_part_of_an_outcome_counts() -> None:
    case = next(iter(case_files.read(DATA / "device-taints.jsonl.gz")))
    answered = devices.answer(case.question)
    assert devices.agrees(case.expect, answered) == []
    for place in ("events", "moments", "deletions"):
        wrong = copy.deepcopy(case.expect)
        wrong[place] = [*wrong[place], "another"]
        assert devices.agrees(wrong, answered), place
