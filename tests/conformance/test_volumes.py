"""Volumes are bound as the real plugin VolumeBinding and the real PersistentVolume controller bind them."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from kemu.lab.conformance import agreements, case_files, registry
from kemu.lab.conformance.volumes import questions

DATA = Path(__file__).parent / "data" / "volumes"
FAMILIES = ("volume-binding", "pv-controller")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_agrees(family: str) -> None:
    report = agreements.judge(registry.kind("volumes"), case_files.read(DATA / f"{family}.jsonl.gz"))
    assert report.total >= 80
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_no_family_is_left_out() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")} == {*FAMILIES}


def test_every_part_of_an_outcome_counts() -> None:
    case = next(iter(case_files.read(DATA / "pv-controller.jsonl.gz")))
    answered = questions.answer(case.question)
    assert questions.agrees(case.expect, answered) == []
    for place in ("events", "moments"):
        wrong = copy.deepcopy(case.expect)
        for outcome in wrong["outcomes"]:
            outcome[place] = outcome[place][1:]
        assert questions.agrees(wrong, answered), place
