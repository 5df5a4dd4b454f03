"""Every recorded decision of the real kubelet is kemu's decision too."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from kemu.lab.conformance import agreements, case_files, registry
from kemu.lab.conformance.controllers import node_failures
from kemu.lab.conformance.kubelet import decisions, judgements
from tests.conformance import asked
from tests.conformance.generators import kubelet as generated
from tests.conformance.generators import probes as generated_probes
from tests.samples import one_in

pytestmark = pytest.mark.slow

DATA = Path(__file__).parent / "data" / "kubelet"

NODE_FAILURE = "node-failure"
FAMILIES = [
    "qos",
    "critical",
    "thresholds",
    "config-defaults",
    "admission",
    "critical-preemption",
    "eviction-rank",
    "eviction-manager",
    "eviction-loop",
    "taint-eviction",
    NODE_FAILURE,
]
MADE = tuple(generated_probes.MAKERS)
"""Families without a shared record."""
MIXED = [f"{family}{decisions.MIXED}" for family in generated.FAMILIES]


@pytest.mark.parametrize("family", [*(each for each in FAMILIES if each != NODE_FAILURE), *MIXED, *MADE])
def test_every_case_agrees(family: str) -> None:
    report = agreements.judge(registry.kind("kubelet"), asked.cases(DATA / f"{family}.jsonl.gz"))
    assert report.total >= (60 if family in (*MIXED, *MADE) else 100)
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_no_family_is_left_out() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")} == {*FAMILIES, *MIXED, *MADE}


@pytest.mark.parametrize("write_s", [0.000_000_001, 0.01])
def test_how_long_a_write_takes_decides_nothing(write_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it takes any time at all."""
    monkeypatch.setattr(node_failures, "WRITE_S", write_s)
    cases = list(case_files.read(DATA / f"{NODE_FAILURE}.jsonl.gz"))[1 :: 3 * one_in(3)]
    report = agreements.judge(registry.kind("kubelet"), cases)
    assert [one.id for one in report.disagreements] == []


def test_every_case_of_node_failures_agrees_to_the_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closer than the record asks for."""
    monkeypatch.setattr(judgements, "TOLERANCE_S", 0)
    cases = list(case_files.read(DATA / f"{NODE_FAILURE}.jsonl.gz"))
    assert len(cases) >= 100
    report = agreements.judge(registry.kind("kubelet"), cases[:: one_in(2)])
    assert [one.id for one in report.disagreements] == []


def test_mixed_cases_are_made_again_from_their_seed() -> None:
    for family in generated.FAMILIES:
        shipped = [case.question for case in case_files.read(DATA / f"{family}{decisions.MIXED}.jsonl.gz")]
        assert [generated.case(family, 1, number) for number in range(3)] == shipped[:3], family


def test_a_record_may_name_one_of_the_signals_of_a_pass() -> None:
    """The messages say which pod was evicted for which limit; a signal that none of them has disagrees."""
    asked = next(
        case
        for case in case_files.read(DATA / "eviction-manager-mixed.jsonl.gz")
        if any(" " in one.get("evictionSignal", "") for step in case.expect["steps"] for one in step["outcomes"])
    )
    answer = registry.kind("kubelet").answer(asked.question)

    def differences(change: Callable[[list[str]], str]) -> list[str]:
        recorded = copy.deepcopy(asked.expect)
        for step in recorded["steps"]:
            for one in step["outcomes"]:
                if one.get("evictionSignal"):
                    one["evictionSignal"] = change(one["evictionSignal"].split())
        return judgements.agrees(recorded, answer)

    assert differences(" ".join) == []
    assert differences(lambda signals: signals[0]) == differences(lambda signals: signals[-1]) == []
    assert differences(lambda signals: "pid.available") != []
