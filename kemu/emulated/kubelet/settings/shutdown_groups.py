"""Graceful node shutdown as configured: groups of pods by priority, and the time that each group has.

Mirrors ``migrateConfig`` and ``periodRequested`` of ``pkg/kubelet/nodeshutdown``.
:mod:`kemu.emulated.kubelet.node.shutdowns` acts on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DEFAULT_PRIORITY, CRITICAL_PRIORITY = 0, 2_000_000_000


@dataclass(frozen=True, slots=True)
class Group:
    """Pods from this priority up to that of the next group, and the time that they have together."""

    priority: int
    grace_s: int


def requested_s(groups: Iterable[Group]) -> int:
    """How long the machine waits for the kubelet at most (``periodRequested``)."""
    return sum(group.grace_s for group in groups)
