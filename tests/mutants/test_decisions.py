"""The event that decides that a bug shows itself is the one that the bug's file names.

Here a few that are cheap, with fewer futures, by day one of them; ``scripts/nightly`` measures all.
"""

from __future__ import annotations

import json

import pytest

from tests.mutants import all_parts, decisions

BY_DAY = "taints-are-ignored"
CHEAP = (
    "a-terminating-pod-frees-its-room-at-once",
    "preemption-ignores-budgets",
    "a-deleted-pod-wakes-nobody",
    "recovery-forgets-a-live-pod",
)


def test_twenty_bugs_name_the_event_that_decides() -> None:
    table = json.loads(decisions.FILE.read_text())
    assert list(table) == list(decisions.named())
    right = [name for name, found in table.items() if decisions.is_near(found["found"], found["named"])]
    assert len(right) >= 20


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [BY_DAY, *(pytest.param(name, marks=pytest.mark.nightly("five seconds each")) for name in CHEAP)],
)
def test_it_is_found(name: str) -> None:
    planted = all_parts.MUTANTS[name]
    found = decisions.measure(planted, decisions.first_seed(planted), instants=8, suffixes=16)
    assert found.is_right, found.curve.decision
