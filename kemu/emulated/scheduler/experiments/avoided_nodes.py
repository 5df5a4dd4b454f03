"""Nodes that a workload has to avoid, because their kubelet evicted or rejected one of its pods (``avoidEvictedNode``).

The design document: if a pod is evicted by the kubelet, the scheduler "should avoid the node and should try scheduling
the pod on a different node", lest kubelet and scheduler play ping-pong. The scheduler does not see usage, so without
this the node looks as good as before.

The evidence is in the API alone: a pod on a node with phase Failed and a reason that only kubelets give, for an
eviction or a failed admission. Pods of the same workload replace it; as nothing says which pod replaces which, all of
them avoid the node. The time runs from when this scheduler learns of the failure; after a restart it begins again. The
filter is :mod:`kemu.emulated.scheduler.plugins.avoid_evicted_node`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Clock

ENDED_BADLY = f"status.phase={pod_phases.FAILED}"
"""Field selector of the pods to watch."""

WORKLOAD_LABEL = "kemu.dev/workload"
"""On the pods of a scenario's workload, which have no controller."""

_REASONS = (
    "Evicted",
    "Preempting",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "TaintToleration",
    "UnexpectedAdmissionError",
)
"""Evicted under pressure; preempted for a critical pod; not admitted. Reasons that begin with OutOf count too."""

Workload = tuple[str, str, str]
"""Kind of identity, namespace, and what tells it from others."""


def workload_of(pod: core_v1_pb2.Pod) -> Workload:
    """The workload of a pod: its controller, its scenario's workload, its ``generateName``, or else its own name."""
    metadata = pod.metadata
    controller = meta.controller_of(pod)
    if controller is not None:
        return "controller", metadata.namespace, controller.uid
    if WORKLOAD_LABEL in metadata.labels:
        return "workload", metadata.namespace, metadata.labels[WORKLOAD_LABEL]
    if metadata.generateName:
        return "generateName", metadata.namespace, metadata.generateName
    return "name", metadata.namespace, metadata.name


def is_thrown_out(pod: core_v1_pb2.Pod) -> bool:
    """Whether a kubelet evicted the pod, or did not admit it."""
    reason = pod.status.reason
    return (
        pod.status.phase == pod_phases.FAILED
        and bool(pod.spec.nodeName)
        and (reason in _REASONS or reason[:5] == "OutOf")
    )


class AvoidedNodes:
    """The handler of an informer of failed pods."""

    def __init__(
        self,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
        duration_s: float,
        on_over: Callable[[Any], object],
    ) -> None:
        """``on_over`` is called with a failed pod whose workload may use the node again."""
        self._clock = clock
        self._spawn = spawn
        self._duration_ns = round(duration_s * SECOND_NS)
        self._on_over = on_over
        self._until_ns: dict[Workload, dict[str, int]] = {}
        """By workload, then by node."""

    def of(self, pod: core_v1_pb2.Pod) -> Mapping[str, int]:
        """The nodes that a pod has to avoid, and until when."""
        return self._until_ns.get(workload_of(pod), {})

    def on_add(self, pod: core_v1_pb2.Pod) -> None:
        if not is_thrown_out(pod):
            return
        workload, node = workload_of(pod), pod.spec.nodeName
        until_ns = self._clock.now_ns() + self._duration_ns
        self._until_ns.setdefault(workload, {})[node] = until_ns
        self._spawn(self._forget(pod, workload, node, until_ns), f"avoid {node}")

    def on_update(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        """A pod that has failed does not fail again."""

    def on_delete(self, old: core_v1_pb2.Pod) -> None:
        """The deletion of a failed pod says nothing about the node."""

    async def _forget(self, pod: core_v1_pb2.Pod, workload: Workload, node: str, until_ns: int) -> None:
        await self._clock.sleep_until_ns(until_ns)
        nodes = self._until_ns[workload]
        if nodes[node] != until_ns:
            # Another pod was evicted in the meantime.
            return
        del nodes[node]
        if not nodes:
            del self._until_ns[workload]
        self._on_over(pod)
