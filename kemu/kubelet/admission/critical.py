"""Which pods the kubelet holds dear, and who may be killed for whom.

Mirrors ``pkg/kubelet/types`` (``IsCriticalPod``, ``IsNodeCriticalPod``, ``Preemptable``).
"""

from __future__ import annotations

from typing import Any

from kemu.kubelet.admission.predicates import MIRROR_ANNOTATION, is_critical, is_static

NODE_CRITICAL_CLASS = "system-node-critical"

__all__ = ["is_critical", "is_mirror", "is_node_critical", "is_static", "preemptable"]


def is_mirror(pod: Any) -> bool:
    """The object by which a static pod is seen in the API server."""
    return MIRROR_ANNOTATION in pod.metadata.annotations


def is_node_critical(pod: Any) -> bool:
    """Critical, and of the class ``system-node-critical``."""
    return is_critical(pod) and pod.spec.priorityClassName == NODE_CRITICAL_CLASS


def preemptable(preemptor: Any, victim: Any) -> bool:
    """Whether ``victim`` may be killed for ``preemptor``: a critical pod goes before one that is not; otherwise both
    must have a priority, and the preemptor's be the higher."""
    if is_critical(preemptor) and not is_critical(victim):
        return True
    if preemptor.spec.HasField("priority") and victim.spec.HasField("priority"):
        return bool(preemptor.spec.priority > victim.spec.priority)
    return False
