"""The scheduler does over time what the real one did: queue, backoff, events, nominations, background preemption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.conformance import case_files, small_clusters, timeline

DATA = Path(__file__).parent / "data" / "timeline"
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))


def test_all_families_are_here() -> None:
    assert {"seeds", "backoff", "priority", "nominated", "mixed"} <= {*FAMILIES}


def different_message(mine: dict[str, Any], recorded: dict[str, Any]) -> str:
    """The first text that differs in two equal timelines, which ``kemu conformance`` does not judge."""
    ours, theirs = timeline.by_pod(mine["timeline"]), timeline.by_pod(recorded["timeline"])
    for name in sorted(ours):
        for one, other in zip(ours[name], theirs[name], strict=True):
            if one.get("message") != other.get("message"):
                return f"{name}: recorded {other}, kemu {one}"
    return ""


@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_every_recorded_timeline(family: str) -> None:
    wrong: dict[str, Any] = {}
    for case in case_files.read(DATA / f"{family}.jsonl.gz"):
        answer = timeline.answer(case.question)
        found = timeline.agrees(case.expect, answer)
        if not found:
            equal = next(one for one in case.expect["outcomes"] if not timeline.difference(answer, one))
            message = different_message(answer, equal)
            found = [message] if message else []
        if found:
            wrong[case.id] = found
    assert not wrong


@pytest.mark.parametrize("policy", [{"queue": "fifo"}, {"nomination": False}, {"clearLowerNominations": "always"}])
def test_a_rule_switched_off_disagrees(policy: dict[str, Any]) -> None:
    """The comparison can fail: with a FIFO queue, or without nominations, the recorded timelines do not come out."""
    assert any(
        timeline.agrees(case.expect, small_clusters.play(case.question, policy=policy))
        for case in case_files.read(DATA / "seeds.jsonl.gz")
    )


CASES = [case for family in FAMILIES for case in case_files.read(DATA / f"{family}.jsonl.gz")]


@pytest.mark.parametrize(("call_ms", "step_ms"), [(1, 1), (2, 1), (5, 1), (3, 0)])
def test_small_latencies_decide_nothing(call_ms: int, step_ms: int) -> None:
    """As the record says of itself; but for one case, where the steps of 33 slow attempts in a row add up."""
    latencies = small_clusters.Latencies(call_ms / 1000, step_ms / 1000)
    wrong = [
        case.id
        for case in CASES[step_ms + call_ms :: 6]
        if timeline.agrees(case.expect, small_clusters.play(case.question, latencies=latencies))
    ]
    assert wrong in ([], ["priority-s1101-00044"][: 1 - step_ms])


def test_whatever_lot_is_drawn_the_answer_is_among_the_recorded_ones() -> None:
    """And each of them comes up: the choice between equals is as free as that of the real scheduler."""
    several = [case for case in CASES if len(case.expect["outcomes"]) > 1]
    assert several
    for case in several:
        missing = set(range(len(case.expect["outcomes"])))
        for seed in range(25):
            answer = small_clusters.play(case.question, seed)
            equal = {n for n, one in enumerate(case.expect["outcomes"]) if not timeline.difference(answer, one)}
            assert equal, (case.id, seed)
            missing -= equal
        assert not missing, case.id


def test_times_are_those_of_the_record() -> None:
    """Closer than the judgement asks for: every attempt is there, and at most a millisecond off."""
    for case in CASES[::4]:
        answer = timeline.answer(case.question)["timeline"]
        assert any(_to_the_millisecond(answer, one["timeline"]) for one in case.expect["outcomes"]), case.id


def _to_the_millisecond(mine: list[dict[str, Any]], recorded: list[dict[str, Any]]) -> bool:
    ours, theirs = (
        sorted((one["pod"], place, one["what"], one["t_s"]) for place, one in enumerate(each))
        for each in (mine, recorded)
    )
    return len(ours) == len(theirs) and all(
        (one[0], one[2]) == (other[0], other[2]) and abs(one[3] - other[3]) < 0.0015
        for one, other in zip(ours, theirs, strict=True)
    )
