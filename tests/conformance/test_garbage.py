"""Garbage is collected, namespaces are emptied and volumes are attached as by the real controllers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.controllers import namespaces
from kemu.emulated.controllers.garbage import collector, graphs
from kemu.emulated.controllers.volumes import attachments
from kemu.lab.conformance import agreements, case_files, registry
from kemu.lab.conformance.controllers import garbage
from tests.conformance import generate

DATA = Path(__file__).parent / "data"
FAMILIES = ("garbage", "namespaces", "attachments")


def report(family: str) -> agreements.Report:
    return agreements.judge(registry.kind(family), case_files.read(DATA / family / f"{family}.jsonl.gz"))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_agrees(family: str) -> None:
    found = report(family)
    assert found.total >= 100
    assert {one.id: one.differences for one in found.disagreements} == {}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cases_are_those_of_the_generators(family: str) -> None:
    for case in list(case_files.read(DATA / family / f"{family}.jsonl.gz"))[:3]:
        _, seed, number = case.id.split("-")
        assert generate.GENERATORS[family](family, int(seed[1:]), int(number)) == case.question


@pytest.mark.parametrize("family", FAMILIES)
def test_every_part_of_an_answer_counts(family: str) -> None:
    case = next(iter(case_files.read(DATA / family / f"{family}.jsonl.gz")))
    kind = registry.kind(family)
    answered = kind.answer(case.question)
    assert kind.agrees(case.expect, answered) == []
    for place in case.expect:
        wrong = copy.deepcopy(case.expect)
        more: Any = {"atMs": 7, "do": "attach", "volume": "v0", "node": "n"} if place == "actions" else "another"
        wrong[place] = [*wrong[place], more]
        assert kind.agrees(wrong, answered), place


def is_noticed(family: str) -> bool:
    """One case says so: the others need not be asked."""
    kind = registry.kind(family)
    cases = case_files.read(DATA / family / f"{family}.jsonl.gz")
    return any(kind.judged(case.question, case.expect)[1] for case in cases)


async def _forget(self: Any, node: graphs.Node) -> None:
    return


BUGS: list[tuple[Any, str, Any, str]] = [
    (collector.GarbageCollector, "_unblock", _forget, "garbage"),
    (graphs.Node, "blocking_dependents", lambda self: list(self.dependents.values()), "garbage"),
    (graphs.Reference, "fits", lambda self, identity: True, "garbage"),
    (graphs.Graph, "_report", lambda self, node, uid: None, "garbage"),
    (namespaces, "GRACE_S", 4.0, "namespaces"),
    (namespaces, "FINALIZER_ESTIMATE_S", 10, "namespaces"),
    (attachments, "FORCE_AFTER_NS", 350_000_000_000, "attachments"),
    (attachments, "allows_many", lambda volume: True, "attachments"),
    (attachments.AttachDetachController, "_node_changed", lambda self, node, is_there: None, "attachments"),
]


@pytest.mark.parametrize(("module", "name", "bug", "family"), BUGS, ids=[bug[1] for bug in BUGS])
def test_a_bug_is_noticed(module: Any, name: str, bug: Any, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, bug)
    assert is_noticed(family)


def test_a_retry_that_forgets_failures_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sync = namespaces.NamespaceController._sync

    async def done(self: Any, name: str) -> bool:
        await sync(self, name)
        return False

    monkeypatch.setattr(namespaces.NamespaceController, "_sync", done)
    assert is_noticed("namespaces")


def test_a_collector_may_give_any_recorded_answer() -> None:
    answered: dict[str, Any] = {"events": [], "steps": []}
    other = {"events": ["x"], "steps": []}
    assert garbage.agrees({"outcomes": [other, answered]}, answered) == []
    assert garbage.agrees({"outcomes": [other]}, answered)
