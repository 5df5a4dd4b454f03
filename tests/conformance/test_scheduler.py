"""The scheduler decides as the real one did: every recorded case, by the code that runs in production."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from kemu.lab.conformance import agreements, case_files, registry
from kemu.lab.conformance.scheduler import decisions, judgements, questions
from tests.conformance import asked

DATA = Path(__file__).parent / "data" / "scheduler"
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))


def test_all_families_are_here() -> None:
    assert {"docs", "fit", "strategy", "nodeaffinity", "podaffinity"} < {*FAMILIES}
    assert {"taints", "spread", "ports", "mixed", "preempt"} < {*FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_every_recorded_decision(family: str) -> None:
    wrong = {}
    for case in asked.cases(DATA / f"{family}.jsonl.gz"):
        found = questions.agrees(case.expect, questions.answer(case.question))
        if found:
            wrong[case.id] = found
    assert not wrong


def test_every_part_of_an_answer_counts() -> None:
    case = next(
        case
        for case in case_files.read(DATA / "preempt.jsonl.gz")
        if case.expect.get("preemption", {}).get("candidates")
    )
    answer = decisions.answer(case.question)
    node = sorted(case.expect["preemption"]["candidates"])[0]
    for change in ("message", "fullMessage", "victims", "chosen", "rejected", "feasible", "decidedBy", "prefilter"):
        expect = copy.deepcopy(case.expect)
        if change in ("message", "fullMessage"):
            expect[change] = "0/0 nodes are available."
        elif change == "victims":
            expect["preemption"]["candidates"][node]["victims"].append("another")
        elif change == "chosen":
            expect["preemption"]["chosenAnyOf"] = ["another"]
        elif change == "decidedBy":
            expect["preemption"]["decidedBy"] = "weather"
        elif change == "rejected":
            expect["rejected"][node]["reasons"] = ["Mood"]
        elif change == "prefilter":
            expect["prefilter"] = {"rejectedAll": True}
        else:
            expect["feasible"] = [node]
        assert judgements.agrees(expect, answer), change


def test_the_chosen_node_must_be_one_of_the_best() -> None:
    case = next(case for case in case_files.read(DATA / "fit.jsonl.gz") if case.expect.get("best"))
    answer = decisions.answer(case.question)
    assert judgements.agrees(case.expect, {**answer, "node": "another"})


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
