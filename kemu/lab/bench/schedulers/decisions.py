"""Scheduling decisions by themselves: filter, score, choose and assume, against a filled cache in this process.

No store, no API server, no queue: what is measured is what the loop of a scheduler does for each pod. Nodes have 32
cpus, 64Gi and room for 110 pods, stand in three zones and run ten pods each.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Mapping
from typing import Any

from kemu.emulated.objects import meta
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.decisions import Decider, ScheduleResult
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.plugins import in_tree
from kemu.lab.bench import shapes
from kemu.messages.k8s import core_v1_pb2

PODS_PER_NODE = 10
ZONES = ("zone1", "zone2", "zone3")
GREEN_SHARE = 5
"""One node in so many has a pod that keeps pods of its kind away, in the workload ``anti-affinity``."""

WORKLOADS = {
    "basic": ("plain", 0),
    "anti-affinity": ("anti-affinity", 0),
    "spreading": ("spread", 0),
    "unschedulable": ("large", 0),
    "all-scored": ("plain", 100),
}
"""Template of the pods, and percentageOfNodesToScore (0: adaptive)."""


def _pod(template: str, number: int, distinct: bool) -> core_v1_pb2.Pod:
    pod = shapes.pod(template)
    pod.metadata.name = f"pod-{number}"
    pod.metadata.uid = f"00000000-0000-4000-8000-{number:012d}"
    if distinct:
        pod.metadata.labels["only"] = f"{number}"
        pod.spec.containers[0].resources.requests["memory"].string = f"{500 + number}Mi"
    defaults.apply(pod)
    return pod


def _filled(nodes: int, workload: str) -> Cluster:
    cluster = Cluster()
    for number in range(nodes):
        cluster.set_node(shapes.node(number, shapes.LARGE_NODE, ZONES))
    running = _pod("plain", 0, distinct=False)
    # Two cpus of each node are taken, so that the pods of ``unschedulable`` want 1 more than is left.
    running.spec.containers[0].resources.requests["cpu"].string = "200m"
    for number in range(nodes * PODS_PER_NODE):
        running.metadata.name, running.metadata.uid = f"running-{number}", f"running-{number}"
        pod = meta.copied(running)
        _add(cluster, pod, f"node-{number % nodes}")
    if workload == "anti-affinity":
        for number in range(0, nodes, GREEN_SHARE):
            green = _pod("anti-affinity", number, distinct=False)
            green.metadata.uid = f"green-{number}"
            _add(cluster, green, f"node-{number}")
    return cluster


def _add(cluster: Cluster, pod: core_v1_pb2.Pod, node: str) -> None:
    pod.spec.nodeName = node
    cluster.add_pod(cluster.pod(pod), node)


def decide(nodes: int, workload: str, pods: int, distinct: bool = False) -> dict[str, Any]:
    """Microseconds per decision, wall and CPU. ``distinct``: every pod has a template of its own."""
    template, percentage = WORKLOADS[workload]
    cluster = _filled(nodes, workload)
    rng = random.Random(1)
    profile = Profile(configurations.profile_of({}, "profile"), Handle(cluster, rng), in_tree.REGISTRY)
    decider = Decider(profile, cluster, rng, percentage_of_nodes=percentage)
    waiting = [cluster.pending(_pod(template, number, distinct)) for number in range(pods)]
    first = cluster.pending(_pod(template, pods, distinct))
    gc.collect()
    gc.freeze()
    begun = time.perf_counter()
    _attempt(decider, first)
    first_s = time.perf_counter() - begun
    taken = []
    cpu = time.process_time()
    for pod in waiting:
        begun = time.perf_counter()
        _attempt(decider, pod)
        taken.append(time.perf_counter() - begun)
    cpu = time.process_time() - cpu
    taken.sort()
    return {
        "us_median": round(taken[pods // 2] * 1e6),
        "us_p99": round(taken[pods * 99 // 100] * 1e6),
        "cpu_us": round(cpu / pods * 1e6),
        "first_us": round(first_s * 1e6),
    }


def _attempt(decider: Decider, pod: PodInfo) -> ScheduleResult:
    """What the loop does with a pod: assume it, or look whether preemption would help and say why not."""
    decision = decider.decide(pod)
    if decision.node:
        decider.cluster.assume(pod, decision.node)
        return decision
    filtering = decision.filtering
    assert filtering is not None
    for plugin in decider.profile.post_filters:
        plugin.post_filter(filtering)
    filtering.message()
    filtering.rejectors()
    return decision


def settings() -> tuple[Mapping[str, Any], ...]:
    """All workloads at two sizes, with pods of one template and with a template for each pod."""
    return tuple(
        {"nodes": nodes, "workload": workload, "pods": 300 if distinct else 1000, "distinct": distinct}
        for nodes in (1000, 5000)
        for workload in WORKLOADS
        for distinct in (False, True)
    )
