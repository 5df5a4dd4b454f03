"""Simulations: the filters asked about a node with pods added or removed.

Used for nominated pods where CLUSTER filters matter, and for victims. Only that node changes; the pods of other nodes
stay where they are, except in the search for victims on several nodes
(:mod:`kemu.emulated.scheduler.experiments.cross_node`).
"""

from __future__ import annotations

from collections.abc import Collection

from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle import verdicts
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.cycle.verdicts import Active


class Simulation:
    """A copy of one node, with filter states to match its pods."""

    __slots__ = ("_active", "_cluster_wide", "_elsewhere", "_filtering", "_object_verdict", "_others", "node")

    def __init__(self, filtering: Filtering, node: NodeInfo, local: bool = False) -> None:
        """``local``: leave out the CLUSTER filters, which are known to let the node pass."""
        self._filtering = filtering
        self._object_verdict = int(filtering.evaluation.object_verdicts[node.row])
        self._cluster_wide = bool(filtering.states) and not local
        self._active: Active = filtering.evaluation.filters.on_node if local else filtering.filters()
        if self._cluster_wide:
            self._active = verdicts.forked(self._active)
        pod = filtering.cycle.pod
        self._others = verdicts.nominated_above(node, pod.priority, pod) if node.nominated else []
        self.node = node.copy()
        self._elsewhere: dict[str, NodeInfo] = {}
        """Copies of other nodes from which pods were removed, by name."""

    def add(self, pod: PodInfo) -> None:
        self.node.add(pod)
        if self._cluster_wide:
            for _place, plugin, state in self._active:
                plugin.add_pod(state, self.node, pod)

    def remove(self, pod: PodInfo) -> None:
        self.node.remove(pod)
        if self._cluster_wide:
            for _place, plugin, state in self._active:
                plugin.remove_pod(state, self.node, pod)

    def disregard(self, uids: Collection[str]) -> None:
        """Leave out nominations to the node that are about to be cleared."""
        self._others = [pod for pod in self._others if pod.uid not in uids]

    def reprieve(self, pod: PodInfo) -> bool:
        """Put a removed pod back. False, and it stays removed, if the pending pod does not fit beside it."""
        self.add(pod)
        if self.verdict():
            self.remove(pod)
            return False
        return True

    def remove_elsewhere(self, pod: PodInfo) -> None:
        """Remove a pod of another node, which only CLUSTER filters see."""
        node = self._copy_of(pod)
        node.remove(pod)
        for _place, plugin, state in self._active:
            plugin.remove_pod(state, node, pod)

    def add_elsewhere(self, pod: PodInfo) -> None:
        """Bring back what :meth:`remove_elsewhere` removed."""
        node = self._copy_of(pod)
        node.add(pod)
        for _place, plugin, state in self._active:
            plugin.add_pod(state, node, pod)

    def _copy_of(self, pod: PodInfo) -> NodeInfo:
        assert self._cluster_wide, "pods of other nodes concern CLUSTER filters only"
        name = pod.node_name
        known = self._elsewhere.get(name)
        if known is None:
            known = self._elsewhere[name] = self._filtering.cycle.cluster.nodes[name].copy()
        return known

    def verdict(self) -> int:
        """The combined verdict of the two passes: with the pods nominated to the node, and without them."""
        return verdicts.with_nominated(
            self._active,
            self.node,
            self._others,
            self._object_verdict,
            cluster_wide=self._cluster_wide,
            again=self._filtering.cycle.cluster.filters_again,
        )
