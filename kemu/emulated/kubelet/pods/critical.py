"""Critical pods, and which pods they may preempt.

Mirrors ``pkg/kubelet/types`` (``IsCriticalPod``, ``IsNodeCriticalPod``, ``IsStaticPod``, ``Preemptable``).
"""

from __future__ import annotations

from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2

STATIC_ANNOTATION = "kubernetes.io/config.source"
CRITICAL_PRIORITY = 2_000_000_000
NODE_CRITICAL_CLASS = "system-node-critical"


def is_static(pod: core_v1_pb2.Pod) -> bool:
    """Read from a file on the node rather than from the API server (any source but ``api``, even an empty one)."""
    annotations = pod.metadata.annotations
    return STATIC_ANNOTATION in annotations and annotations[STATIC_ANNOTATION] != "api"


def is_critical(pod: core_v1_pb2.Pod) -> bool:
    """Static, the mirror of a static pod, or of a system priority: the kubelet may kill others for it."""
    return (
        pod.spec.priority >= CRITICAL_PRIORITY or is_static(pod) or meta.MIRROR_ANNOTATION in pod.metadata.annotations
    )


def is_mirror(pod: core_v1_pb2.Pod) -> bool:
    """The object by which a static pod is seen in the API server."""
    return meta.MIRROR_ANNOTATION in pod.metadata.annotations


def is_node_critical(pod: core_v1_pb2.Pod) -> bool:
    """Critical, and of the class ``system-node-critical``."""
    return is_critical(pod) and pod.spec.priorityClassName == NODE_CRITICAL_CLASS


def preemptable(preemptor: core_v1_pb2.Pod, victim: core_v1_pb2.Pod) -> bool:
    """Whether ``victim`` may be killed for ``preemptor``: a critical pod goes before one that is not; otherwise both
    must have a priority, and the preemptor's be the higher."""
    if is_critical(preemptor) and not is_critical(victim):
        return True
    if preemptor.spec.HasField("priority") and victim.spec.HasField("priority"):
        return bool(preemptor.spec.priority > victim.spec.priority)
    return False
