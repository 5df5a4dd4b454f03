"""Every object that real Kubernetes was asked about: converted, validated, summed up and matched as it did."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kemu.emulated.objects import resources, selectors
from kemu.emulated.objects.amounts import qos, quantities, requests
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.validation import kinds
from kemu.messages.k8s import core_v1_pb2
from tests.objects.oracle_data import objects, records

AMOUNTS = ("requests", "limits", "capacity", "allocatable", "overhead")
FAMILIES = ["scheduler/*.jsonl.gz", "kubelet/*.jsonl.gz", "timeline/*.jsonl.gz"]


@pytest.mark.parametrize("pattern", FAMILIES)
def test_objects_convert_both_ways_unchanged(pattern: str) -> None:
    seen = 0
    for record in records(pattern):
        for kind, data in objects(record):
            message = convert.from_json(resources.BY_KIND[kind].message, data)
            back = convert.to_manifest(message) if "kind" in data else convert.to_json(message)
            if back != _as_held(_without_empty(data)):
                pytest.fail(f"{kind} came back different\n{json.dumps(data)}\n{json.dumps(back)}")
            seen += 1
    assert seen > 1000


def _without_empty(value: Any) -> Any:
    """A recorder may have written lists and labels that hold nothing; on the wire they are as absent."""
    if isinstance(value, dict):
        return {
            key: _without_empty(each)
            for key, each in value.items()
            if each or not (isinstance(each, list) or key in ("annotations", "labels"))
        }
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _as_held(value: Any) -> Any:
    """With the texts of quantities as Kubernetes goes on with them."""
    if isinstance(value, dict):
        return {
            key: {name: quantities.held(text) for name, text in each.items()} if key in AMOUNTS else _as_held(each)
            for key, each in value.items()
        }
    return [_as_held(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("pattern", ["scheduler/*.jsonl.gz", "timeline/*.jsonl.gz"])
def test_objects_that_kubernetes_accepted_are_valid_and_keep_their_requests(pattern: str) -> None:
    """The recorded objects passed the validation of a real API server, and were defaulted by it."""
    for record in records(pattern):
        for kind, data in objects(record["case"]):
            if kind not in ("Pod", "Node", "Namespace", "PodDisruptionBudget", "PriorityClass"):
                continue
            obj: Any = convert.from_json(resources.BY_KIND[kind].message, data)
            before = requests.pod_requests(obj) if kind == "Pod" else None
            defaults.apply(obj)
            assert kinds.validate_create(obj) == [], json.dumps(data)
            if kind == "Pod":
                assert requests.pod_requests(obj) == before


def test_qos_classes_and_requests_of_the_kubelet() -> None:
    for record in records("kubelet/qos.jsonl.gz"):
        pod = convert.from_json(core_v1_pb2.Pod, record["case"]["pod"])
        expected = record["expect"]
        assert qos.qos_class(pod) == expected["qosClass"]
        assert qos.computed_qos_class(pod) == expected["computedQOSClass"]
        wanted = expected["requests"]
        assert {name: requests.ranking_request(pod, name) for name in wanted} == wanted


def cases(*families: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Cases without nominations of other pods, and which nodes the scheduler rejected in them."""
    lines = [record for family in families for record in records(f"scheduler/{family}.jsonl.gz")]
    return [
        (line["case"], line["expect"].get("rejected", {}))
        for line in lines
        if "nominated" not in line["case"] and "prefilter" not in line["expect"]
    ]


def test_requests_fit_where_the_scheduler_said_so() -> None:
    """cpu and memory: insufficient is what is more than allocatable minus the requests of the pods there."""
    insufficient = 0
    for case, rejected in cases("fit", "strategy", "mixed"):
        pod_request = requests.pod_requests(convert.from_json(core_v1_pb2.Pod, case["pod"]))
        used: dict[str, dict[str, int]] = {}
        for data in case.get("pods", ()):
            there = convert.from_json(core_v1_pb2.Pod, data)
            on_node = used.setdefault(there.spec.nodeName, {})
            for name, amount in requests.pod_requests_on_node(there).items():
                on_node[name] = on_node.get(name, 0) + amount
        for data in case["nodes"]:
            node = convert.from_json(core_v1_pb2.Node, data)
            name = node.metadata.name
            rejection = rejected.get(name)
            if rejection is not None and rejection["plugin"] != "NodeResourcesFit":
                continue
            allocatable = requests.resource_list(node.status.allocatable)
            for resource in ("cpu", "memory", "ephemeral-storage"):
                wanted = pod_request.get(resource, 0)
                free = allocatable.get(resource, 0) - used.get(name, {}).get(resource, 0)
                short = rejection is not None and f"Insufficient {resource}" in rejection["reasons"]
                assert (wanted > 0 and wanted > free) == short, (case["id"], name, resource)
                insufficient += short
    assert insufficient > 100


def test_node_affinity_matches_where_the_scheduler_said_so() -> None:
    unmatched = 0
    for case, rejected in cases("nodeaffinity", "mixed"):
        if "profile" in case:
            continue
        wanted = selectors.RequiredNodeAffinity(convert.from_json(core_v1_pb2.Pod, case["pod"]).spec)
        for data in case["nodes"]:
            node = convert.from_json(core_v1_pb2.Node, data)
            rejection = rejected.get(node.metadata.name)
            matches = wanted.matches(node.metadata.labels, node.metadata.name)
            if rejection is None:
                assert matches
            elif rejection["plugin"] == "NodeAffinity":
                assert not matches
                unmatched += 1
    assert unmatched > 100


def test_taints_are_tolerated_where_the_scheduler_said_so() -> None:
    untolerated = 0
    for case, rejected in cases("taints", "mixed"):
        pod = convert.from_json(core_v1_pb2.Pod, case["pod"])
        for data in case["nodes"]:
            node = convert.from_json(core_v1_pb2.Node, data)
            rejection = rejected.get(node.metadata.name)
            taint = selectors.untolerated_taint(node.spec.taints, pod.spec.tolerations, ("NoSchedule", "NoExecute"))
            if rejection is None:
                assert taint is None
            elif rejection["plugin"] == "TaintToleration":
                assert taint is not None
                untolerated += 1
    assert untolerated > 100
