"""Which pods must leave nodes with NoExecute taints, and when: the decisions of
:mod:`kemu.emulated.controllers.taint_eviction`.

Mirrors ``pkg/controller/tainteviction``. A state machine with explicit time: it is told of changed nodes and
pods, and :meth:`TaintEviction.due` returns the pods to delete. Times are in ns since any origin.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from kemu.emulated.objects import selectors
from kemu.messages.k8s import core_v1_pb2

NO_EXECUTE = "NoExecute"
FOREVER = -1
_SECOND_NS = 1_000_000_000
_LONGEST_S = (2**63 - 1) // _SECOND_NS
_FEW = 64
"""So many stale entries of the agenda do no harm."""


def shortest_toleration_s(tolerations: Sequence[core_v1_pb2.Toleration]) -> int:
    """The least ``tolerationSeconds``: 0 without tolerations or where one is not positive; FOREVER: no limit."""
    if not tolerations:
        return 0
    limits = [one.tolerationSeconds for one in tolerations if one.HasField("tolerationSeconds")]
    if not limits:
        return FOREVER
    least = max(0, min(limits))
    # In Go the nanoseconds of more than 292 years overflow, and a negative duration is no limit.
    return least if least <= _LONGEST_S else FOREVER


def tolerated_s(tolerations: Iterable[core_v1_pb2.Toleration], taints: Iterable[core_v1_pb2.Taint]) -> int:
    """How long a pod may stay on a node with these NoExecute taints. Of each taint the first toleration counts."""
    used = []
    tolerations = list(tolerations)
    for taint in taints:
        first = next((one for one in tolerations if selectors.tolerates(one, taint)), None)
        if first is None:
            return 0
        used.append(first)
    return shortest_toleration_s(used)


class TaintEviction:
    """See the module. Pods are known by their key, ``namespace/name`` or anything else that is unique."""

    def __init__(self) -> None:
        self._taints: dict[str, list[Any]] = {}
        """NoExecute taints of the nodes that have any."""
        self._pods: dict[str, Any] = {}
        self._by_node: dict[str, dict[str, None]] = {}
        self._due: dict[str, tuple[int, int]] = {}
        """By pod: when it was scheduled to go, and for when."""
        self._agenda: list[tuple[int, str]] = []
        """Heap of times; entries that are not in ``_due`` any more are stale."""

    def set_node(self, name: str, taints: Iterable[core_v1_pb2.Taint], now_ns: int) -> None:
        """A node was added or has changed."""
        taints = [taint for taint in taints if taint.effect == NO_EXECUTE]
        if taints == self._taints.get(name, []):
            return
        if taints:
            self._taints[name] = taints
        else:
            del self._taints[name]
        for key in self._by_node.get(name, ()):
            if taints:
                self._judge(key, now_ns)
            else:
                self._due.pop(key, None)

    def forget_node(self, name: str) -> None:
        """A node was deleted. What is scheduled stays so: its pods are gone with it."""
        self._taints.pop(name, None)

    def set_pod(self, key: str, pod: core_v1_pb2.Pod, now_ns: int) -> None:
        """A pod was added or has changed."""
        old = self._pods.get(key)
        node = pod.spec.nodeName
        if old is not None and old.spec.nodeName == node and _same(old.spec.tolerations, pod.spec.tolerations):
            self._pods[key] = pod
            return
        if old is not None and old.spec.nodeName != node:
            self._leave(old.spec.nodeName, key)
        self._pods[key] = pod
        if node:
            self._by_node.setdefault(node, {})[key] = None
            if node in self._taints:
                self._judge(key, now_ns)

    def forget_pod(self, key: str) -> None:
        """A pod was deleted, by whomever."""
        pod = self._pods.pop(key, None)
        if pod is not None:
            self._leave(pod.spec.nodeName, key)
        self._due.pop(key, None)

    def next_ns(self) -> int | None:
        """When the next pod has to go."""
        agenda = self._agenda
        while agenda and self._is_stale(*agenda[0]):
            heapq.heappop(agenda)
        return agenda[0][0] if agenda else None

    def due(self, now_ns: int) -> list[tuple[int, str]]:
        """The pods to delete by now, with the times at which they had to go. Each is named once."""
        found = []
        while (at_ns := self.next_ns()) is not None and at_ns <= now_ns:
            at_ns, key = heapq.heappop(self._agenda)
            del self._due[key]
            found.append((at_ns, key))
        return found

    def _leave(self, node: str, key: str) -> None:
        pods = self._by_node.get(node)
        if pods is not None:
            pods.pop(key, None)
            if not pods:
                del self._by_node[node]

    def _is_stale(self, at_ns: int, key: str) -> bool:
        scheduled = self._due.get(key)
        return scheduled is None or scheduled[1] != at_ns

    def _judge(self, key: str, now_ns: int) -> None:
        pod = self._pods[key]
        taints = self._taints[pod.spec.nodeName]
        tolerations = pod.spec.tolerations
        if selectors.untolerated_taint(taints, tolerations, (NO_EXECUTE,)) is not None:
            self._schedule(key, now_ns, now_ns)
            return
        stay_s = tolerated_s(tolerations, taints)
        if stay_s == FOREVER:
            self._due.pop(key, None)
            return
        scheduled = self._due.get(key)
        # Once the time runs, other tolerations do not change it.
        if scheduled is None or scheduled[0] >= now_ns:
            self._schedule(key, now_ns, now_ns + stay_s * _SECOND_NS)

    def _schedule(self, key: str, now_ns: int, at_ns: int) -> None:
        self._due[key] = (now_ns, at_ns)
        agenda = self._agenda
        heapq.heappush(agenda, (at_ns, key))
        if len(agenda) > 2 * len(self._due) + _FEW:
            # Most are stale, and some of those may lie years ahead.
            agenda[:] = [entry for entry in agenda if not self._is_stale(*entry)]
            heapq.heapify(agenda)


def _same(old: Sequence[core_v1_pb2.Toleration], new: Sequence[core_v1_pb2.Toleration]) -> bool:
    return list(old) == list(new)
