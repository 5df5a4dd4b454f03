"""What an attempt costs when schedulers race, counted: it must not grow unnoticed."""

from __future__ import annotations

import pytest

from kemu.emulated.objects.wire import shared_objects
from kemu.lab.bench.clusters import racing

MOST_CALLS, MOST_CHECKS = 753, 75
"""For each attempt, of pods on few nodes. A tenth of them is for the status that each loser of a race writes."""


def test_most_attempts_of_racing_schedulers_are_in_vain_and_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects.OBJECTS, "checks", False)  # they serialise
    found = racing.racing(nodes=10, pods=40, schedulers=8)
    assert found["attempts"] >= 4 * 40, "most replicas try each pod"
    assert found["attempts"] * 3 // 4 < found["refused"] < found["attempts"]
    assert found["calls_per_attempt"] < MOST_CALLS
    assert 0 < found["checks_per_attempt"] < MOST_CHECKS
