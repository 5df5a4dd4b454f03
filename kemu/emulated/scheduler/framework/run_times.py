"""How long pods still run, as their annotations state it: what only an oracle knows in a real cluster.

self.run_times = handle.run_times()           # in __init__; the scenario must say policy: {runTimes: known}
left_s = self.run_times.remaining_s(pod)      # None: it runs until somebody ends it
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.emulated.objects import meta
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.runtime.env import Clock

RUN_SECONDS = "kemu.dev/run-seconds"


class RunTimes:
    def __init__(self, clock: Callable[[], Clock | None]) -> None:
        """``clock``: of the scheduler; None where no time passes."""
        self._clock = clock

    def total_s(self, pod: PodInfo) -> float | None:
        """Seconds from the start of its containers to the end of the last one; None: for ever, or nobody knows."""
        message = pod.pod
        if message.spec.restartPolicy == "Always":
            return None
        annotations = message.metadata.annotations
        found = 0.0
        for container in message.spec.containers:
            text = annotations.get(f"{RUN_SECONDS}.{container.name}") or annotations.get(RUN_SECONDS) or ""
            try:
                found = max(found, float(text))
            except ValueError:
                return None
        return found

    def remaining_s(self, pod: PodInfo) -> float | None:
        """Seconds until it has run to its end; all of them for a pod that has not started yet.

        The API tells times of the start in whole seconds, so it may be up to a second less than is true.
        """
        total_s, clock = self.total_s(pod), self._clock()
        if total_s is None or clock is None:
            return total_s
        starts = [
            meta.unix_ns(status.state.running.startedAt)
            for status in pod.pod.status.containerStatuses
            if status.state.running.HasField("startedAt")
        ]
        if not starts:
            return total_s
        return max(0.0, total_s - (clock.unix_ns() - max(starts)) / 1e9)
