"""Nodes and pods for tests, and hypothesis strategies for many of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.experiments.switches import policy_of
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.plugins.in_tree import REGISTRY
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2

ZONE = "topology.kubernetes.io/zone"


def node(name: str, labels: Mapping[str, str] | None = None, **allocatable: str) -> core_v1_pb2.Node:
    amounts = {"cpu": "10", "memory": "64Gi", "pods": "110", **allocatable}
    return convert.from_json(
        core_v1_pb2.Node,
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "status": {"allocatable": amounts},
        },
    )


def pod(
    name: str,
    cpu: str | None = "1",
    *,
    priority: int = 0,
    on: str = "",
    start_s: int | None = None,
    labels: Mapping[str, str] | None = None,
    scheduler: str = "default-scheduler",
    **spec: Any,
) -> core_v1_pb2.Pod:
    requests = {} if cpu is None else {"resources": {"requests": {"cpu": cpu}}}
    found = convert.from_json(
        core_v1_pb2.Pod,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": dict(labels or {})},
            "spec": {
                "containers": [{"name": "main", "image": "app:1", **requests}],
                "priority": priority,
                "schedulerName": scheduler,
                **spec,
            },
        },
    )
    if on:
        found.spec.nodeName = on
        found.status.phase = "Running"
    if start_s is not None:
        found.status.startTime.seconds = start_s
    return found


def budget(name: str, labels: Mapping[str, str], allowed: int) -> policy_v1_pb2.PodDisruptionBudget:
    return convert.from_json(
        policy_v1_pb2.PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": dict(labels)}},
            "status": {
                "disruptionsAllowed": allowed,
                "currentHealthy": 0,
                "desiredHealthy": 0,
                "expectedPods": 0,
            },
        },
    )


def cluster_of(nodes: Sequence[core_v1_pb2.Node], pods: Sequence[core_v1_pb2.Pod] = ()) -> Cluster:
    cluster = Cluster()
    for one in nodes:
        cluster.set_node(one)
    for one in pods:
        cluster.see_pod(one)
    return cluster


def decider(
    cluster: Cluster,
    profile: Mapping[str, Any] | None = None,
    *,
    policy: Mapping[str, Any] | None = None,
    percentage: int = 100,
    seed: int = 0,
    registry: Mapping[str, Any] | None = None,
) -> Decider:
    rng = random.Random(seed)
    handle = Handle(cluster, rng, policy_of(policy or {}))
    made = Profile(configurations.profile_of(profile or {}, "profiles[0]"), handle, REGISTRY.extended(registry or {}))
    return Decider(made, cluster, rng, percentage)


# Strategies ---------------------------------------------------------------------------------------------------------

_VALUE = st.sampled_from(["a", "b"])
_LABELS = st.fixed_dictionaries({"app": _VALUE}, optional={"tier": _VALUE})
_SELECTOR = st.fixed_dictionaries({"matchLabels": st.fixed_dictionaries({"app": _VALUE}, optional={"tier": _VALUE})})
_KEY = st.sampled_from(["kubernetes.io/hostname", ZONE, "rack"])
_TERM = st.fixed_dictionaries({"labelSelector": _SELECTOR, "topologyKey": _KEY})
_WEIGHTED_TERM = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": _TERM})
_EFFECT = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])


@st.composite
def nodes(draw: st.DrawFn, name: str) -> core_v1_pb2.Node:
    labels = {"kubernetes.io/hostname": name}
    labels |= draw(st.fixed_dictionaries({}, optional={ZONE: st.sampled_from("xy"), "rack": st.sampled_from("12")}))
    allocatable = {
        "cpu": draw(st.sampled_from(["1", "2"])),
        "memory": draw(st.sampled_from(["1Gi", "4Gi"])),
        "pods": draw(st.sampled_from(["2", "110"])),
    }
    allocatable |= draw(st.fixed_dictionaries({}, optional={"example.com/gpu": st.sampled_from(["0", "2"])}))
    taints = [{"key": key, "effect": draw(_EFFECT)} for key in ("k", "l") if draw(st.integers(0, 7)) == 0]
    images = [image for image in ("app:1", "big:2") if draw(st.integers(0, 3)) == 0]
    return convert.from_json(
        core_v1_pb2.Node,
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints, "unschedulable": draw(st.integers(0, 7)) == 0},
            "status": {
                "allocatable": allocatable,
                "images": [{"names": [image], "sizeBytes": 500 * 1024 * 1024} for image in images],
            },
        },
    )


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "") -> core_v1_pb2.Pod:
    requests = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "cpu": st.sampled_from(["1", "1", "300m", "0"]),
                "memory": st.sampled_from(["100Mi", "1Gi"]),
                "example.com/gpu": st.sampled_from(["1", "3"]),
            },
        )
    )
    container: dict[str, Any] = {
        "name": "main",
        "image": draw(st.sampled_from(["app:1", "big:2"])),
        "resources": {"requests": requests},
    }
    if draw(st.integers(0, 4)) == 0:
        container["ports"] = [{"containerPort": 80, "hostPort": draw(st.sampled_from([80, 81])), "protocol": "TCP"}]
    spec: dict[str, Any] = {"containers": [container], "priority": draw(st.sampled_from([5, 10, 0]))}
    if draw(st.integers(0, 3)) == 0:
        spec["nodeSelector"] = {"rack": draw(st.sampled_from(["1", "2"]))}
    if draw(st.booleans()):
        spec["tolerations"] = [{"operator": "Exists"}]
    affinity: dict[str, Any] = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(st.integers(0, 3)) == 0:
            affinity[kind] = {
                "requiredDuringSchedulingIgnoredDuringExecution": draw(st.lists(_TERM, max_size=1)),
                "preferredDuringSchedulingIgnoredDuringExecution": draw(st.lists(_WEIGHTED_TERM, max_size=2)),
            }
    if draw(st.integers(0, 3)) == 0:
        term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["1"]}]}
        affinity["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference": term}]
        }
    if affinity:
        spec["affinity"] = affinity
    spec["topologySpreadConstraints"] = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "maxSkew": st.integers(1, 2),
                    "topologyKey": _KEY,
                    "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
                    "labelSelector": _SELECTOR,
                }
            ),
            max_size=1,
        )
    )
    found = convert.from_json(
        core_v1_pb2.Pod,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": draw(_LABELS)},
            "spec": spec,
        },
    )
    if on:
        found.spec.nodeName = on
        found.status.startTime.seconds = draw(st.integers(1, 5))
    return found


def end(cluster: Cluster, uid: str) -> None:
    """A pod goes. Then those with host ports are updated, which takes the ports again that it shared with them."""
    cluster.remove_pod(uid)
    for other in list(cluster.pods.values()):
        if other.template.host_ports:
            cluster.see_pod(other.pod, spec_changed=False)
