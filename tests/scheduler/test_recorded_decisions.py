"""The scheduler decides as the real one did: every recorded case, by the code that runs in production."""

from __future__ import annotations

import pytest

from kemu.scheduler import cases
from tests.scheduler import recorded

pytestmark = pytest.mark.skipif(not recorded.ORACLE.is_dir(), reason="the recorded decisions are not at hand")


@pytest.mark.parametrize("family", recorded.DECISIONS)
def test_agrees_with_every_recorded_decision(family: str) -> None:
    wrong = {}
    for case, expected in recorded.entries("scheduler", family):
        found = recorded.differences(expected, cases.answer(case))
        if found:
            wrong[case["id"]] = found
    assert not wrong
