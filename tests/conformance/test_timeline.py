"""The scheduler does over time what the real one did: queue, backoff, events, nominations, background preemption."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kemu.lab.conformance import case_files
from kemu.lab.conformance.scheduler import small_clusters, timelines

DATA = Path(__file__).parent / "data" / "timeline"
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))


def test_all_families_are_here() -> None:
    assert {"seeds", "backoff", "priority", "nominated", "mixed"} <= {*FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_every_recorded_timeline(family: str) -> None:
    wrong: dict[str, Any] = {}
    for case in case_files.read(DATA / f"{family}.jsonl.gz"):
        found = timelines.agrees(case.expect, timelines.answer(case.question))
        if found:
            wrong[case.id] = found
    assert not wrong


def test_every_part_of_an_entry_counts() -> None:
    case = next(case for case in CASES if any("by" in one for one in case.expect["outcomes"][0]["timeline"]))
    answer = timelines.answer(case.question)
    assert not timelines.agrees(case.expect, answer)
    for entry in answer["timeline"]:
        for key, value in list(entry.items()):
            entry[key] = value + 0.002 if key == "t_s" else "another"
            assert timelines.agrees(case.expect, answer), (entry, key)
            entry[key] = value
    answer["timeline"].pop()
    assert timelines.agrees(case.expect, answer)


@pytest.mark.parametrize("policy", [{"queue": "fifo"}, {"nomination": False}, {"clearLowerNominations": "always"}])
def test_a_rule_switched_off_disagrees(policy: dict[str, Any]) -> None:
    """The comparison can fail: with a FIFO queue, or without nominations, the recorded timelines do not come out."""
    assert any(
        not timelines.agrees_coarsely(case.expect, small_clusters.play(case.question, policy=policy))
        for case in case_files.read(DATA / "seeds.jsonl.gz")
    )


CASES = [case for family in FAMILIES for case in case_files.read(DATA / f"{family}.jsonl.gz")]


@pytest.mark.thorough
@pytest.mark.parametrize(("call_ms", "step_ms"), [(1, 1), (2, 1), (5, 1), (3, 0)])
def test_small_latencies_decide_nothing(call_ms: int, step_ms: int) -> None:
    """As the record says of itself; but for one case, where the steps of 33 slow attempts in a row add up, and for
    kinds that lag: what they overtake is decided by milliseconds."""
    latencies = small_clusters.Latencies(call_ms / 1000, step_ms / 1000)
    wrong = [
        case.id
        for case in CASES[step_ms + call_ms :: 6]
        if "lateKinds" not in case.question
        and not timelines.agrees_coarsely(case.expect, small_clusters.play(case.question, latencies=latencies))
    ]
    assert wrong in ([], ["priority-s1101-00044"][: 1 - step_ms])


LOTS = 25
ENOUGH = LOTS if os.environ.get("KEMU_NIGHTLY") == "1" else 5
"""Lots by day, once all outcomes have come up."""


@pytest.mark.thorough
def test_whatever_lot_is_drawn_the_answer_is_among_the_recorded_ones() -> None:
    """And each of them comes up: the choice between equals is as free as that of the real scheduler.

    Two exceptions: where pods wait for permits, which of two writes comes first within a millisecond leads to outcomes
    of its own; and an attempt at the very end of a record may be in it or not.
    """
    several = [case for case in CASES if len(case.expect["outcomes"]) > 1]
    assert several
    for case in several:
        outcomes, end_s = case.expect["outcomes"], case.question["horizon_s"]
        missing = {n for n, one in enumerate(outcomes) if all(entry["t_s"] < end_s for entry in one["timeline"])}
        for seed in range(LOTS):
            if seed >= ENOUGH and not missing:
                break
            answer = small_clusters.play(case.question, seed)
            equal = {n for n, one in enumerate(outcomes) if not timelines.difference(answer, one)}
            assert equal, (case.id, seed)
            missing -= equal
        assert not missing or case.family == "permit", case.id
