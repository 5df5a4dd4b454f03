"""After a failed attempt: the pod returns to the queue, and its status and an Event say why.

Mirrors ``handleSchedulingFailure`` (``pkg/scheduler``, schedule_one.go). Both cycles end here when they fail, with a
:class:`Failure`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cycle import diagnoses
from kemu.emulated.scheduler.cycle.status_updates import Reporter
from kemu.emulated.scheduler.experiments.switches import Policy
from kemu.emulated.scheduler.framework.statuses import PENDING, Status
from kemu.emulated.scheduler.queue.queues import QueuedPod, SchedulingQueue
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
"""Reasons of the condition PodScheduled."""


class Failure(NamedTuple):
    """Why an attempt failed."""

    message: str
    rejectors: tuple[str, ...] = ()
    """The plugins whose events may help the pod. Without any it is retried when its backoff ends."""
    reason: str = UNSCHEDULABLE
    pending: tuple[str, ...] = ()
    """Those of the rejectors that answered Pending."""


def failure_of(status: Status, rejector: str | None) -> Failure:
    """The failure behind a status from Reserve on. ``rejector``: the plugin whose events may help, if one may."""
    if not status.rejected:
        return Failure(status.message, reason=SCHEDULER_ERROR)
    if rejector is None:
        return Failure(status.message)
    pending = (rejector,) if status.code == PENDING else ()
    return Failure(diagnoses.failure_message(1, [(status, 1)]), (rejector,), pending=pending)


class FailureHandler:
    """``seen``: every pod as the watch last showed it, by UID."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        reporter: Reporter,
        policy: Policy,
        seen: Mapping[str, Any],
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._reporter = reporter
        self._policy = policy
        self._seen = seen

    async def handle(self, pod: QueuedPod, failure: Failure, nominate: str | None = "") -> None:
        """Requeue the pod and report why. ``nominate``: a node, "" to clear the nomination, None to leave it.

        A pod that another scheduler has bound is reported on, too: its status says PodScheduled=False then until its
        kubelet writes it again. A pod that was deleted is not, if there is a new one of its name that waits.
        """
        latest = self._requeue(pod, failure, nominate)
        if pod.info.uid not in self._seen and self._is_recreated(pod.info.pod.metadata):
            return
        await self._reporter.failed(latest, failure.message, nominate, failure.reason)

    def _is_recreated(self, deleted: meta_v1_pb2.ObjectMeta) -> bool:
        # A search, as this is rare: by name, the lister's key, pods are not kept.
        for pod in self._seen.values():
            metadata = pod.metadata
            if metadata.name == deleted.name and metadata.namespace == deleted.namespace and not pod.spec.nodeName:
                return True
        return False

    def assumed(self, uid: str, nomination: str) -> None:
        """The attempt has assumed the pod; its object stated this nomination, or ""."""

    def is_unassigned(self, uid: str) -> bool:
        """Whether the watch has not shown the pod on a node."""
        latest = self._seen.get(uid)
        return latest is None or not latest.spec.nodeName

    def _requeue(self, pod: QueuedPod, failure: Failure, nominate: str | None) -> core_v1_pb2.Pod:
        """Return the pod to the queue as it is now, unless it was deleted or another scheduler placed it.

        Returns the object to report on.
        """
        uid, nominator, tried = pod.info.uid, self._cluster.nominator, pod.info.pod
        latest = self._seen.get(uid)
        if latest is None or latest.spec.nodeName:
            self._queue.done(uid)
            nominator.remove(uid)
            self._retired(pod, latest, nominate)
            return tried
        if latest is not tried:
            pod.info = self._cluster.pending(latest)
        self._queue.failed(pod, failure.rejectors, failure.pending)
        if self._policy.nomination:
            self._nominate(pod, latest, nominate)
        return latest

    def _retired(self, pod: QueuedPod, latest: core_v1_pb2.Pod | None, nominate: str | None) -> None:
        """The pod does not return to the queue: it was deleted (``latest`` is None), or another scheduler placed it."""

    def _nominate(self, pod: QueuedPod, latest: core_v1_pb2.Pod, nominate: str | None) -> None:
        node = self._reporter.nomination(latest) if nominate is None else nominate
        self._cluster.nominator.nominate(pod.info, node)
