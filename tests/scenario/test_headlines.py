"""The verdict in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.lab.checks.results import Result
from kemu.lab.scenario import headlines
from kemu.lab.scenario.verdicts import Judgement


def judged(*holds: bool | None) -> list[Judgement]:
    return [Judgement("", "", one, "") for one in holds]


def checked(*holds: bool | None) -> list[Result]:
    return [Result("a-check", one, "") for one in holds]


@pytest.mark.parametrize(
    ("verdict", "expectations", "checks", "rest", "headline"),
    [
        ("holds", judged(True, True), checked(True, None), [], "holds: 2 expectations, 1 check"),
        ("holds", judged(True), checked(None), [], "holds: 1 expectation"),
        ("fails", judged(True, False, None), checked(True), [], "fails: 1 of 3 expectations"),
        ("fails", judged(True), checked(True, False, None), [], "fails: 1 of 2 checks"),
        ("fails", judged(False), checked(False), ["x"], "fails: 1 of 1 expectation, 1 of 1 check; x"),
        ("fails", [], checked(False, True), [], "fails: 1 of 2 checks"),
        ("unknown", judged(None, True), checked(True), [], "unknown: 1 of 2 expectations could not be judged"),
        ("unknown", judged(True), checked(True), [], "unknown: the run log is not complete"),
        ("unknown", [], checked(None), [], "nothing was expected; there was nothing to check"),
        ("holds", [], checked(True), ["a", "b"], "nothing was expected; 1 check holds; a; b"),
    ],
)
def test_a_run(
    verdict: str, expectations: list[Judgement], checks: list[Result], rest: list[str], headline: str
) -> None:
    assert headlines.of_run(verdict, expectations, checks, rest) == headline


@pytest.mark.parametrize(
    ("pods", "hopeless", "text"),
    [
        (0, 0, []),
        (1, 0, ["1 pod was never bound"]),
        (1, 1, ["1 pod was never bound; no node can take it"]),
        (522, 0, ["522 pods were never bound"]),
        (522, 22, ["522 pods were never bound; no node can take 22 of them"]),
    ],
)
def test_pods_that_were_never_bound(pods: int, hopeless: int, text: list[str]) -> None:
    assert headlines.unbound({"pods": pods, "hopeless": hopeless}) == text


def test_a_fault_that_never_came() -> None:
    assert headlines.never_came(["outage"]) == ["the fault outage never came"]


def variant(verdict: str, *, expects: int = 1, unbound: int = 0) -> dict[str, Any]:
    return {"verdict": verdict, "expectations": [{}] * expects, "unbound": {"pods": unbound}}


@pytest.mark.parametrize(
    ("verdict", "variants", "comparisons", "headline"),
    [
        ("holds", [variant("holds"), variant("holds")], judged(True), "holds: 2 variants; 1 comparison holds"),
        ("fails", [variant("fails"), variant("holds")], judged(True), "fails: 1 of 2 variants"),
        ("fails", [variant("holds")] * 2, judged(False, True), "fails: 1 of 2 comparisons"),
        (
            "fails",
            [variant("fails"), variant("unknown", unbound=3)],
            judged(False),
            "fails: 1 of 2 variants; 1 of 1 comparison; 1 of 2 variants could not be judged; 3 pods were never bound",
        ),
        ("unknown", [variant("unknown"), variant("holds")], [], "unknown: 1 of 2 variants could not be judged"),
        ("holds", [variant("holds", expects=0)] * 2, [], "nothing was expected; 2 variants"),
    ],
)
def test_a_matrix(verdict: str, variants: list[dict[str, Any]], comparisons: list[Judgement], headline: str) -> None:
    assert headlines.of_matrix(verdict, variants, comparisons) == headline
