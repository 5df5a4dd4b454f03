"""What a plugin answers about a pod and a node: status codes of the scheduling framework."""

from __future__ import annotations

from typing import Final, NamedTuple

UNSCHEDULABLE: Final = "Unschedulable"
"""Not now; removing pods may help."""
UNRESOLVABLE: Final = "UnschedulableAndUnresolvable"
"""Not now, and removing pods from the node cannot help."""
ERROR: Final = "Error"
WAIT: Final = "Wait"
"""Permit: not yet."""
PENDING: Final = "Pending"
"""Not now, but what the pod waits for is under way: when the plugin's event comes, the pod is tried without backoff."""


class Status(NamedTuple):
    """An answer other than success. ``plugin`` is filled in by the framework."""

    code: str
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def rejected(self) -> bool:
        """A plugin rejected the pod, as opposed to an error."""
        return self.code in (UNSCHEDULABLE, UNRESOLVABLE, PENDING)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


def unschedulable(*reasons: str) -> Status:
    return Status(UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(UNRESOLVABLE, reasons)
