"""Nodes and pods in the shapes of kube-scheduler's own benchmark (``scheduler_perf``).

Pod templates are named after what the pods ask for; :func:`pods` makes pods of one. All ask for 100m of cpu and 500Mi
unless their name says something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2, scheduling_v1_pb2

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

HIGH, HIGH_PRIORITY = "high-priority", 10

SMALL_NODE = {"cpu": "4", "memory": "32Gi", "pods": "110"}
"""As upstream's."""
LARGE_NODE = {"cpu": "32", "memory": "64Gi", "pods": "110"}


def node(number: int, amounts: Mapping[str, str], zones: tuple[str, ...] = ()) -> core_v1_pb2.Node:
    """One node, in one of the zones in turn; of no zone when there are none."""
    made = core_v1_pb2.Node()
    name = made.metadata.name = f"node-{number}"
    made.metadata.labels[HOSTNAME] = name
    if zones:
        made.metadata.labels[ZONE] = zones[number % len(zones)]
    for resource, amount in amounts.items():
        made.status.allocatable[resource].string = amount
        made.status.capacity[resource].string = amount
    return made


def _term(color: str, key: str) -> dict[str, Any]:
    return {
        "labelSelector": {"matchLabels": {"color": color}},
        "topologyKey": key,
        "namespaces": ["sched-0", "sched-1", "default"],
    }


def _spread(action: str) -> dict[str, Any]:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 5,
                "topologyKey": ZONE,
                "whenUnsatisfiable": action,
                "labelSelector": {"matchLabels": {"color": "blue"}},
            }
        ]
    }


_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _affinity(kind: str, strength: str, term: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "affinity": {kind: {strength: [{"weight": 1, "podAffinityTerm": term} if strength == _PREFERRED else term]}}
    }


_IN_ZONES = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]}

# Name: labels, cpu, further fields of the spec.
_TEMPLATES: dict[str, tuple[dict[str, str], str, dict[str, Any]]] = {
    "plain": ({}, "100m", {}),
    "node-affinity": (
        {},
        "100m",
        {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [_IN_ZONES]}}}},
    ),
    "anti-affinity": ({"color": "green"}, "100m", _affinity("podAntiAffinity", _REQUIRED, _term("green", HOSTNAME))),
    "affinity": ({"color": "blue"}, "100m", _affinity("podAffinity", _REQUIRED, _term("blue", ZONE))),
    "preferred-affinity": ({"color": "red"}, "100m", _affinity("podAffinity", _PREFERRED, _term("red", HOSTNAME))),
    "preferred-anti-affinity": (
        {"color": "yellow"},
        "100m",
        _affinity("podAntiAffinity", _PREFERRED, _term("yellow", HOSTNAME)),
    ),
    "spread": ({"color": "blue"}, "100m", _spread("DoNotSchedule")),
    "preferred-spread": ({"color": "blue"}, "100m", _spread("ScheduleAnyway")),
    "low": ({"color": "blue"}, "900m", {}),
    "high": ({}, "3", {"priorityClassName": HIGH}),
    "high-affinity": (
        {"color": "purple"},
        "3",
        {"priorityClassName": HIGH, **_affinity("podAffinity", _REQUIRED, _term("blue", ZONE))},
    ),
    "high-too-large": ({}, "9", {"priorityClassName": HIGH}),
    "large": ({}, "31", {}),
}


def pod(template: str, namespace: str = "default") -> core_v1_pb2.Pod:
    """A pod of a template, still without a name."""
    labels, cpu, fields = _TEMPLATES[template]
    made: core_v1_pb2.Pod = convert.from_json(
        core_v1_pb2.Pod,
        {
            "metadata": {"namespace": namespace, "labels": labels},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "pause",
                        "image": "registry.k8s.io/pause:3.10",
                        "ports": [{"containerPort": 80}],
                        "resources": {"requests": {"cpu": cpu, "memory": "500Mi"}},
                    }
                ],
                **fields,
            },
        },
    )
    return made


def pods(template: str, namespace: str, prefix: str, count: int) -> Iterator[core_v1_pb2.Pod]:
    """So many pods, named ``prefix-0`` and so on."""
    pattern = pod(template, namespace)
    for number in range(count):
        made = meta.copied(pattern)
        made.metadata.name = f"{prefix}-{number}"
        yield made


def namespace(name: str) -> core_v1_pb2.Namespace:
    made = core_v1_pb2.Namespace()
    made.metadata.name = name
    return made


def high_priority() -> scheduling_v1_pb2.PriorityClass:
    made = scheduling_v1_pb2.PriorityClass(value=HIGH_PRIORITY)
    made.metadata.name = HIGH
    return made


def service(name: str) -> core_v1_pb2.Service:
    made: core_v1_pb2.Service = convert.from_json(
        core_v1_pb2.Service,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"foo": "bar"}, "ports": [{"port": 80, "protocol": "TCP"}]},
        },
    )
    return made


def budget(number: int, groups: int) -> policy_v1_pb2.PodDisruptionBudget:
    """The budget of the pods of one group."""
    made: policy_v1_pb2.PodDisruptionBudget = convert.from_json(
        policy_v1_pb2.PodDisruptionBudget,
        {
            "metadata": {"name": f"budget-{number}", "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"group": f"{number % groups}"}}},
        },
    )
    return made
