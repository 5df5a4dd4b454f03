"""Edges of the kubelet's and the node controllers' decisions that no recorded case reaches."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.controllers import taint_timers
from kemu.emulated.kubelet.pressure import eviction_messages
from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.usage import stats
from kemu.emulated.objects import times
from kemu.emulated.objects.amounts import quantities
from kemu.lab.conformance import readings
from kemu.lab.conformance.kubelet import decisions
from kemu.messages.k8s import core_v1_pb2
from tests.conformance import reference
from tests.conformance.generators import kubelet as generated

Json = dict[str, Any]


def pod(name: str = "p", requests: Json | None = None, **spec: Any) -> Json:
    container = {"name": "c", "resources": {"requests": requests or {}}}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def admitted(incoming: Json, allocatable: Json, *others: Json) -> Json:
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"pods": "10", **allocatable}}}
    for number, other in enumerate(others):
        other["metadata"] |= {"name": f"other-{number}", "uid": f"uid-other-{number}"}
    case = {"id": "admission-0", "mode": "predicate", "node": node, "pod": incoming, "pods": list(others)}
    (outcome,) = decisions.answer(case)["outcomes"]
    return dict(outcome)


def test_a_negative_request_is_none() -> None:
    assert admitted(pod(requests={"cpu": "-1"}), {"cpu": "0"}, pod(requests={"cpu": "5"}))["admit"]


def test_the_node_keeps_no_account_of_native_resources_that_it_does_not_know() -> None:
    assert admitted(pod(requests={"storage": "5Gi", "something": "1"}), {})["admit"]
    outcome = admitted(pod(requests={"kubernetes.io/thing": "1"}), {})
    assert outcome["reason"] == "OutOfkubernetes.io/thing"


def test_overhead_of_an_extended_resource_counts_where_the_request_is_overlooked() -> None:
    incoming = pod(requests={"example.com/gpu": "2"})
    assert admitted(incoming, {})["admit"]
    incoming["spec"]["overhead"] = {"example.com/gpu": "1"}
    assert admitted(incoming, {})["failureReasons"] == [
        {"resource": "example.com/gpu", "requested": 1, "used": 0, "capacity": 0}
    ]


@pytest.mark.parametrize("is_known", [False, True])
def test_which_extended_resources_are_overlooked_is_decided_by_the_first_look_at_the_node(is_known: bool) -> None:
    """``removeMissingExtendedResources`` has changed the pod for good when ``generalFilter`` reads the node again."""

    def node(gpu: str | None) -> Json:
        allocatable = {"pods": "10"} | ({} if gpu is None else {"example.com/gpu": gpu})
        return {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}

    fresh = node(None if is_known else "1")
    fresh["metadata"]["labels"] = {"disk": "ssd"}
    incoming = pod(requests={"example.com/gpu": "2"}, nodeSelector={"disk": "ssd"})
    case = {"id": "admission-0", "mode": "predicate", "pod": incoming, "pods": []}
    case |= {"node": node("2" if is_known else None), "freshNode": fresh}
    (outcome,) = decisions.answer(case)["outcomes"]
    assert outcome["reason"] == ("OutOfexample.com/gpu" if is_known else "")


def test_a_pod_of_a_class_that_there_is_not_is_no_victim() -> None:
    victim = {**pod("victim", {"cpu": "1"}), "status": {"qosClass": "Platinum"}}
    case = {
        "id": "critical-preemption-0",
        "mode": "direct",
        "pod": pod(priority=2_000_000_000),
        "pods": [victim],
        "reasons": [{"resource": "cpu", "requested": 1000, "used": 1000, "capacity": 1000}],
    }
    (outcome,) = decisions.answer(case)["outcomes"]
    assert not outcome["preempted"]
    assert "no set of running pods" in outcome["error"]


def test_a_thousand_times_the_request_wraps_around() -> None:
    case = {"id": "qos-0", "pod": pod(requests={"memory": "10Pi"}), "memoryCapacity": 1 << 40}
    used = (1000 * 10 * (1 << 50) + 2**63) % 2**64 - 2**63
    assert used < 0
    assert decisions.answer(case)["oomScoreAdj"] == {"c": 1000 + -used // (1 << 40)}


def test_containers_that_request_more_than_their_pod_pass_the_score_of_best_effort() -> None:
    """``remainingPodMemReqPerContainer`` divides what is missing as well, towards zero."""
    wanted = pod(requests={"memory": "1001"}, resources={"requests": {"memory": "1"}})
    wanted["spec"]["containers"].append({"name": "d"})
    answered = decisions.answer({"id": "qos-0", "pod": wanted, "memoryCapacity": 1000})
    assert answered["oomScoreAdj"] == {"c": 1000 - (1001 - 500), "d": 1000 + 500}
    wanted["spec"]["resources"]["requests"] = {"cpu": "1", "memory": "0"}
    assert decisions.answer({"id": "qos-0", "pod": wanted, "memoryCapacity": 1000})["oomScoreAdj"] == {"c": 3, "d": 999}


@pytest.mark.parametrize("memory", [None, {}, {"workingSetBytes": 7}])
def test_a_pod_whose_memory_is_known_without_an_amount_uses_none(memory: Json | None) -> None:
    """``evictionMessage`` names the pod as soon as its stats say anything of memory; ``memoryUsage`` makes 0 of it."""
    read = stats.read_pod({"podRef": {"uid": "u"}, "memory": memory})
    greedy = readings.pod(pod("greedy", resources={"requests": {"memory": "5"}}))
    text = eviction_messages.node_is_low("memory", quantities.parse("9"), quantities.parse("8"), greedy, read)
    amount = None if memory is None else memory.get("workingSetBytes", 0)
    assert (f"Pod greedy was using {amount}, request is 5" in text) == (memory is not None)


def test_fields_that_kemu_lacks_are_left_out() -> None:
    data = pod(priority=7, somethingNew={"a": 1})
    data["spec"]["containers"][0]["alsoNew"] = [1]
    read = readings.pod(data)
    assert (read.spec.priority, read.spec.containers[0].name) == (7, "c")
    assert "somethingNew" in data["spec"]
    with pytest.raises(ValueError, match="priority"):
        readings.pod(pod(priority="high", somethingNew=1))


def test_stats_without_a_reference_or_names() -> None:
    case = {"id": "eviction-rank-0", "pods": [pod()], "stats": [{"containers": [{}], "volume": [{}]}]}
    assert decisions.answer(case)["rankings"]["memory.available"]["order"] == ["p"]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0.3s", 300_000_000),
        ("1.0000000019s", 1_000_000_001),
        ("9223372036.854775807s", 2**63 - 1),
        ("0.100000000000000000000h", 360_000_000_000),
        ("-1.5h", -5_400_000_000_000),
    ],
)
def test_fractions_of_durations(text: str, ns: int) -> None:
    assert times.parse_duration(text) == ns


@pytest.mark.parametrize(("text", "same"), [("1_0%", "10%"), ("1_2.5_0%", "12.5%"), ("1e0_1%", "10%")])
def test_digits_may_be_parted_by_underscores(text: str, same: str) -> None:
    read, plain = (thresholds.parse({"memory.available": one}, {}, {}, {}) for one in (text, same))
    assert read == plain


@pytest.mark.parametrize("text", ["_1%", "1_%", "1__0%", "1_.5%"])
def test_but_nowhere_else(text: str) -> None:
    with pytest.raises(thresholds.ThresholdError):
        thresholds.parse({"memory.available": text}, {}, {}, {})


def test_to_tolerate_for_more_than_292_years_is_for_ever() -> None:
    for seconds, stays in ((9_223_372_036, 9_223_372_036), (9_223_372_037, -1), (2**63 - 1, -1), (-5, 0)):
        toleration = core_v1_pb2.Toleration(operator="Exists", tolerationSeconds=seconds)
        assert taint_timers.shortest_toleration_s([toleration]) == stays


def test_requests_and_classes_of_every_recorded_pod() -> None:
    """With the status and without it."""
    pods = generated.recorded_pods()[::3]
    for data in (*pods, *({key: one[key] for key in one if key != "status"} for one in pods)):
        answered = decisions.answer({"id": "qos-0", "pod": data, "memoryCapacity": 1 << 33})
        assert answered["qosClass"] == reference.qos(data)
        for resource, amount in answered["requests"].items():
            assert amount == reference.whole(resource, reference.request(data, resource)), resource


def test_each_pod_is_evicted_for_the_limit_that_it_exceeds() -> None:
    """A pass may evict several, and the metric counts each (pkg/kubelet/eviction, managerImpl.localStorageEviction)."""
    limited = pod("limited")
    limited["spec"]["containers"][0]["resources"] = {"limits": {"ephemeral-storage": "1"}}
    full = pod("full", volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1"}}])
    stats = [
        {"podRef": {"uid": one["metadata"]["uid"]}, "volume": [{"name": "v", "usedBytes": 2}], **total}
        for one, total in ((full, {}), (limited, {"ephemeral-storage": {"usedBytes": 2}}))
    ]
    step = {"at": 0, "activePods": ["full", "limited"], "node": {}, "podStats": stats}
    config = {"evictionPressureTransitionPeriodSeconds": 300, "localStorageCapacityIsolation": True}
    case = {
        "id": "eviction-manager-0",
        "config": config,
        "filesystem": {},
        "pods": [full, limited],
        "probes": [],
        "steps": [step],
    }
    (outcome,) = decisions.answer(case)["steps"][0]["outcomes"]
    assert outcome["returned"] == ["full", "limited"]
    assert outcome["evictionSignal"] == "emptydirfs.limit ephemeralpodfs.limit"
