"""AvoidEvictedNode: rejects nodes whose kubelet has just evicted or rejected a pod of the same workload.

Not a plugin of Kubernetes: ``policy.avoidEvictedNode`` enables it, after all other filters. See
:mod:`kemu.emulated.scheduler.experiments.avoided_nodes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.experiments import avoided_nodes
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, FilterPlugin
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable
from kemu.messages.k8s import core_v1_pb2

_EVICTED = unresolvable("node(s) evicted or rejected a pod of the same workload recently")


class AvoidEvictedNode(FilterPlugin):
    def prepare(self, cycle: Cycle) -> Any:
        avoided = self.handle.avoided
        nodes = avoided.of(cycle.message) if avoided is not None else None
        return dict(nodes) if nodes else SKIP

    def verdict(self, state: Mapping[str, int], node: NodeInfo) -> int:
        return 1 if node.name in state else 0

    def verdicts(self, state: Mapping[str, int], cluster: Cluster) -> IntArray:
        verdicts = np.zeros(len(cluster), dtype=np.int64)
        known = (cluster.nodes.get(name) for name in state)
        verdicts[[node.row for node in known if node is not None and node.row >= 0]] = 1
        return verdicts

    def explain(self, state: Mapping[str, int], verdict: int) -> Status:
        return _EVICTED

    def passes_anyway(self, state: Mapping[str, int], node: NodeInfo) -> bool:
        return node.name not in state

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.AVOIDANCE_OVER, lambda pod, old, new: _are_alike(pod.pod, old)),
            (Event.NODE_ADD, None),
        ]


def _are_alike(pod: core_v1_pb2.Pod, other: core_v1_pb2.Pod) -> bool:
    return avoided_nodes.workload_of(pod) == avoided_nodes.workload_of(other)
