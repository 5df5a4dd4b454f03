"""How long a Job waits before it creates pods again (``backoff_utils.go`` of ``pkg/controller/job``).

After one failure 10 s, then twice as long each time, up to ten minutes; a success begins anew. What has failed since
the last success is kept in memory: a controller that starts again counts from what it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

FIRST_NS = 10 * SECOND_NS
"""``DefaultJobPodFailureBackOff``."""
MAX_NS = 600 * SECOND_NS
"""``MaxJobPodFailureBackOff``."""


class Record(NamedTuple):
    """Record of one Job."""

    failures: int = 0
    """Since the last success."""
    last_failure_ns: int = 0
    """Unix time."""

    def after(self, succeeded: Sequence[core_v1_pb2.Pod], failed: Sequence[core_v1_pb2.Pod]) -> Record:
        """With pods that have ended since (``newBackoffRecord``)."""
        if not succeeded:
            if not failed:
                return self
            return Record(self.failures + len(failed), max(finished_ns(pod) for pod in failed))
        last_success_ns = max(finished_ns(pod) for pod in succeeded)
        later = [at_ns for at_ns in map(finished_ns, failed) if at_ns > last_success_ns]
        return Record(len(later), max(later, default=0))

    def remaining_ns(self, now_ns: int) -> int:
        return remaining_ns(self.failures, self.last_failure_ns, now_ns)


def remaining_ns(failures: int, last_failure_ns: int, now_ns: int) -> int:
    """``getRemainingTimeForFailuresCount``."""
    if failures == 0:
        return 0
    backoff_ns = min(FIRST_NS << min(failures - 1, 16), MAX_NS)
    return max(0, backoff_ns - (now_ns - last_failure_ns))


def finished_ns(pod: core_v1_pb2.Pod) -> int:
    """When a pod has ended (``getFinishedTime``), in Unix time: when its last container has, it was no longer ready, it
    was deleted, or was created, whichever of these is known first."""
    found = _containers_finished_ns(pod)
    if found is not None:
        return found
    ready = meta.get_condition(pod.status.conditions, "Ready")
    if ready is not None and ready.status == "False" and ready.lastTransitionTime.seconds:
        return meta.unix_ns(ready.lastTransitionTime)
    metadata = pod.metadata
    if metadata.HasField("deletionTimestamp"):
        return meta.unix_ns(metadata.deletionTimestamp) - int(metadata.deletionGracePeriodSeconds) * SECOND_NS
    return meta.unix_ns(metadata.creationTimestamp)


def _containers_finished_ns(pod: core_v1_pb2.Pod) -> int | None:
    """None: one of them is not known to have ended. Sidecars end after the rest. Mirrors ``latestFinishTime``: where
    sidecars are not known to have ended, nothing is known, as where regular containers are not, unless there are
    sidecars that have."""
    latest = _latest_ns(None, pod.status.containerStatuses)
    sidecars = {one.name for one in pod.spec.initContainers if one.restartPolicy == "Always"}
    return _latest_ns(latest, [one for one in pod.status.initContainerStatuses if one.name in sidecars])


def _latest_ns(latest: int | None, statuses: Sequence[core_v1_pb2.ContainerStatus]) -> int | None:
    for status in statuses:
        terminated = status.state.terminated
        if not status.state.HasField("terminated") or not terminated.finishedAt.seconds:
            return None
        at_ns = meta.unix_ns(terminated.finishedAt)
        if latest is None or latest < at_ns:
            latest = at_ns
    return latest
