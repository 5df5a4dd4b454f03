"""TaintToleration: rejects nodes with taints that the pod does not tolerate; PreferNoSchedule lowers the score."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from kemu.emulated.objects import selectors
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo, Taint
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.events import Event, Hint, of_the_pod_itself, taints_of
from kemu.emulated.scheduler.framework.interfaces import Cycle, FilterPlugin, Scope, ScorePlugin, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable
from kemu.emulated.scheduler.plugins import normalizing
from kemu.messages.k8s import core_v1_pb2

_UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")
_FORBIDDING = ("NoSchedule", "NoExecute")
_DISCOURAGING = "PreferNoSchedule"
_MOST_SETS = 4096


class _Answers:
    """A number for each set of taints, computed when a node first has that set."""

    __slots__ = ("by_set", "by_taints", "numbering", "tolerations", "work_out")

    def __init__(self, tolerations: tuple[Any, ...], work_out: Callable[..., Any]) -> None:
        self.tolerations = tolerations
        self.work_out = work_out
        self.by_set: list[int] = []
        """By number of the taint set in the cluster."""
        self.by_taints: dict[tuple[Taint, ...], int] = {}
        self.numbering = 0

    def of(self, taints: tuple[Taint, ...]) -> int:
        answer = self.by_taints.get(taints)
        if answer is None:
            if len(self.by_taints) >= _MOST_SETS:
                self.by_taints.clear()
            answer = self.by_taints[taints] = self.work_out(self.tolerations, taints)
        return answer

    def column(self, cluster: Cluster) -> IntArray | None:
        """By row; None when the answer is 0 for every set of taints in the cluster."""
        if self.numbering != cluster.taint_numbering:
            self.numbering = cluster.taint_numbering
            self.by_set.clear()
        for taints in cluster.taint_sets[len(self.by_set) :]:
            self.by_set.append(self.of(taints))
        if not any(self.by_set):
            return None
        return np.array(self.by_set, dtype=np.int64)[cluster.taint_set_ids[: len(cluster)]]


class TaintToleration(FilterPlugin, ScorePlugin, SignPlugin):
    scope = Scope.NODE_OBJECT
    normalizes = True

    def prepare(self, cycle: Cycle) -> Any:
        return _Answers(cycle.template.tolerations, _is_forbidden)

    def verdict(self, state: _Answers, node: NodeInfo) -> int:
        return state.of(node.taints)

    def verdicts(self, state: _Answers, cluster: Cluster) -> IntArray | None:
        return state.column(cluster)

    def explain(self, state: _Answers, verdict: int) -> Status:
        return _UNTOLERATED

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> Any:
        counted = tuple(one for one in cycle.template.tolerations if one.effect in ("", _DISCOURAGING))
        return _Answers(counted, _count_discouraging)

    def score(self, state: _Answers, node: NodeInfo) -> int:
        return state.of(node.taints)

    def scores(self, state: _Answers, cluster: Cluster, rows: IntArray | None) -> IntArray:
        column = state.column(cluster)
        if column is None:
            return np.zeros(len(cluster) if rows is None else len(rows), dtype=np.int64)
        return column if rows is None else column[rows]

    def normalize(self, state: _Answers, scores: IntArray) -> IntArray:
        return normalizing.by_maximum(scores, reverse=True)

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.tolerations(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.NODE_ADD, lambda pod, old, new: _tolerated(pod, new)),
            (Event.NODE_TAINTS, _tolerated_now),
            (Event.POD_TOLERATIONS, of_the_pod_itself),
        ]


def _is_forbidden(tolerations: tuple[Any, ...], taints: tuple[Taint, ...]) -> int:
    return 0 if selectors.untolerated_taint(taints, tolerations, _FORBIDDING) is None else 1


def _count_discouraging(tolerations: tuple[Any, ...], taints: tuple[Taint, ...]) -> int:
    return sum(
        1 for taint in taints if taint.effect == _DISCOURAGING and not selectors.tolerates_any(tolerations, taint)
    )


def _tolerated(pod: PodInfo, node: core_v1_pb2.Node) -> bool:
    return selectors.untolerated_taint(node.spec.taints, pod.template.tolerations, _FORBIDDING) is None


def _tolerated_now(pod: PodInfo, old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> bool:
    return taints_of(old) != taints_of(new) and not _tolerated(pod, old) and _tolerated(pod, new)
