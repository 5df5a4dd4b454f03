"""The nominator: which pending pods are expected to run on which node once their victims have terminated.

``NodeInfo.nominated`` is what :meth:`Nominator.on` gives. It is live, not part of an attempt's snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kemu.emulated.scheduler.cache.pods import PodInfo


class Nominator:
    """Pods by the node that they are nominated to."""

    def __init__(self, on_change: Callable[[str], object]) -> None:
        """``on_change`` is called with the name of a node whose nominations changed."""
        self._on_change = on_change
        self._pods: dict[str, PodInfo] = {}
        self.nodes: dict[str, list[PodInfo]] = {}
        """The nodes that pods are nominated to, by name."""
        self.repelling: dict[str, None] = {}
        """UIDs of nominated pods with anti-affinity: they may repel others."""

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Replaces an earlier nomination of the same pod."""
        self.remove(pod.uid)
        if not node:
            return
        pod.nominated = node
        self._know(pod)
        self.nodes.setdefault(node, []).append(pod)
        self._on_change(node)

    def renew(self, pod: PodInfo, old_status: str, new_status: str) -> None:
        """A waiting pod was updated; ``old_status`` and ``new_status`` are the nominations in its status.

        A nomination that exists in memory only, because the watch has not shown its write yet, is kept.
        """
        known = self._pods.get(pod.uid)
        wanted = new_status if old_status or new_status else known.nominated if known is not None else ""
        if known is None or known.nominated != wanted or known.requests != pod.requests:
            self.nominate(pod, wanted)
        elif known is not pod:
            pods = self.nodes[wanted]
            pods[pods.index(known)] = pod
            self._know(pod)
            pod.nominated = wanted

    def _know(self, pod: PodInfo) -> None:
        self._pods[pod.uid] = pod
        self.repelling.pop(pod.uid, None)
        if pod.template.anti_affinity_terms:
            self.repelling[pod.uid] = None

    def remove(self, uid: str) -> str:
        """Returns the node that the pod was nominated to, or ""."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return ""
        self.repelling.pop(uid, None)
        node = pod.nominated
        pod.nominated = ""
        pods = self.nodes[node]
        pods.remove(pod)
        if not pods:
            del self.nodes[node]
        self._on_change(node)
        return node

    def node_of(self, uid: str) -> str:
        pod = self._pods.get(uid)
        return pod.nominated if pod is not None else ""

    def pods(self) -> Iterable[PodInfo]:
        """All nominated pods."""
        return self._pods.values()

    def on(self, node: str) -> Sequence[PodInfo]:
        """The pods nominated to a node, in order of nomination; live, as long as there is one."""
        return self.nodes.get(node, ())

    def __len__(self) -> int:
        return len(self._pods)
