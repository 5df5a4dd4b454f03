"""Reports of what the cache counts, in the run log, to be compared with the store's history.

A report names the revisions of pods and nodes that the scheduler had seen, and carries a fingerprint of each node
and of the pods counted on it, read from the columns that decisions read. The check ``cache-agrees-with-store``
(:mod:`kemu.lab.checks.scheduling.caches`) derives the same from the store's transactions.
"""

from __future__ import annotations

from kemu.emulated.client.informers import Informer
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.wire import fingerprints
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.loop import Engine
from kemu.emulated.scheduler.queue.queues import IN_FLIGHT
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import CacheAudited

EVERY_S = 300
"""Virtual time between two reports, at least."""


class Auditor:
    """Reports of one scheduler."""

    def __init__(
        self, env: Env, engine: Engine, nodes: Informer[core_v1_pb2.Node], pods: Informer[core_v1_pb2.Pod]
    ) -> None:
        self._env = env
        self._engine = engine
        self._nodes = nodes
        self._pods = pods
        engine.between_attempts, engine.due_ns = self.report, EVERY_S * SECOND_NS

    def report(self) -> None:
        """Write a report. An attempt under way loses its snapshot: held back changes are applied first."""
        engine = self._engine
        engine.due_ns = self._env.clock.now_ns() + EVERY_S * SECOND_NS
        cluster = engine.cluster
        cluster.release_snapshot()
        assumed = [pod for pod in cluster.assumed.values() if pod.node_name]
        loads = _loads(cluster)
        self._env.log(
            CacheAudited(
                nodes_rev=self._nodes.revision,
                pods_rev=self._pods.revision,
                nodes=len(cluster),
                pods=len(cluster.pods) - len(assumed),
                node_prints=fingerprints.packed(
                    [_of_node(cluster, node) for node in sorted(cluster.rows, key=lambda node: node.name)]
                ),
                load_prints=fingerprints.packed([loads[name] for name in sorted(loads)]),
                serves=sorted(engine.profiles),
                waiting=len(waiting := self._waiting()),
                waiting_print=fingerprints.of_names(waiting),
                assumed=[[pod.key, pod.uid, pod.node_name, pod.uid in engine.bindings.under_way] for pod in assumed],
            ),
        )

    def _waiting(self) -> list[str]:
        """UIDs of the pods that wait for a node, or for their binding to be seen; without those being deleted."""
        find = self._engine.pod_feed.find
        waiting: dict[str, None] = {}
        for uid, queued in self._engine.queue.pods.items():
            # A pod in flight is left to its attempt, whatever happened to it.
            if queued.place == IN_FLIGHT and not _is_pending(find(uid)):
                continue
            if not queued.info.terminating:
                waiting[uid] = None
        for uid in self._engine.cluster.assumed:
            pod = find(uid)
            if _is_pending(pod) and not pod.metadata.HasField("deletionTimestamp"):  # type: ignore[union-attr]
                waiting[uid] = None
        return list(waiting)


def _is_pending(pod: object | None) -> bool:
    return pod is not None and not pod.spec.nodeName  # type: ignore[attr-defined]


def _of_node(cluster: Cluster, node: NodeInfo) -> int:
    table, row = cluster.resources(), node.row
    allocatable = dict(zip(cluster.names.names, table.allocatable[:, row].tolist(), strict=True))
    allocatable[requests.PODS] = int(table.allowed_pods[row])
    taints = cluster.taint_sets[cluster.taint_set_ids[row]]
    return fingerprints.of_node(node.name, node.labels, taints, bool(cluster.unschedulable[row]), allocatable)


def _loads(cluster: Cluster) -> dict[str, int]:
    """The fingerprint of the pods on each node that has some, without those that are only assumed there."""
    table, names = cluster.resources(), cluster.names.names
    loads = {}
    for name, node in cluster.nodes.items():
        assumed = [uid for uid in node.pods if uid in cluster.assumed]
        if len(assumed) == len(node.pods):
            continue
        requested, non_zero = node.requested, (node.non_zero_cpu, node.non_zero_memory)
        if node.row >= 0:
            requested = table.requested[:, node.row].tolist()
            non_zero = (int(table.non_zero[0, node.row]), int(table.non_zero[1, node.row]))
        if assumed:
            requested, non_zero = _without(requested, non_zero, [node.pods[uid] for uid in assumed])
        uids = [uid for uid in node.pods if uid not in cluster.assumed]
        loads[name] = fingerprints.of_load(name, uids, dict(zip(names, requested, strict=True)), non_zero)
    return loads


def _without(requested: list[int], non_zero: tuple[int, int], pods: list[PodInfo]) -> tuple[list[int], tuple[int, int]]:
    left = list(requested)
    cpu, memory = non_zero
    for pod in pods:
        for number, amount in pod.requests:
            left[number] -= amount
        cpu -= pod.non_zero[0]
        memory -= pod.non_zero[1]
    return left, (cpu, memory)
