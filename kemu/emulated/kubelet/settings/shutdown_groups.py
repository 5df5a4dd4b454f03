"""Graceful node shutdown as configured: groups of pods by priority, and the time that each group has.

Mirrors ``migrateConfig`` and ``periodRequested`` of ``pkg/kubelet/nodeshutdown`` and the checks of
``ValidateKubeletConfiguration``. :mod:`kemu.emulated.kubelet.node.shutdowns` acts on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects import times
from kemu.emulated.objects.plain import Json
from kemu.runtime.env import SECOND_NS

DEFAULT_PRIORITY, CRITICAL_PRIORITY = 0, 2_000_000_000

_PERIOD, _CRITICAL, _BY_PRIORITY = (
    "shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Group:
    """Pods from this priority up to that of the next group, and the time that they have together."""

    priority: int
    grace_s: int


def read(kubelet: Mapping[str, Any]) -> tuple[Group, ...]:
    """The groups of a KubeletConfiguration, the lowest first; none: a shutdown is not held up.

    Raises ValueError that begins with the field.
    """
    period_ns, critical_ns = (_period_ns(kubelet, field) for field in (_PERIOD, _CRITICAL))
    if critical_ns > period_ns:
        raise ValueError(f"{_CRITICAL}: must not be longer than {_PERIOD}")
    listed = kubelet.get(_BY_PRIORITY) or ()
    if listed and period_ns:
        raise ValueError(f"{_BY_PRIORITY}: cannot stand beside {_PERIOD}")
    if listed:
        groups = [
            Group(_whole(one, "priority", index), _whole(one, "shutdownGracePeriodSeconds", index))
            for index, one in enumerate(listed)
        ]
        return tuple(sorted(groups, key=lambda group: group.priority))
    if not period_ns:
        return ()
    return (
        Group(DEFAULT_PRIORITY, (period_ns - critical_ns) // SECOND_NS),
        Group(CRITICAL_PRIORITY, critical_ns // SECOND_NS),
    )


def _period_ns(kubelet: Mapping[str, Any], field: str) -> int:
    found_ns = times.duration_field(kubelet, field)
    if found_ns < 0 or 0 < found_ns < SECOND_NS:
        raise ValueError(f"{field}: must be 0, or 1s at least")
    return found_ns


def _whole(entry: Json, field: str, index: int) -> int:
    """Absent is 0, as in Go."""
    value = entry.get(field, 0) if isinstance(entry, Mapping) else None
    if type(value) is not int:
        raise ValueError(f"{_BY_PRIORITY}: {field} of entry {index} must be a whole number, not {value!r}")
    return value


def requested_s(groups: Iterable[Group]) -> int:
    """How long the machine waits for the kubelet at most (``periodRequested``)."""
    return sum(group.grace_s for group in groups)
