"""What a namespace uses of a quota: those that count alike are counted once, and it is the sum of all."""

from __future__ import annotations

import random

import pytest

from kemu.emulated.objects.amounts import resource_lists
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.quotas import quotas, registry, usages
from kemu.lab.conformance import readings
from kemu.messages.k8s import core_v1_pb2

PODS = registry.EVALUATORS["pods"]
NAMES = ["pods", "count/pods", "requests.cpu", "limits.memory", "requests.example.com/gpu"]
SCOPES = [
    [],
    [("PriorityClass", "In", ["high"])],
    [("PriorityClass", "NotIn", ["high"])],
    [("Terminating", "Exists", [])],
    [("NotBestEffort", "Exists", []), ("NotTerminating", "Exists", [])],
    [("CrossNamespacePodAffinity", "Exists", [])],
]
NOW_NS = 1_000_000_000_000


def _pod(draw: random.Random, name: str) -> core_v1_pb2.Pod:
    requests = {"cpu": draw.choice(["1", "500m"]), "example.com/gpu": "1"}
    resources = draw.choice([{}, {"requests": requests, "limits": {"memory": "1Gi"}}, {"requests": {"cpu": "2"}}])
    spec = {"containers": [{"name": "main", "image": "i", "resources": resources}]}
    spec |= {"priorityClassName": draw.choice(["high", "low"])}
    if draw.random() < 0.3:
        spec["activeDeadlineSeconds"] = 30
    if draw.random() < 0.2:
        term = {"namespaces": ["b"], "topologyKey": "zone"}
        spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = readings.read(core_v1_pb2.Pod, {"metadata": {"name": name, "namespace": "a"}, "spec": spec})
    pod.status.phase = draw.choice(["Pending", "Running", "Running", "Succeeded"])
    if draw.random() < 0.3:
        pod.metadata.deletionTimestamp.seconds = draw.choice([900, 1000, 1100])
        pod.metadata.deletionGracePeriodSeconds = draw.choice([0, 30])
    if resources and draw.random() < 0.3:
        status = pod.status.containerStatuses.add(name="main")
        status.resources.requests["cpu"].string = "3"
    return pod


def _quota(scopes: list[tuple[str, str, list[str]]]) -> quotas.Quota:
    matches = [{"scopeName": scope, "operator": operator, "values": values} for scope, operator, values in scopes]
    spec = {"hard": dict.fromkeys(NAMES, "10"), "scopeSelector": {"matchExpressions": matches}}
    return quotas.read(readings.read(core_v1_pb2.ResourceQuota, {"metadata": {"name": "q"}, "spec": spec}))


def _sum(quota: quotas.Quota, pods: list[core_v1_pb2.Pod]) -> dict[str, Quantity]:
    total = dict.fromkeys(NAMES, Quantity(0))
    for pod in pods:
        if quota.has_in_scope(PODS, pod):
            total = resource_lists.add(total, resource_lists.only(PODS.usage(pod, NOW_NS), NAMES))
    return total


@pytest.mark.parametrize("seed", range(20))
def test_a_crowd_counts_as_all_of_its_members(seed: int) -> None:
    draw, crowd = random.Random(seed), usages.Crowd(PODS)
    for _ in range(60):
        name = f"p{draw.randrange(12)}"
        if name in crowd.objects and draw.random() < 0.4:
            crowd.remove(name)
        else:
            crowd.put(name, _pod(draw, name))
        if draw.random() < 0.5:
            for scopes in SCOPES:
                quota = _quota(scopes)
                found = usages.calculate(quota, lambda plural: crowd.counted() if plural == "pods" else (), NOW_NS)
                assert found == _sum(quota, list(crowd.objects.values()))


def test_a_thousand_that_are_alike_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, crowd, asked = random.Random(1), usages.Crowd(PODS), []
    pod = _pod(draw, "p")
    pod.ClearField("metadata")
    for number in range(1000):
        crowd.put(f"p{number}", pod)
    usage = type(PODS).usage
    monkeypatch.setattr(type(PODS), "usage", lambda self, obj, now: asked.append(obj) or usage(self, obj, now))
    found = usages.calculate(_quota([]), lambda plural: crowd.counted() if plural == "pods" else (), NOW_NS)
    assert found["count/pods"] == Quantity(1000 * 10**9)
    assert len(asked) == 1
