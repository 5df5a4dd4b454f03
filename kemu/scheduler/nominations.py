"""The nominator: which pending pods are expected to run on which node, once their victims are gone.

Nodes hold the nominator's own lists (``NodeInfo.nominated``). It is live, not part of the snapshot of a slow attempt.
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.scheduler.pods import PodInfo


class Nominator:
    """Pods by the node that they are nominated to."""

    def __init__(self, on_change: Callable[[str], object]) -> None:
        """``on_change`` is told the name of a node whose nominations changed."""
        self._on_change = on_change
        self._pods: dict[str, PodInfo] = {}
        self._by_node: dict[str, list[PodInfo]] = {}

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Replaces an earlier nomination of the same pod."""
        self.remove(pod.uid)
        if not node:
            return
        pod.nominated = node
        self._pods[pod.uid] = pod
        self.on(node).append(pod)
        self._on_change(node)

    def remove(self, uid: str) -> str:
        """Returns the node that the pod was nominated to, or ""."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return ""
        node = pod.nominated
        pod.nominated = ""
        # The list stays, empty, where a NodeInfo shares it.
        self._by_node[node].remove(pod)
        self._on_change(node)
        return node

    def node_of(self, uid: str) -> str:
        pod = self._pods.get(uid)
        return pod.nominated if pod is not None else ""

    def on(self, node: str) -> list[PodInfo]:
        """The pods nominated to a node, in order of nomination: a live list that callers must not change."""
        pods = self._by_node.get(node)
        if pods is None:
            pods = self._by_node[node] = []
        return pods

    def __len__(self) -> int:
        return len(self._pods)
