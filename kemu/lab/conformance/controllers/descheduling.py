"""Recorded turns of the descheduler's strategies, repeated by the classes that run in the actor.

A case says what there is (nodes, pods, budgets, namespaces), the strategy with its arguments, the arguments of the
DefaultEvictor and the limits of evictions. The answer is which pods are evicted.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kemu.emulated.descheduler import clusters, evictions, plugins, policies, strategies
from kemu.emulated.objects import meta, times
from kemu.emulated.objects.conversion import convert
from kemu.emulated.settings.declared import Section
from kemu.emulated.settings.documents import Document
from kemu.emulated.settings.shapes import Report
from kemu.errors import Problem
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2

Json = dict[str, Any]


def answer(case: Json) -> Json:
    return asyncio.run(_answer(case))


def agrees(expect: Json, given: Json) -> list[str]:
    """What differs; of a case that reached a limit, only how many pods went: which ones depends there on Go's maps."""
    wanted, told = sorted(expect["evicted"]), sorted(given["evicted"])
    if expect["refused"] and len(wanted) == len(told):
        return []
    return [] if wanted == told else [f"evicts {told}, not {wanted}"]


async def _answer(case: Json) -> Json:
    now_ns = times.parse_time(case["now"])
    cluster = clusters.Cluster(lambda: now_ns)
    objects = case["objects"]
    cluster.nodes = {one["metadata"]["name"]: convert.from_json(core_v1_pb2.Node, one) for one in objects["nodes"]}
    pods = [convert.from_json(core_v1_pb2.Pod, one) for one in objects.get("pods", [])]
    cluster.pods = {meta.namespaced_name(pod): pod for pod in pods}
    budgets = [convert.from_json(policy_v1_pb2.PodDisruptionBudget, one) for one in objects.get("budgets", [])]
    cluster.budgets = {meta.namespaced_name(one): one for one in budgets}
    namespaces = [convert.from_json(core_v1_pb2.Namespace, one) for one in objects.get("namespaces", [])]
    cluster.namespaces = {one.metadata.name: one for one in namespaces}
    for pod in pods:
        cluster.put(pod)
    evicted: list[str] = []

    async def evict(pod: core_v1_pb2.Pod, strategy: str) -> None:
        key = meta.namespaced_name(pod)
        if not pod.metadata.uid:
            raise evictions.EvictionError(f"pod {key} is missing UID")
        evicted.append(key)

    policy = policies.Policy(
        profiles=[],
        max_no_of_pods_to_evict_per_node=case["limits"].get("maxNoOfPodsToEvictPerNode"),
        max_no_of_pods_to_evict_per_namespace=case["limits"].get("maxNoOfPodsToEvictPerNamespace"),
        max_no_of_pods_to_evict_total=case["limits"].get("maxNoOfPodsToEvictTotal"),
    )
    evictor = evictions.Evictor(cluster, policy, evict)
    handle = strategies.Handle(
        cluster, evictor, evictions.Filter(arguments(policies.DEFAULT_EVICTOR, case["evictor"]), cluster)
    )
    strategy = plugins.STRATEGIES[case["plugin"]](arguments(case["plugin"], case["args"]), handle)
    await strategy.run([cluster.nodes[name] for name in case["nodes"]])
    return {"evicted": evicted}


def arguments(name: str, stated: Json) -> Any:
    """Raises ValueError with what is wrong with them."""
    problems: list[Problem] = []
    found = Section(policies.ARGUMENTS[name]).check(stated, (), Report(Document("", stated), problems))
    if problems:
        raise ValueError("; ".join(f"{one.path}: {one.message}" for one in problems))
    return found
