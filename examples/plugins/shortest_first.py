"""A QueueSort plugin of one's own: of pods of equal priority, the one that runs shortest comes first.

How long a pod will run is known to no real scheduler, so a scenario has to allow it: ``policy: {runTimes: known}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.scheduler.framework import Handle, PodInfo, QueueSortPlugin

FOR_EVER_MS = 2**62


class ShortestFirst(QueueSortPlugin):
    """Priority, then run time, then the time at which the pod came to the queue."""

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.run_times = handle.run_times()

    def sort_key(self, pod: PodInfo, timestamp_ns: int) -> tuple[int, ...]:
        total_s = self.run_times.total_s(pod)
        return (-pod.priority, FOR_EVER_MS if total_s is None else round(total_s * 1000), timestamp_ns)
