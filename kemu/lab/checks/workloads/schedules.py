"""The check that CronJobs start their Jobs as their policy says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kemu.emulated.objects import meta
from kemu.lab.checks.attention import sort_of
from kemu.lab.checks.results import seconds
from kemu.lab.checks.workloads.job_counts import JOBS
from kemu.lab.checks.workloads.views import ByView, decided_since
from kemu.messages.k8s import batch_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.runlog.events import Event, FaultBegun, WritesAcknowledged

_ACTOR = "controller/cronjob"
_MINUTE_S = 60


class CronJobsKeepTheirPolicy(ByView):
    """A CronJob starts no Job beside one that runs if its policy is Forbid, and none before the running one is deleted
    if it is Replace; none while it is suspended, before its time, or after ``startingDeadlineSeconds``.

    A Job runs as long as it has neither completed nor failed and is in ``status.active`` of the CronJob: the controller
    asks for both before it counts one as gone or unknown. All versions of the CronJob that the controller may have seen
    when it decided must agree (``syncCronJob``). Where clocks are skewed by a fault no time is judged.
    """

    id: ClassVar[str] = "cron-jobs-keep-their-policy"
    actors: ClassVar[Mapping[type[Event], str]] = {WritesAcknowledged: _ACTOR}
    nothing: ClassVar[str] = "no CronJob started a Job"
    unit: ClassVar[str] = "Job"

    def __init__(self) -> None:
        self._are_clocks_right = True

    def on_event(self, time_ns: int, actor: str, event: WritesAcknowledged | FaultBegun) -> None:
        if isinstance(event, FaultBegun):
            self._are_clocks_right &= not event.what.startswith("clock")
            return
        if sort_of(actor) != _ACTOR or self._is_lost:
            return
        for took_ns, revision, key, _uid, _digest in event.acks:
            change = self._views.change(revision, key) if key.startswith(JOBS) else None
            if change is None or change.previous is not None or change.value is None:
                continue
            asked_ns = time_ns - took_ns
            if change.time_ns >= asked_ns:
                job = batch_v1_pb2.Job.FromString(change.value)
                since_ns = decided_since(self._attention, actor, asked_ns)
                self._started(time_ns, actor, job, since_ns, change.time_ns - since_ns)

    def _started(self, time_ns: int, actor: str, job: batch_v1_pb2.Job, since_ns: int, took_ns: int) -> None:
        """``took_ns``: the longest time from the decision to the write."""
        controller = meta.controller_of(job)
        seen = self._views.seen(actor, "cronjobs", since_ns)
        if controller is None or seen is None:
            return
        key = f"/registry/cronjobs/{job.metadata.namespace}/{controller.name}"
        values = (batch_v1_pb2.CronJob.FromString(value) for value in self._views.versions(key, seen) if value)
        owners = [one for one in values if one.metadata.uid == controller.uid]
        if not owners:
            return
        self._judged += 1
        says = f"{seconds(time_ns)}: CronJob {controller.name} starts {job.metadata.name}"
        if all(one.spec.suspend for one in owners):
            self._findings.append(f"{says}, and is suspended")
        if beside := self._beside(owners, job):
            self._findings.append(f"{says} beside {beside}, and its policy is {owners[0].spec.concurrencyPolicy}")
        minute = job.metadata.name.rpartition("-")[2]
        if self._are_clocks_right and minute.isdigit():
            late_s = job.metadata.creationTimestamp.seconds - int(minute) * _MINUTE_S
            limits = [
                one.spec.startingDeadlineSeconds if one.spec.HasField("startingDeadlineSeconds") else None
                for one in owners
            ]
            if late_s < 0:
                self._findings.append(f"{says} {-late_s} s before its time")
            elif None not in limits and late_s - took_ns / 1e9 > max(one for one in limits if one is not None) + 1:
                self._findings.append(f"{says} {late_s} s after its time, which is after its deadline")

    def _beside(self, owners: list[batch_v1_pb2.CronJob], new: KubernetesObject) -> str:
        """A Job that runs and that the controller knew of, where the policy does not allow it."""
        policies = [one.spec.concurrencyPolicy for one in owners]
        if any(policy != policies[0] for policy in policies) or policies[0] not in ("Forbid", "Replace"):
            return ""
        for reference in owners[0].status.active:
            if not all(any(one.uid == reference.uid for one in owner.status.active) for owner in owners):
                continue
            value = self._views.history.values.get(f"{JOBS}{reference.namespace}/{reference.name}")
            other = batch_v1_pb2.Job.FromString(value) if value is not None else None
            if other is None or other.metadata.uid != reference.uid or other.metadata.uid == new.metadata.uid:
                continue
            if policies[0] == "Replace" and other.metadata.HasField("deletionTimestamp"):
                continue
            if not any(one.type in ("Complete", "Failed") and one.status == "True" for one in other.status.conditions):
                return str(reference.name)
        return ""
