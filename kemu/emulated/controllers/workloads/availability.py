"""When a pod counts as available: ready for ``minReadySeconds`` (``podutil.IsPodAvailable``)."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS


def is_available(pod: core_v1_pb2.Pod, min_ready_s: int, now_unix_ns: int) -> bool:
    if not meta.is_ready(pod):
        return False
    return min_ready_s == 0 or _available_ns(pod, min_ready_s) <= now_unix_ns


def next_check_s(pods: Iterable[core_v1_pb2.Pod], min_ready_s: int, now_unix_ns: int) -> float | None:
    """Until the next of the ready pods becomes available (``FindMinNextPodAvailabilityCheck``); None: all are."""
    waits_ns = [
        _available_ns(pod, min_ready_s) - now_unix_ns
        for pod in pods
        if meta.is_ready(pod) and not is_available(pod, min_ready_s, now_unix_ns)
    ]
    return max(0.0, min(waits_ns) / SECOND_NS) if waits_ns else None


def _available_ns(pod: core_v1_pb2.Pod, min_ready_s: int) -> int:
    ready = meta.get_condition(pod.status.conditions, "Ready")
    assert ready is not None
    return meta.unix_ns(ready.lastTransitionTime) + min_ready_s * SECOND_NS
