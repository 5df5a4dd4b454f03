"""Every pod of a Job is counted exactly once, whatever crashes (``tracking_utils.go`` of ``pkg/controller/job``).

A pod keeps the finalizer ``batch.kubernetes.io/job-tracking`` until it is counted. First its UID goes into the Job's
``status.uncountedTerminatedPods``; then the finalizer is removed; then, in one write, the UID leaves the list and the
counter grows. A controller that dies between any two of these steps finds out from list and finalizer what is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2

FINALIZER = "batch.kubernetes.io/job-tracking"

MAX_UNCOUNTED = 500
"""UIDs in a status (``MaxUncountedPods``)."""

REMOVAL = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
"""A strategic patch."""


def has_finalizer(pod: core_v1_pb2.Pod) -> bool:
    return FINALIZER in pod.metadata.finalizers


def count_finalized(status: batch_v1_pb2.JobStatus, with_finalizer: Collection[str]) -> bool:
    """Count the pods of the list that have lost their finalizer (``cleanUncountedPodsWithoutFinalizers``). Returns
    whether there are any."""
    changed = False
    uncounted = status.uncountedTerminatedPods
    for field in ("succeeded", "failed"):
        uids = getattr(uncounted, field)
        left = [uid for uid in uids if uid in with_finalizer]
        if len(left) != len(uids):
            changed = True
            setattr(status, field, getattr(status, field) + len(uids) - len(left))
            del uids[:]
            uids.extend(left)
    return changed


class ExpectedRemovals:
    """Pods whose finalizers were removed, and whose watch events have not shown it yet, by key of the Job."""

    def __init__(self) -> None:
        self._uids: dict[str, dict[str, None]] = {}

    def of(self, job: str) -> frozenset[str]:
        return frozenset(self._uids.get(job, ()))

    def expect(self, job: str, uids: Iterable[str]) -> None:
        self._uids.setdefault(job, {}).update(dict.fromkeys(uids))

    def observe(self, job: str, uid: str) -> None:
        self._uids.get(job, {}).pop(uid, None)

    def forget(self, job: str) -> None:
        self._uids.pop(job, None)
