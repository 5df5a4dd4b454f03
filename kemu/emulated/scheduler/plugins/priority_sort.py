"""PrioritySort: by priority, then by time; and the FIFO order that preceded priorities."""

from __future__ import annotations

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.interfaces import QueueSortPlugin


class PrioritySort(QueueSortPlugin):
    def sort_key(self, pod: PodInfo, timestamp_ns: int) -> tuple[int, ...]:
        return (-pod.priority, timestamp_ns)


class FirstInFirstOut(QueueSortPlugin):
    """``policy.queue: fifo``: a pod that failed goes to the end of the queue, whatever its priority."""

    def sort_key(self, pod: PodInfo, timestamp_ns: int) -> tuple[int, ...]:
        return (timestamp_ns,)
