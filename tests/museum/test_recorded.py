"""What Kubernetes v1.36.3 itself decided about pieces whose bug it still has; docs/recording.md says how to ask it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.conformance import case_files, registry
from tests.museum.pieces import PIECES

RECORDED = Path(__file__).parent / "recorded"
CASES = {
    int(case.id.rpartition("-")[2]): (kind, case)
    for kind in registry.names()
    for path in RECORDED.glob(f"{kind}.jsonl")
    for case in case_files.read(path)
}
"""By number of the issue: the kind of the case and the case."""


def outcome(number: int) -> dict[str, Any]:
    """The only one that was recorded."""
    (found,) = CASES[number][1].expect["outcomes"]
    return dict(found)


def happened(number: int, what: str) -> list[str]:
    """The pods of a timeline to which this happened, in order."""
    return [event["pod"] for event in outcome(number)["timeline"] if event["what"] == what]


@pytest.mark.parametrize("number", CASES)
def test_kemu_decides_the_same(number: int) -> None:
    kind, case = CASES[number]
    _, differences = registry.kind(kind).judged(case.question, case.expect)
    assert not differences


def test_each_is_a_piece() -> None:
    assert set(CASES) <= {piece.number for piece in PIECES.values()}


def test_91492_the_second_preemption_violates_the_budget() -> None:
    assert happened(91492, "preempted") == ["web-a", "web-b"]


def test_126479_the_modest_pod_goes_first() -> None:
    assert happened(126479, "bound") == ["modest"]
    assert outcome(126479)["final"]["important"]["state"] == "pending"


@pytest.mark.parametrize(("number", "reason"), [(99708, "NodeAffinity"), (106946, "OutOfcpu")])
def test_the_kubelet_rejects_the_pod(number: int, reason: str) -> None:
    assert (outcome(number)["admit"], outcome(number)["reason"]) == (False, reason)
