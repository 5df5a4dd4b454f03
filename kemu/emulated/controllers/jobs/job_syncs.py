"""One sync of a Job: what its pods have come to, which pods it needs, and whether it has ended.

Mirrors ``syncJob``, ``manageJob`` and ``trackJobStatusAndRemoveFinalizers`` of ``pkg/controller/job``. A Job ends
in two steps: an interim condition (FailureTarget or SuccessCriteriaMet) stops new pods, and once all pods are counted
and none terminates, Failed or Complete follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kemu import errors
from kemu.emulated.client import recorders
from kemu.emulated.controllers.jobs import (
    backoffs,
    completion_indexes,
    conditions,
    contexts,
    deletion_orders,
    failure_policies,
    intervals,
    pod_writes,
    tracking,
)
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import JobReported


class JobSync:
    """``job`` is changed; ``pods`` are only read. ``may_manage``: all that was expected has been observed. ``group``:
    the PodGroup of new pods, if they have one."""

    def __init__(
        self,
        context: contexts.Context,
        key: str,
        job: batch_v1_pb2.Job,
        pods: Sequence[core_v1_pb2.Pod],
        may_manage: bool,
        group: str = "",
    ) -> None:
        self._context = context
        self._key = key
        self._job = job
        self._pods = list(pods)
        self._may_manage = may_manage
        self._group = group
        self._writes = pod_writes.PodWrites(context, key, job)
        self._is_indexed = completion_indexes.is_indexed(job)
        self._expected_removals = context.removals.of(key)
        uncounted = job.status.uncountedTerminatedPods
        self._uncounted_succeeded = frozenset(uncounted.succeeded)
        self._uncounted_failed = frozenset(uncounted.failed)
        self._active_pods = [pod for pod in self._pods if _is_active(pod)]
        self._active = len(self._active_pods)
        self._ready = sum(map(meta.is_ready, self._active_pods))
        self._terminating = sum(map(_is_terminating, self._pods))
        self._end: Any | None = None
        """The condition by which the Job ends, once it may."""
        self._succeeded = self._failed = 0
        self._before: intervals.Intervals = ()
        self._succeeded_indexes: intervals.Intervals = ()
        self._failed_indexes: intervals.Intervals | None = None
        """None: without backoffLimitPerIndex."""
        self._delayed: dict[int, Any] = {}
        self._backoff = backoffs.Record()

    async def run(self) -> None:
        """Raises ApiError to be called again later."""
        job, status = self._job, self._job.status
        status.uncountedTerminatedPods.SetInParent()
        self._count_ended()
        if not status.HasField("startTime") and not job.spec.suspend:
            meta.set_time(status.startTime, self._now_ns())
        self._find_end()
        changed, failure = await self._act()
        changed = changed or self._active != status.active
        changed = changed or not status.HasField("ready") or status.ready != self._ready
        changed = changed or not status.HasField("terminating") or status.terminating != self._terminating
        status.active, status.ready, status.terminating = self._active, self._ready, self._terminating
        await self._track(changed)
        if failure is not None:
            raise failure

    def _now_ns(self) -> int:
        return self._context.unix_ns()

    # --- what the pods have come to ----------------------------------------------------------------------------------

    def _count_ended(self) -> None:
        """``getNewFinishedPods``; with the back-off after them."""
        job, status = self._job, self._job.status
        succeeded = [
            pod for pod in self._to_count(self._uncounted_succeeded) if pod.status.phase == pod_phases.SUCCEEDED
        ]
        failed = [pod for pod in self._to_count(self._uncounted_failed) if failure_policies.is_failed(pod, job)]
        counted = sum(failure_policies.match(job, pod).is_counted for pod in failed)
        self._succeeded = status.succeeded + len(succeeded) + len(self._uncounted_succeeded)
        self._failed = status.failed + counted + len(self._uncounted_failed)
        known = self._context.backoffs.get(self._key, backoffs.Record())
        self._backoff = known.after(succeeded, failed)

    def _to_count(self, uncounted: frozenset[str] = frozenset()) -> list[core_v1_pb2.Pod]:
        """Pods that have their finalizer and are neither in the list nor of an invalid index
        (``getValidPodsWithFilter``)."""
        return [
            pod
            for pod in self._pods
            if self._is_tracked(pod)
            and pod.metadata.uid not in uncounted
            and (not self._is_indexed or completion_indexes.is_valid(completion_indexes.of(pod), self._job))
        ]

    def _is_tracked(self, pod: core_v1_pb2.Pod) -> bool:
        return tracking.has_finalizer(pod) and pod.metadata.uid not in self._expected_removals

    # --- whether it ends ---------------------------------------------------------------------------------------------

    def _find_end(self) -> None:
        """In the order of Kubernetes: what an earlier sync has decided, failures, successes."""
        job = self._job
        self._end = conditions.true_one(job, conditions.SUCCESS_CRITERIA_MET)
        if self._end is None:
            self._end = self._failure_of_policy()
        if self._end is None:
            self._end = self._failure_of_limits()
        if not self._is_indexed:
            return
        self._before, self._succeeded_indexes = completion_indexes.succeeded(job, self._pods)
        self._succeeded = intervals.total(self._succeeded_indexes)
        if completion_indexes.has_limit_per_index(job):
            self._failed_indexes = completion_indexes.failed(job, self._pods)
            if self._end is None:
                self._end = self._failure_of_indexes(self._failed_indexes)
            self._delayed = completion_indexes.delayed(
                job, self._to_count(), self._active_pods, self._succeeded_indexes, self._failed_indexes
            )
        if self._end is None and (message := completion_indexes.success_policy(job, self._succeeded_indexes)):
            self._end = conditions.new(conditions.SUCCESS_CRITERIA_MET, "SuccessPolicy", message, self._now_ns())

    def _failure(self, reason: str, message: str) -> batch_v1_pb2.JobCondition:
        return conditions.new(conditions.FAILURE_TARGET, reason, message, self._now_ns())

    def _failure_of_policy(self) -> batch_v1_pb2.JobCondition | None:
        job = self._job
        target = conditions.true_one(job, conditions.FAILURE_TARGET)
        if target is not None:
            return conditions.new(conditions.FAILED, target.reason, target.message, self._now_ns())
        if not job.spec.HasField("podFailurePolicy"):
            return None
        for pod in self._pods:
            if failure_policies.is_failed(pod, job) and (message := failure_policies.match(job, pod).message):
                return self._failure("PodFailurePolicy", message)
        return None

    def _failure_of_limits(self) -> batch_v1_pb2.JobCondition | None:
        spec, status = self._job.spec, self._job.status
        if self._failed > spec.backoffLimit or self._has_restarted_too_often():
            return self._failure("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        if not spec.HasField("activeDeadlineSeconds") or spec.suspend:
            return None
        left_ns = (
            spec.activeDeadlineSeconds * SECOND_NS
            - self._now_ns()
            + (meta.unix_ns(status.startTime) if status.HasField("startTime") else self._now_ns())
        )
        if left_ns <= 0:
            return self._failure("DeadlineExceeded", "Job was active longer than specified deadline")
        self._context.queue.add_after_ns(self._key, left_ns)
        return None

    def _has_restarted_too_often(self) -> bool:
        """``pastBackoffLimitOnFailure``."""
        spec = self._job.spec
        if spec.template.spec.restartPolicy != "OnFailure":
            return False
        restarts = sum(
            int(status.restartCount)
            for pod in self._pods
            if pod.status.phase in (pod_phases.RUNNING, pod_phases.PENDING)
            for status in (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
        )
        return restarts >= max(1, int(spec.backoffLimit))

    def _failure_of_indexes(self, failed: intervals.Intervals) -> batch_v1_pb2.JobCondition | None:
        spec, count = self._job.spec, intervals.total(failed)
        if spec.HasField("maxFailedIndexes") and count > spec.maxFailedIndexes:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return self._failure("MaxFailedIndexesExceeded", message)
        if count > 0 and count + self._succeeded >= spec.completions:
            return self._failure("FailedIndexes", "Job has failed indexes")
        return None

    # --- what it does about its pods ---------------------------------------------------------------------------------

    async def _act(self) -> tuple[bool, errors.ApiError | None]:
        """Returns whether the condition Suspended has changed, and the first failure."""
        job, failure = self._job, None
        if self._end is not None:
            ready, deleted, failure = await self._writes.delete_active(self._active_pods)
            if deleted != self._active or not self._may_manage:
                # Pods may be left that keep their finalizer, or that the cache does not hold yet.
                self._end = None
            self._gone(ready, deleted)
            return False, failure
        manages = self._may_manage and not job.metadata.HasField("deletionTimestamp")
        if manages:
            failure = await self._manage()
        if self._is_complete():
            message = "Reached expected number of succeeded pods"
            self._end = conditions.new(conditions.SUCCESS_CRITERIA_MET, "CompletionsReached", message, self._now_ns())
        elif manages:
            return self._note_suspension(), failure
        return False, failure

    def _gone(self, ready: int, deleted: int) -> None:
        self._active -= deleted
        self._terminating += deleted
        self._ready -= ready

    def _is_complete(self) -> bool:
        """Without a number of completions one success is enough, once the other pods have ended too."""
        spec = self._job.spec
        wanted = int(spec.completions) if spec.HasField("completions") else 1
        return self._succeeded >= wanted and self._active == 0

    def _note_suspension(self) -> bool:
        job, now_ns = self._job, self._now_ns()
        if job.spec.suspend:
            condition = conditions.new(conditions.SUSPENDED, "JobSuspended", "Job suspended", now_ns)
            if not conditions.ensure(job, condition):
                return False
            # Its pods may be placed anew (MutableSchedulingDirectivesForSuspendedJobs).
            job.status.ClearField("startTime")
            self._report("Suspended", "Job suspended")
            return True
        condition = conditions.new(conditions.SUSPENDED, "JobResumed", "Job resumed", now_ns, "False")
        if not conditions.ensure(job, condition):
            return False
        meta.set_time(job.status.startTime, now_ns)
        self._report("Resumed", "Job resumed")
        return True

    def _report(self, reason: str, note: str, event_type: str = recorders.NORMAL, routine: bool = False) -> None:
        self._context.recorder.event(self._job, event_type, reason, reason, note, routine=routine)
        self._context.env.log(
            JobReported(
                job=self._key,
                uid=self._job.metadata.uid,
                reason=reason,
                message=note,
            ),
        )

    async def _manage(self) -> errors.ApiError | None:
        """``manageJob``: delete what is too much, or create what is missing, but not both in one sync."""
        job = self._job
        if job.spec.suspend:
            surplus = self._to_remove(self._active)
            return await self._delete(surplus)
        wanted = self._wanted()
        surplus = self._to_remove(max(0, self._active - wanted))[: pod_writes.MOST]
        if surplus:
            return await self._delete(surplus)
        waits_for = self._terminating if failure_policies.only_replaces_failed(job) else 0
        missing = wanted - waits_for - self._active
        if missing <= 0:
            return None
        has_limit_per_index = completion_indexes.has_limit_per_index(job)
        if not has_limit_per_index and (left_ns := self._backoff.remaining_ns(self._now_ns())) > 0:
            self._context.wake_with_delay(self._key, left_ns)
            return None
        missing = min(missing, pod_writes.MOST)
        template = pod_writes.from_template(job)
        if self._group:
            template.spec.schedulingGroup.podGroupName = self._group
        if not self._is_indexed:
            return await self._create([template] * missing)
        indexes = self._pending(missing)
        if has_limit_per_index:
            now_ns = self._now_ns()
            remaining = {index: completion_indexes.remaining_ns(self._delayed.get(index), now_ns) for index in indexes}
            indexes = [index for index in indexes if not remaining[index]]
            if not indexes and remaining:
                self._context.wake_with_delay(self._key, min(remaining.values()))
                return None
        return await self._create([self._pod_of(template, index) for index in indexes])

    def _wanted(self) -> int:
        """How many pods should be active."""
        spec = self._job.spec
        if not spec.HasField("completions"):
            return self._active if self._succeeded > 0 else int(spec.parallelism)
        return max(0, min(int(spec.completions) - self._succeeded, int(spec.parallelism)))

    def _to_remove(self, at_least: int) -> list[core_v1_pb2.Pod]:
        """``activePodsForRemoval``."""
        removed: list[Any] = []
        left = self._active_pods
        if self._is_indexed:
            removed, left = completion_indexes.surplus(left, self._job.spec.completions)
        if len(removed) < at_least:
            removed += deletion_orders.in_order(left)[: at_least - len(removed)]
        return removed

    async def _delete(self, pods: Sequence[core_v1_pb2.Pod]) -> errors.ApiError | None:
        ready, deleted, failure = await self._writes.delete_surplus(pods)
        self._gone(ready, deleted)
        return failure

    def _pending(self, count: int) -> list[int]:
        job = self._job
        busy = self._active_pods
        if failure_policies.only_replaces_failed(job):
            busy = [*busy, *filter(_is_terminating, self._pods)]
        return completion_indexes.first_pending(
            count, job.spec.completions, busy, self._succeeded_indexes, self._failed_indexes or ()
        )

    def _pod_of(self, template: core_v1_pb2.Pod, index: int) -> core_v1_pb2.Pod:
        job, pod = self._job, type(template)()
        pod.CopyFrom(template)
        counts = {}
        if completion_indexes.has_limit_per_index(job):
            counts = completion_indexes.new_counts(job, self._delayed.get(index))
        completion_indexes.mark(pod, job, index, counts)
        return pod

    async def _create(self, pods: Sequence[core_v1_pb2.Pod]) -> errors.ApiError | None:
        created, failure = await self._writes.create(pods)
        self._active += created
        return failure

    # --- counting ----------------------------------------------------------------------------------------------------

    async def _track(self, changed: bool) -> None:
        """``trackJobStatusAndRemoveFinalizers``."""
        job, status = self._job, self._job.status
        if self._is_indexed:
            self._pods.sort(key=completion_indexes.of)
        tracked = {pod.metadata.uid for pod in self._pods if self._is_tracked(pod)}
        changed = tracking.count_finalized(status, tracked) or changed
        listed = _listed(status)
        freed, new_indexes, is_full = self._take_uncounted()
        changed = changed or _listed(status) != listed or bool(new_indexes)
        if self._is_indexed:
            changed = self._write_indexes(new_indexes) or changed
        changed = self._announce_end() or changed
        if changed:
            job = await self._update_status()
            self._context.backoffs[self._key] = self._backoff
            changed = False
        failure = None
        if freed:
            removed, failure = await self._writes.remove_finalizers(freed)
            tracked.difference_update(removed)
        changed = tracking.count_finalized(job.status, tracked)
        if failure is not None:
            if changed:
                await self._update_status()
            raise failure
        has_ended = not is_full and self._enact_end()
        if changed or has_ended:
            job = await self._update_status()
            if has_ended:
                self._record_end()
                self._context.finished[job.metadata.uid] = None

    def _take_uncounted(self) -> tuple[list[Any], list[int], bool]:
        """Pods whose finalizers may go; indexes that have succeeded; and whether the list is full. Pods that are to be
        counted enter the list."""
        job, uncounted = self._job, self._job.status.uncountedTerminatedPods
        is_failing = self._end is not None and self._end.type != conditions.SUCCESS_CRITERIA_MET
        freed: list[Any] = []
        new_indexes: list[int] = []
        for pod in self._pods:
            if not self._is_tracked(pod):
                continue
            is_failed = failure_policies.is_failed(pod, job)
            if not self._may_lose_finalizer(pod, is_failed):
                continue
            freed.append(pod)
            uid, index = pod.metadata.uid, completion_indexes.of(pod)
            is_valid = not self._is_indexed or completion_indexes.is_valid(index, job)
            if pod.status.phase == pod_phases.SUCCEEDED and uid not in self._uncounted_failed:
                if self._is_indexed:
                    if is_valid and not intervals.contains(self._before, index):
                        new_indexes.append(index)
                elif uid not in self._uncounted_succeeded:
                    uncounted.succeeded.append(uid)
            elif (
                (is_failed or is_failing)
                and uid not in self._uncounted_failed
                and is_valid
                and failure_policies.match(job, pod).is_counted
            ):
                uncounted.failed.append(uid)
            if len(new_indexes) + _listed(job.status) >= tracking.MAX_UNCOUNTED:
                return freed, new_indexes, True
        return freed, new_indexes, False

    def _may_lose_finalizer(self, pod: core_v1_pb2.Pod, is_failed: bool) -> bool:
        """``canRemoveFinalizer``."""
        if self._job.metadata.HasField("deletionTimestamp") or self._end is not None:
            return True
        if pod.status.phase == pod_phases.SUCCEEDED:
            return True
        if not is_failed:
            return False
        waiting = self._delayed.get(completion_indexes.of(pod))
        return waiting is None or waiting.metadata.uid != pod.metadata.uid

    def _write_indexes(self, new_indexes: Sequence[int]) -> bool:
        status = self._job.status
        found = intervals.merge(self._succeeded_indexes, intervals.of(new_indexes))
        self._succeeded_indexes = found
        text = intervals.render(found)
        changed = bool(text != status.completedIndexes)
        status.succeeded = intervals.total(found)
        status.completedIndexes = text
        if self._failed_indexes is None:
            if status.HasField("failedIndexes"):
                status.ClearField("failedIndexes")
                changed = True
            return changed
        failed = intervals.render(self._failed_indexes)
        if not status.HasField("failedIndexes") or status.failedIndexes != failed:
            status.failedIndexes = failed
            changed = True
        return changed

    def _announce_end(self) -> bool:
        """The interim condition is written before finalizers are removed. Returns whether it is new."""
        end = self._end
        if end is None:
            return False
        if end.type == conditions.FAILURE_TARGET:
            self._job.status.conditions.append(end)
            self._end = conditions.new(conditions.FAILED, end.reason, end.message, self._now_ns())
            return True
        if end.type == conditions.SUCCESS_CRITERIA_MET:
            is_new = conditions.true_one(self._job, conditions.SUCCESS_CRITERIA_MET) is None
            if is_new:
                self._job.status.conditions.append(end)
            self._end = conditions.new(conditions.COMPLETE, end.reason, end.message, self._now_ns())
            return is_new
        return False

    def _enact_end(self) -> bool:
        """``enactJobFinished``: not before all pods are counted and none terminates."""
        job, end = self._job, self._end
        if end is None or _listed(job.status) or self._terminating > 0:
            return False
        now_ns = self._now_ns()
        conditions.ensure(job, conditions.new(end.type, end.reason, end.message, now_ns, end.status))
        if end.type == conditions.COMPLETE:
            job.status.completionTime.CopyFrom(end.lastTransitionTime)
        return True

    def _record_end(self) -> None:
        job, end = self._job, self._end
        assert end is not None
        if end.type != conditions.COMPLETE:
            self._report(end.reason, end.message, recorders.WARNING)
            return
        if job.spec.HasField("completions") and job.status.succeeded > job.spec.completions:
            note = "Too many succeeded pods running after completion count reached"
            self._report("TooManySucceededPods", note, recorders.WARNING)
        self._report("Completed", "Job completed", routine=True)

    async def _update_status(self) -> batch_v1_pb2.Job:
        updated = await self._context.client.update_status(self._job)
        self._context.writes.wrote(self._key, "jobs", updated)
        self._job.CopyFrom(updated)
        return self._job


def _listed(status: batch_v1_pb2.JobStatus) -> int:
    """How many pods wait to be counted."""
    uncounted = status.uncountedTerminatedPods
    return len(uncounted.succeeded) + len(uncounted.failed)


def _is_active(pod: core_v1_pb2.Pod) -> bool:
    return not pod_phases.is_terminal(pod) and not pod.metadata.HasField("deletionTimestamp")


def _is_terminating(pod: core_v1_pb2.Pod) -> bool:
    return not pod_phases.is_terminal(pod) and bool(pod.metadata.HasField("deletionTimestamp"))
