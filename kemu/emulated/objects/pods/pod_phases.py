"""The phases of a pod, and which of them are terminal.

Mirrors ``IsPodTerminal`` of ``pkg/api/v1/pod``. The kubelet sets the phase
(:mod:`kemu.emulated.kubelet.pods.statuses`), and the garbage collector of pods does where the node is lost. All others
only read it.
"""

from __future__ import annotations

from kemu.messages.k8s import core_v1_pb2

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
TERMINAL = (SUCCEEDED, FAILED)
"""No pod leaves these phases: its containers have ended for good, and it holds no resources of its node."""

NOT_TERMINAL = ",".join(f"status.phase!={phase}" for phase in TERMINAL)
"""The field selector of all other pods."""


def is_terminal(pod: core_v1_pb2.Pod) -> bool:
    """Whether the pod is in a phase that it does not leave."""
    return pod.status.phase in TERMINAL
