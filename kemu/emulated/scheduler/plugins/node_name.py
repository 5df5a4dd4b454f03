"""NodeName: a pod with ``spec.nodeName`` fits only on that node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, FilterPlugin, Scope, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable

_OTHER_NODE = unresolvable("node(s) didn't match the requested node name")


class NodeName(FilterPlugin, SignPlugin):
    scope = Scope.NODE_OBJECT

    def prepare(self, cycle: Cycle) -> Any:
        return cycle.template.node_name or SKIP

    def verdict(self, state: str, node: NodeInfo) -> int:
        return 0 if node.name == state else 1

    def verdicts(self, state: str, cluster: Cluster) -> IntArray | None:
        verdicts = np.ones(len(cluster), dtype=np.int64)
        node = cluster.nodes.get(state)
        if node is not None and node.row >= 0:
            verdicts[node.row] = 0
        return verdicts

    def explain(self, state: str, verdict: int) -> Status:
        return _OTHER_NODE

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return {"node name": pod.template.node_name}

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [(Event.NODE_ADD, None), (Event.NODE_TAINTS, None)]
