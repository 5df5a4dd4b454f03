"""What Kubernetes v1.36.3 itself decided about pieces whose bug it still has; docs/recording.md says how to ask it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kemu.lab.conformance import case_files, registry
from kemu.lab.conformance.scheduler import small_clusters, timelines
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


def test_141694_the_preemptor_waits_beside_an_empty_node() -> None:
    assert happened(141694, "preempted") == ["victim-1", "victim-2"]
    last = [event["t_s"] for event in outcome(141694)["timeline"]][-1]
    assert last < 2 < CASES[141694][1].question["horizon_s"] - 600, "not even the flush retries it"
    states = {name: where["state"] for name, where in outcome(141694)["final"].items()}
    assert states == {"victim-1": "gone", "victim-2": "gone", "bystander": "gone", "preemptor": "pending"}


def test_141694_a_fix_wakes_the_preemptor() -> None:
    fixed = play(141694, deviations=["k8s-141694"])
    assert fixed["final"]["preemptor"] == {"state": "running", "node": "node-1"}


def test_95752_the_preemptor_waits_an_hour_for_its_victim() -> None:
    assert happened(95752, "preempted") == ["low"]
    (bound,) = [event["t_s"] for event in outcome(95752)["timeline"] if event["what"] == "bound"]
    assert bound > 3600


def test_141227_the_younger_pod_is_the_victim_and_comes_back_in_vain() -> None:
    assert happened(141227, "preempted") == ["agent"]
    assert outcome(141227)["final"]["agent-again"]["state"] == "pending"


@pytest.mark.parametrize(
    ("number", "pod"), [(72124, "preemptor"), (92600, "high"), (102339, "newcomer"), (106780, "p0"), (126700, "p1")]
)
def test_what_is_fixed_is_fixed_and_the_bug_would_show(number: int, pod: str) -> None:
    """kemu with the bug decides otherwise than v1.36.3 did."""
    assert outcome(number)["final"][pod]["state"] == "running"
    sick = play(number, {"eligibility": "alpha"}) if number == 92600 else play(number, deviations=[f"k8s-{number}"])
    assert timelines.agrees(CASES[number][1].expect, sick)


def test_130429_nominations_by_other_schedulers_do_not_count() -> None:
    (case,) = case_files.read(RECORDED / "cooperation.jsonl")
    real = small_clusters.play(case.question, policy={"cooperate": False})
    assert not timelines.agrees(case.expect, real)
    assert real["final"]["small"] == {"state": "running", "node": "node-1"}
    assert small_clusters.play(case.question)["final"]["small"] == {"state": "pending"}


def play(number: int, policy: Mapping[str, Any] | None = None, deviations: Iterable[str] = ()) -> dict[str, Any]:
    """What kemu does with other switches."""
    return small_clusters.play(CASES[number][1].question, policy=policy, deviations=deviations)
