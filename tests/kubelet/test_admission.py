"""Admission against the recorded answers of the real kubelet (v1.36.3)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kemu.k8s import core_v1_pb2
from kemu.kubelet import admission
from kemu.objects import convert

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "oracle" / "kubelet" / "admission.jsonl.gz"


def _cases() -> list[dict[str, Any]]:
    if not ORACLE.exists():
        pytest.skip("the recorded answers of the kubelet are not here")
    with gzip.open(ORACLE, "rt") as lines:
        return [json.loads(line) for line in lines]


def _read(message_class: Any, data: dict[str, Any]) -> Any:
    return convert.from_json(message_class, {key: data[key] for key in data if key not in ("apiVersion", "kind")})


def _failures(case: dict[str, Any]) -> tuple[admission.Decision | None, tuple[admission.Failure, ...]]:
    pod = _read(core_v1_pb2.Pod, case["pod"])
    node = None if case.get("nodeError") else admission.NodeView(_read(core_v1_pb2.Node, case["node"]))
    refused = admission.precheck(node, pod)
    if refused is not None:
        return refused, ()
    if case.get("pluginError"):
        return admission.NO_DEVICES, ()
    assert node is not None
    usage = admission.Usage()
    for other in case["pods"] or ():
        usage.add(admission.claim_of(_read(core_v1_pb2.Pod, other), running=True))
    claim = admission.claim_of(pod)
    found = admission.failures(node, usage, pod, claim)
    if admission.needs_fresh_node(found):
        fresh = admission.NodeView(
            _read(core_v1_pb2.Node, case.get("freshNode", case["node"])), patched="freshNode" not in case
        )
        found = admission.failures(fresh, usage, pod, claim)
    return None, found


def _json(failure: admission.Failure) -> dict[str, Any]:
    if isinstance(failure, admission.Unfit):
        return {"predicate": failure.predicate, "desc": failure.description}
    amounts = {"requested": failure.requested, "used": failure.used, "capacity": failure.capacity}
    return {"resource": failure.resource, **{key: amount for key, amount in amounts.items() if amount}}


def test_agrees_with_the_real_kubelet() -> None:
    judged = 0
    for line in _cases():
        case, outcomes = line["case"], line["expect"]["outcomes"]
        refused, found = _failures(case)
        assert any([_json(failure) for failure in found] == outcome["failureReasons"] for outcome in outcomes), case[
            "id"
        ]
        if found and admission.is_critical(_read(core_v1_pb2.Pod, case["pod"])):
            continue  # preemption for critical pods decides
        decision = refused or admission.decide(found)
        assert any(
            (decision.admitted, decision.reason, decision.message)
            == (outcome["admit"], outcome["reason"], outcome["message"])
            for outcome in outcomes
        ), (case["id"], decision)
        judged += 1
    assert judged > 300
