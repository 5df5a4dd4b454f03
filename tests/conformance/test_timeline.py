"""The scheduler does over time what the real one did: queue, backoff, events, nominations, background preemption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.conformance import cases, timeline, timelines

DATA = Path(__file__).parent / "data" / "timeline"
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))


def test_all_families_are_here() -> None:
    assert {"seeds", "backoff", "priority", "nominated", "mixed"} <= {*FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_every_recorded_timeline(family: str) -> None:
    wrong: dict[str, Any] = {}
    for case in cases.read(DATA / f"{family}.jsonl.gz"):
        answer = timeline.answer(case.question)
        found = timeline.agrees(case.expect, answer)
        if not found:
            equal = next(one for one in case.expect["outcomes"] if not timeline.difference(answer, one))
            message = timeline.messages_differ(answer, equal)
            found = [message] if message else []
        if found:
            wrong[case.id] = found
    assert not wrong


@pytest.mark.parametrize("policy", [{"queue": "fifo"}, {"nomination": False}, {"clearLowerNominations": "always"}])
def test_a_rule_switched_off_disagrees(policy: dict[str, Any]) -> None:
    """The comparison can fail: with a FIFO queue, or without nominations, the recorded timelines do not come out."""
    assert any(
        timeline.agrees(case.expect, timelines.play(case.question, policy=policy))
        for case in cases.read(DATA / "seeds.jsonl.gz")
    )
