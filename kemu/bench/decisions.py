"""Scheduling decisions by themselves: filter, score, choose and assume, against a filled cache in this process.

No store, no API server, no queue: what is measured is what the loop of a scheduler does for each pod.
"""

from __future__ import annotations

import random
import time
from typing import Any

from kemu.k8s import core_v1_pb2
from kemu.objects import defaults
from kemu.scheduler import configurations
from kemu.scheduler.cluster import Cluster
from kemu.scheduler.decisions import Decider
from kemu.scheduler.framework import Handle
from kemu.scheduler.profiles import Profile

PODS_PER_NODE = 10
ZONES = 3


def _node(number: int) -> core_v1_pb2.Node:
    node = core_v1_pb2.Node()
    name = node.metadata.name = f"node-{number}"
    node.metadata.labels["kubernetes.io/hostname"] = name
    node.metadata.labels["topology.kubernetes.io/zone"] = f"zone-{number % ZONES}"
    for resource, amount in (("cpu", "32"), ("memory", "64Gi"), ("pods", "110")):
        node.status.allocatable[resource].string = amount
        node.status.capacity[resource].string = amount
    return node


def _pod(number: int, node: str = "") -> core_v1_pb2.Pod:
    pod = core_v1_pb2.Pod()
    pod.metadata.name, pod.metadata.namespace = f"pod-{number}", "default"
    pod.metadata.uid = f"00000000-0000-4000-8000-{number:012d}"
    pod.metadata.labels["app"] = f"app-{number % 100}"
    container = pod.spec.containers.add()
    container.name, container.image = "main", "registry.example/app:1"
    container.resources.requests["cpu"].string = "100m"
    container.resources.requests["memory"].string = "128Mi"
    pod.spec.nodeName = node
    defaults.apply(pod)
    return pod


def schedule(nodes: int, pods: int) -> dict[str, Any]:
    """Plain pods against nodes that run ten pods each."""
    cluster = Cluster()
    for number in range(nodes):
        cluster.set_node(_node(number))
    for number in range(nodes * PODS_PER_NODE):
        name = f"node-{number % nodes}"
        cluster.add_pod(cluster.pod(_pod(number, name)), name)
    rng = random.Random(1)
    profile = Profile(configurations.profile_of({}, "profile"), Handle(cluster, rng))
    waiting = [cluster.pending(_pod(nodes * PODS_PER_NODE + number)) for number in range(pods)]
    figures: dict[str, Any] = {}
    for title, percentage in (("", 0), ("all_nodes_", 100)):
        decider = Decider(profile, cluster, rng, percentage_of_nodes=percentage)
        taken = []
        for pod in waiting:
            begun = time.perf_counter()
            decision = decider.decide(pod)
            assert decision.node
            cluster.assume(pod, decision.node)
            taken.append(time.perf_counter() - begun)
        for pod in waiting:
            cluster.forget(pod.uid)
        taken.sort()
        figures[f"{title}decisions_per_s"] = round(pods / sum(taken))
        figures[f"{title}us_median"] = round(taken[pods // 2] * 1e6)
        figures[f"{title}us_p99"] = round(taken[pods * 99 // 100] * 1e6)
    return figures
