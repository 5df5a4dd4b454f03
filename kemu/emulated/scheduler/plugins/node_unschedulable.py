"""NodeUnschedulable: only pods that tolerate it fit on cordoned nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kemu.emulated.objects import selectors
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.events import Event, Hint, of_the_pod_itself
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, FilterPlugin, Scope, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable
from kemu.messages.k8s import core_v1_pb2

_TAINT = core_v1_pb2.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_UNSCHEDULABLE = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(FilterPlugin, SignPlugin):
    scope = Scope.NODE_OBJECT

    def prepare(self, cycle: Cycle) -> Any:
        return SKIP if _tolerates(cycle.template) else None

    def verdict(self, state: None, node: NodeInfo) -> int:
        return 1 if node.unschedulable else 0

    def verdicts(self, state: None, cluster: Cluster) -> IntArray | None:
        if not cluster.unschedulable_nodes:
            return None
        return cluster.unschedulable[: len(cluster)].astype(np.int64)

    def explain(self, state: None, verdict: int) -> Status:
        return _UNSCHEDULABLE

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.tolerations(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.NODE_ADD, lambda pod, old, new: not new.spec.unschedulable),
            (Event.NODE_TAINTS, lambda pod, old, new: old.spec.unschedulable and not new.spec.unschedulable),
            (Event.POD_TOLERATIONS, _tolerates_now),
        ]


def _tolerates(template: Template) -> bool:
    return selectors.tolerates_any(template.tolerations, _TAINT)


def _tolerates_now(pod: PodInfo, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> bool:
    return of_the_pod_itself(pod, old, new) and selectors.tolerates_any(new.spec.tolerations, _TAINT)
