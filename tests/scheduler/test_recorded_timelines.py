"""The scheduler does over time what the real one did: queue, backoff, events, nominations, background preemption."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler import recorded, timelines

pytestmark = pytest.mark.skipif(not recorded.ORACLE.is_dir(), reason="the recorded timelines are not at hand")

TRIES = 12
"""Where a choice between equals decides, several seeds are tried until one agrees."""


@pytest.mark.parametrize("family", recorded.TIMELINES)
def test_agrees_with_every_recorded_timeline(family: str) -> None:
    wrong: dict[str, Any] = {}
    for case, expected in recorded.entries("timeline", family):
        outcomes = expected["outcomes"]
        for seed in range(TRIES if len(outcomes) > 1 else 1):
            ours = timelines.play(case, seed)
            found = [timelines.difference(ours, outcome) for outcome in outcomes]
            if "" in found:
                wrong.pop(case["id"], None)
                messages = timelines.messages_differ(ours, outcomes[found.index("")])
                if messages:
                    wrong[case["id"]] = messages
                break
            wrong[case["id"]] = found[0]
    assert not wrong


def test_a_rule_switched_off_disagrees() -> None:
    """The comparison can fail: with a FIFO queue, or without nominations, the recorded timelines do not come out."""
    for policy in ({"queue": "fifo"}, {"nomination": False}, {"clearLowerNominations": "always"}):
        agreed = [
            any(not timelines.difference(timelines.play(case, policy=policy), one) for one in expected["outcomes"])
            for case, expected in recorded.entries("timeline", "seeds")
        ]
        assert not all(agreed), policy
