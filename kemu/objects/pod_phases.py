"""The phases of a pod, and whether one is its last.

Mirrors ``IsPodTerminal`` of ``pkg/api/v1/pod``. The kubelet decides on the phase (:mod:`kemu.kubelet.pods.statuses`),
and where its node is lost, the garbage collector of pods; all others only ask.
"""

from __future__ import annotations

from typing import Any

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
TERMINAL = (SUCCEEDED, FAILED)
"""No pod leaves these: its containers have ended for good, and it holds nothing of its node any more."""

NOT_TERMINAL = ",".join(f"status.phase!={phase}" for phase in TERMINAL)
"""The field selector of all other pods."""


def is_terminal(pod: Any) -> bool:
    """Whether the pod is in a phase that it does not leave."""
    return pod.status.phase in TERMINAL
