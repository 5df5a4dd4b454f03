"""PrioritySort: high priority first, then first come, first served. And the FIFO of the old days."""

from __future__ import annotations

from kemu.scheduler.framework import QueueSortPlugin
from kemu.scheduler.pods import PodInfo


class PrioritySort(QueueSortPlugin):
    def sort_key(self, pod: PodInfo, timestamp_ns: int) -> tuple[int, ...]:
        return (-pod.priority, timestamp_ns)


class FirstInFirstOut(QueueSortPlugin):
    """``policy.queue: fifo``: a pod that failed goes to the end of the queue, whatever its priority."""

    def sort_key(self, pod: PodInfo, timestamp_ns: int) -> tuple[int, ...]:
        return (timestamp_ns,)
