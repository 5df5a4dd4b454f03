"""The scheduler decides as the real one did: every recorded case, by the code that runs in production."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from kemu.conformance import agreements, case_files, registry, scheduler

DATA = Path(__file__).parent / "data" / "scheduler"
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))


def test_all_families_are_here() -> None:
    assert {"docs", "fit", "strategy", "nodeaffinity", "podaffinity"} < {*FAMILIES}
    assert {"taints", "spread", "ports", "mixed", "preempt"} < {*FAMILIES}


def beyond_the_judgement(expect: dict[str, Any], answered: dict[str, Any]) -> list[str]:
    """What differs in that which helps to find errors, but which ``kemu conformance`` does not judge."""
    found = []
    for part, keys in (
        (lambda answer: answer, ("prefilter", "nominatedNodeFits", "fullMessage")),
        (
            lambda answer: answer.get("preemption") or {},
            ("chosen", "chosenAnyOf", "potentialNodes", "postFilterStatus"),
        ),
    ):
        recorded, ours = part(expect), part(answered)
        found += [
            f"{key}: recorded {recorded.get(key)!r}, kemu {ours.get(key)!r}"
            for key in keys
            if (recorded.get(key) or None) != (ours.get(key) or None)
        ]
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_every_recorded_decision(family: str) -> None:
    wrong = {}
    for case in case_files.read(DATA / f"{family}.jsonl.gz"):
        answer = scheduler.answer(case.question)
        found = scheduler.agrees(case.expect, answer) + beyond_the_judgement(case.expect, answer)
        if found:
            wrong[case.id] = found
    assert not wrong


def test_every_part_of_an_answer_counts() -> None:
    case = next(
        case
        for case in case_files.read(DATA / "preempt.jsonl.gz")
        if case.expect.get("preemption", {}).get("candidates")
    )
    answer = scheduler.answer(case.question)
    node = sorted(case.expect["preemption"]["candidates"])[0]
    for change in ("message", "victims", "chosen", "rejected", "feasible"):
        expect = copy.deepcopy(case.expect)
        if change == "message":
            expect["message"] = "0/0 nodes are available."
        elif change == "victims":
            expect["preemption"]["candidates"][node]["victims"].append("another")
        elif change == "chosen":
            expect["preemption"]["chosenAnyOf"] = ["another"]
        elif change == "rejected":
            expect["rejected"][node]["reasons"] = ["Mood"]
        else:
            expect["feasible"] = [node]
        assert scheduler.agrees(expect, answer), change


def test_an_answer_that_fails_is_a_disagreement() -> None:
    kind = registry.kind("scheduler")
    questions = [
        case_files.Case("new-1", {"id": "new-1", "family": "new", "nodes": [{"surprise": 1}]}, {"feasible": []}),
        *list(case_files.read(DATA / "docs.jsonl.gz"))[:1],
    ]
    report = agreements.judge(kind, questions)
    assert (report.agree, report.total) == (1, 2)
    assert report.families["new"].agree == 0
    assert "no answer" in report.disagreements[0].differences[0]


def test_the_report_does_not_depend_on_the_number_of_processes() -> None:
    kind = registry.kind("scheduler")
    questions = list(case_files.read(DATA / "taints.jsonl.gz"))[:100]
    questions[3].expect["feasible"] = ["another"]
    alone, together = (agreements.judge(kind, questions, jobs=jobs).to_json() for jobs in (1, 2))
    assert alone == together
    assert (alone["agree"], alone["total"]) == (99, 100)
