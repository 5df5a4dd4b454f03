"""kemu's decisions against :mod:`tests.conformance.reference` on cases of which there is no record.

The cases are mixed from the parts of recorded ones, so their features are as frequent as there but meet in other ways.
The reference itself is held against the record first.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from kemu.emulated.kubelet.settings import thresholds
from kemu.lab.conformance import case_files
from kemu.lab.conformance.kubelet import decisions
from tests.conformance import reference
from tests.conformance.generators import kubelet as generated
from tests.samples import one_in

Json = dict[str, Any]
SEED = 20261121
SHARE = one_in(4)
"""Of the cases that are drawn, CI asks one in so many."""


def recorded(family: str) -> list[case_files.Case]:
    return list(case_files.read(generated.DATA / f"{family}.jsonl.gz"))


def mixed(family: str, count: int) -> Iterator[Json]:
    return (generated.case(family, SEED, number) for number in range(count))


# Admission and preemption --------------------------------------------------------------------------------------------


def admission_differences(case: Json, outcome: Json) -> list[str]:
    """``outcome``: kemu's, or the record's."""
    node, pod, others = case["node"], case["pod"], case.get("pods") or []
    label = (pod["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
    operating_system = (pod["spec"].get("os") or {}).get("name") or "linux"
    policy = (pod["spec"].get("securityContext") or {}).get("supplementalGroupsPolicy")
    features = (node.get("status") or {}).get("features") or {}
    early = (
        ("InvalidNodeInfo", bool(case.get("nodeError"))),
        ("PodOSSelectorNodeLabelDoesNotMatch", label != "linux"),
        ("PodOSNotSupported", operating_system != "linux"),
        ("SupplementalGroupsPolicyNotSupported", policy == "Strict" and not features.get("supplementalGroupsPolicy")),
        ("UnexpectedAdmissionError", bool(case.get("pluginError"))),
    )
    wanted: Json = {"admit": False, "failureReasons": [], "preempted": []}
    refused = next((reason for reason, holds in early if holds), None)
    if refused is not None:
        wanted["reason"] = refused
    else:
        labels = node["metadata"].get("labels") or {}
        patched = {**labels, "kubernetes.io/os": "linux"} if labels else {}
        found = reference.failures(node, patched, pod, others)
        fresh = case.get("freshNode")
        if fresh and found and all(one.get("predicate") == "NodeAffinity" for one in found):
            found = reference.failures(fresh, fresh["metadata"].get("labels") or {}, pod, others, node)
        recovery = reference.preempt(pod, found, others)
        left = recovery["remainingReasons"]
        wanted["failureReasons"], wanted["preempted"] = found, recovery["preempted"]
        wanted["admit"] = not left and not recovery["error"]
        if recovery["error"]:
            wanted["reason"] = "UnexpectedAdmissionError"
        elif left:
            wanted["reason"] = left[0].get("predicate") or f"OutOf{left[0]['resource']}"
    here: Json = {
        "admit": bool(outcome.get("admit")),
        "failureReasons": [{**one} for one in outcome.get("failureReasons") or ()],
        "preempted": [one["pod"] for one in outcome.get("preempted") or ()],
    }
    if "reason" in wanted:
        here["reason"] = outcome["reason"]
    for reasons in (here["failureReasons"], wanted["failureReasons"]):
        for one in reasons:
            if "resource" in one:
                for name in ("requested", "used", "capacity"):
                    one.setdefault(name, 0)
    return [f"{key}: {wanted[key]} {here[key]}" for key in wanted if wanted[key] != here[key]]


def preemption_differences(case: Json, outcome: Json) -> list[str]:
    wanted = reference.preempt(case["pod"], case.get("reasons") or [], case.get("pods") or [])
    preempted = [one["pod"] for one in outcome.get("preempted") or ()]
    found = []
    if wanted["preempted"] != preempted:
        found.append(f"{wanted['preempted']} {preempted}")
    if not (outcome.get("error") or "").endswith(wanted["error"]) or bool(wanted["error"]) != bool(
        outcome.get("error")
    ):
        found.append(f"{wanted['error']} {outcome.get('error')}")
    if len(wanted["remainingReasons"]) != len(outcome.get("remainingReasons") or ()):
        found.append(f"{wanted['remainingReasons']} {outcome.get('remainingReasons')}")
    return found


def differences(case: Json, outcome: Json) -> list[str]:
    return (preemption_differences if case["mode"] == "direct" else admission_differences)(case, outcome)


@pytest.mark.parametrize("family", ["admission", "critical-preemption"])
def test_the_reference_agrees_with_the_record_on_admission(family: str) -> None:
    for one in recorded(family):
        found = [differences(one.question, outcome) for outcome in one.expect["outcomes"]]
        assert [] in found, (one.id, found)


def test_admission() -> None:
    preempted = refused = 0
    for case in mixed("admission", 1200 // SHARE):
        (outcome,) = decisions.answer(case)["outcomes"]
        assert admission_differences(case, outcome) == [], case
        preempted += bool(outcome["preempted"])
        refused += not outcome["admit"]
    assert preempted > 10 // SHARE
    assert refused > 100 // SHARE


def test_preemption() -> None:
    several = 0
    for case in mixed("critical-preemption", 1000 // SHARE):
        (outcome,) = decisions.answer(case)["outcomes"]
        assert preemption_differences(case, outcome) == [], case
        several += len(outcome["preempted"]) > 2
    assert several > 100 // SHARE


# Ranking -------------------------------------------------------------------------------------------------------------


def ranking_differences(case: Json, rankings: Json) -> list[str]:
    stats = {(one.get("podRef") or {}).get("uid", ""): one for one in case.get("stats") or ()}
    layout, pods, found = case.get("filesystem") or {}, case.get("pods") or [], []
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    for signal in thresholds.SIGNALS:
        order = [by_name[name] for name in rankings[signal].get("order") or ()]
        if len(order) != len(pods):
            found.append(f"{signal}: {len(order)} of {len(pods)}")
        for first, second in itertools.pairwise(order):
            if reference.ranks_before(signal, layout, first, second, stats) > 0:
                found.append(f"{signal}: {first['metadata']['name']} before {second['metadata']['name']}")
    return found


def test_the_reference_agrees_with_the_record_on_ranking() -> None:
    for one in recorded("eviction-rank"):
        assert ranking_differences(one.question, one.expect["rankings"]) == [], one.id


def test_ranking() -> None:
    for case in mixed("eviction-rank", 600):
        assert ranking_differences(case, decisions.answer(case)["rankings"]) == [], case


# Thresholds ----------------------------------------------------------------------------------------------------------


def test_amounts_of_thresholds() -> None:
    draw = random.Random(SEED + 3)
    for number in range(4000):
        text = draw.choice(
            (
                f"{draw.randint(1, 10000) / draw.choice((100, 1000)):g}%",
                f"{draw.randint(1, 100)}{draw.choice(('%', '%%'))}",
                f"{draw.randint(1, 99)}e{draw.choice((-1, 0, -7))}%",
                f"{draw.randint(1, 9999)}{draw.choice(('', 'm', 'u', 'k', 'Ki', 'Mi', 'G', 'Gi'))}",
                f"{draw.randint(1, 99)}.{draw.randint(0, 999)}{draw.choice(('Mi', 'Gi', 'k', 'M', ''))}",
            )
        )
        if text == "100%" or (text.endswith("%") and float(text.rstrip("%")) > 100):
            continue
        capacities = [draw.randint(0, 2 ** draw.choice((10, 30, 40, 52, 60))) for _ in range(5)]
        case = {"id": f"thresholds-{number}", "evictionHard": {"nodefs.available": text}, "capacities": capacities}
        (outcome,) = decisions.answer(case)["outcomes"]
        wanted = [reference.threshold_amount(text, capacity) for capacity in capacities]
        assert outcome.get("amounts") == {"nodefs.available": [wanted]}, (text, capacities)


# Taints --------------------------------------------------------------------------------------------------------------


def taint_differences(case: Json, answer: Json) -> list[str]:
    wanted = reference.deletions(case)
    found = sorted((one["atMs"], one["pod"]) for one in answer.get("deletions") or ())
    return [] if wanted == found else [f"{wanted} {found}"]


def test_the_reference_agrees_with_the_record_on_taints() -> None:
    for one in recorded("taint-eviction"):
        assert taint_differences(one.question, one.expect) == [], one.id


def test_taints() -> None:
    deleted = 0
    for case in mixed("taint-eviction", 800 // SHARE):
        answer = decisions.answer(case)
        assert taint_differences(case, answer) == [], case
        deleted += len(answer["deletions"])
    assert deleted > 400 // SHARE
