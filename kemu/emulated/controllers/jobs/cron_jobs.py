"""The actor ``controller/cronjob``: creates the Jobs of CronJobs when they are due, and deletes old ones.

It sleeps from one run to the next. Mirrors ``pkg/controller/cronjob`` (``cronjob_controllerv2.go``): a Job is named
after the minute of its run, so that no run is started twice, whatever crashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.jobs import conditions, cron_times
from kemu.emulated.objects import cron_expressions, meta
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import CronJobReported

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation of a Job: the time of its run, in the zone of the CronJob."""
WORKERS = 5
ALLOW, FORBID, REPLACE = "Allow", "Forbid", "Replace"


class CronJobController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.jobs.cron_jobs:CronJobController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="cronjob")
        self._jobs: informers.Informer[batch_v1_pb2.Job] = informers.Informer(
            self.client,
            "jobs",
            handler=informers.Callbacks(lambda job: self._job_changed(None, job), self._job_changed, self._job_deleted),
        )
        self._cron_jobs: informers.Informer[batch_v1_pb2.CronJob] = informers.Informer(
            self.client,
            "cronjobs",
            handler=informers.Callbacks(self._enqueue, self._cron_job_updated, self._enqueue),
        )
        self._by_owner: dict[str, dict[str, None]] = {}
        """By key of the CronJob that controls them: keys of Jobs."""
        self._recorder = recorders.Recorder(
            env, self.client, "cronjob-controller", "0", str(config.get("events", recorders.NOTABLE))
        )

    async def run(self) -> None:
        await self.begin(self._jobs, self._cron_jobs)
        await self.work(self.queue, self._sync, WORKERS)

    # --- events ------------------------------------------------------------------------------------------------------

    def _enqueue(self, cron_job: batch_v1_pb2.CronJob) -> None:
        self.queue.add_after(controllers.key_of(cron_job), self.lag_s())

    def _cron_job_updated(self, old: batch_v1_pb2.CronJob, new: batch_v1_pb2.CronJob) -> None:
        """``updateCronJob``: with another schedule, look when that says so."""
        if (old.spec.schedule, old.spec.timeZone) == (new.spec.schedule, new.spec.timeZone):
            self._enqueue(new)
            return
        try:
            schedule = cron_expressions.parse(_expression(new))
        except cron_expressions.CronError:
            note = f"unparseable schedule for cronjob: {new.spec.schedule}"
            self.report(new, recorders.WARNING, "UnParseableCronJobSchedule", note)
            return
        wait_s = cron_times.wait_ns(new, self.unix_ns(), schedule) / SECOND_NS
        self.queue.add_after(controllers.key_of(new), wait_s + self.lag_s())

    def _job_changed(self, old: batch_v1_pb2.Job | None, new: batch_v1_pb2.Job) -> None:
        before = None if old is None else meta.controller_of(old)
        now = meta.controller_of(new)
        if before is not None and (now is None or now.uid != before.uid):
            self._drop(cast(batch_v1_pb2.Job, old), before)
        if now is not None:
            self._by_owner.setdefault(f"{new.metadata.namespace}/{now.name}", {})[controllers.key_of(new)] = None
            self._wake(now, new)

    def _job_deleted(self, job: batch_v1_pb2.Job) -> None:
        reference = meta.controller_of(job)
        if reference is not None:
            self._drop(job, reference)

    def _drop(self, job: batch_v1_pb2.Job, reference: meta_v1_pb2.OwnerReference) -> None:
        owner = f"{job.metadata.namespace}/{reference.name}"
        jobs = self._by_owner.get(owner, {})
        jobs.pop(controllers.key_of(job), None)
        if not jobs:
            self._by_owner.pop(owner, None)
        self._wake(reference, job)

    def _wake(self, reference: meta_v1_pb2.OwnerReference, job: batch_v1_pb2.Job) -> None:
        """The CronJob that controls a Job."""
        if reference.kind != "CronJob":
            return
        cron_job = self._cron_jobs.store.get(f"{job.metadata.namespace}/{reference.name}")
        if cron_job is not None and cron_job.metadata.uid == reference.uid:
            self._enqueue(cron_job)

    # --- one sync ----------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        shared = self._cron_jobs.store.get(key)
        if shared is None:
            return
        sync = _Sync(self, shared, [self._jobs.store[job] for job in self._by_owner.get(key, ())])
        await sync.clean_up()
        failure: errors.ApiError | None = None
        wait_ns: int | None = None
        try:
            wait_ns = await sync.run()
        except errors.ApiError as error:
            failure = error
        if sync.changed:
            await self.client.update_status(sync.written)
        if failure is not None:
            raise failure
        if wait_ns is not None:
            self.queue.forget(key)
            self.queue.add_after_ns(key, wait_ns)

    def report(
        self, cron_job: batch_v1_pb2.CronJob, event_type: str, reason: str, note: str, *, routine: bool = False
    ) -> None:
        """As an Event object, and in the run log."""
        self._recorder.event(cron_job, event_type, reason, reason, note, routine=routine)
        self.env.log(
            CronJobReported(
                cronjob=controllers.key_of(cron_job),
                uid=cron_job.metadata.uid,
                reason=reason,
                message=note,
            ),
        )


class _Sync:
    """``sync``, ``syncCronJob`` and ``cleanupFinishedJobs`` for one CronJob, of which it changes a copy."""

    def __init__(
        self, controller: CronJobController, shared: batch_v1_pb2.CronJob, jobs: Sequence[batch_v1_pb2.Job]
    ) -> None:
        self._controller = controller
        self._client = controller.client
        self.cron_job = meta.copied(shared)
        self.written = self.cron_job
        """Whose status is written; another object once :meth:`_find_unexpected` has found a newer one, as in
        Kubernetes: then the write meets a conflict, and the sync is repeated."""
        self._jobs = jobs
        self.changed = False
        """The status has to be written."""

    def _report(self, event_type: str, reason: str, note: str, *, routine: bool = False) -> None:
        self._controller.report(self.cron_job, event_type, reason, note, routine=routine)

    # --- old Jobs ----------------------------------------------------------------------------------------------------

    async def clean_up(self) -> None:
        """``cleanupFinishedJobs``: the oldest go, beyond the limits of history."""
        spec = self.cron_job.spec
        for condition, limit in (
            (conditions.COMPLETE, "successfulJobsHistoryLimit"),
            (conditions.FAILED, "failedJobsHistoryLimit"),
        ):
            if not spec.HasField(limit):
                continue
            ended = sorted((job for job in self._jobs if conditions.finished(job) == condition), key=_start)
            for job in ended[: max(0, len(ended) - int(getattr(spec, limit)))]:
                if await self._delete(job):
                    self.changed = True

    async def _delete(self, job: batch_v1_pb2.Job) -> bool:
        """``deleteJob``, of the CronJob's own."""
        metadata = job.metadata
        try:
            await self._client.delete("jobs", metadata.name, metadata.namespace, propagation_policy="Background")
        except errors.ApiError as error:
            self._report(recorders.WARNING, "FailedDelete", f"Deleted job: {error.message}")
            return False
        self._forget(metadata.uid)
        self._report(recorders.NORMAL, "SuccessfulDelete", f"Deleted job {metadata.name}", routine=True)
        return True

    # --- the list of active Jobs -------------------------------------------------------------------------------------

    def _is_active(self, uid: str) -> bool:
        return any(reference.uid == uid for reference in self.cron_job.status.active)

    def _forget(self, uid: str) -> None:
        kept = [reference for reference in self.cron_job.status.active if reference.uid != uid]
        del self.cron_job.status.active[:]
        self.cron_job.status.active.extend(kept)

    async def _note_jobs(self) -> None:
        """Jobs that have ended leave the list; so do those that are gone."""
        for job in self._jobs:
            await self._note_job(job)
        known = {job.metadata.uid for job in self._jobs}
        for reference in list(self.cron_job.status.active):
            if reference.uid in known:
                continue
            try:
                await self._client.get("jobs", reference.name, reference.namespace)
            except errors.NotFound:
                self._report(recorders.NORMAL, "MissingJob", f"Active job went missing: {reference.name}")
                self._forget(reference.uid)
                self.changed = True

    async def _note_job(self, job: batch_v1_pb2.Job) -> None:
        metadata, status = job.metadata, self.cron_job.status
        end, is_active = conditions.finished(job), self._is_active(metadata.uid)
        if not end:
            if not is_active:
                await self._find_unexpected(metadata)
            return
        if is_active:
            self._forget(metadata.uid)
            note = f"Saw completed job: {metadata.name}, condition: {end}"
            self._report(recorders.NORMAL, "SawCompletedJob", note, routine=True)
            self.changed = True
        if end != conditions.COMPLETE or not job.status.HasField("completionTime"):
            return
        at = job.status.completionTime
        if not status.HasField("lastSuccessfulTime") or at.seconds > status.lastSuccessfulTime.seconds:
            status.lastSuccessfulTime.CopyFrom(at)
            self.changed = True

    async def _find_unexpected(self, metadata: meta_v1_pb2.ObjectMeta) -> None:
        """A Job that runs and is not in the list: the status may be old, or the write after its creation failed."""
        mine = self.cron_job.metadata
        fresh = await self._client.get("cronjobs", mine.name, mine.namespace)
        if any(reference.uid == metadata.uid for reference in fresh.status.active):
            self.cron_job = meta.copied(fresh)
            return
        note = f"Saw a job that the controller did not create or forgot: {metadata.name}"
        self._report(recorders.WARNING, "UnexpectedJob", note)

    # --- the next run ------------------------------------------------------------------------------------------------

    async def run(self) -> int | None:
        """``syncCronJob``. Returns how long to wait, in ns; None: until something changes. Raises ApiError."""
        now_ns = self._controller.unix_ns()
        await self._note_jobs()
        spec = self.cron_job.spec
        if self.cron_job.metadata.HasField("deletionTimestamp"):
            return None
        if spec.HasField("timeZone"):
            try:
                cron_expressions.find_zone(spec.timeZone)
            except cron_expressions.CronError as error:
                self._report(recorders.WARNING, "UnknownTimeZone", f'invalid timeZone: "{spec.timeZone}": {error}')
                return None
        if spec.suspend:
            return None
        try:
            schedule = cron_expressions.parse(_expression(self.cron_job))
        except cron_expressions.CronError as error:
            note = f'unparseable schedule: "{spec.schedule}" : {error}'
            self._report(recorders.WARNING, "UnparseableSchedule", note)
            return None
        try:
            missed = cron_times.missed(self.cron_job, now_ns, schedule, True)
        except cron_times.ScheduleError as error:
            self._report(recorders.WARNING, "InvalidSchedule", f"invalid schedule: {spec.schedule} : {error}")
            return None
        due_ns = missed.latest_ns
        if due_ns is not None:
            if missed.number > cron_times.MANY:
                note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                self._report(recorders.WARNING, "TooManyMissedTimes", note)
            if self._may_start(due_ns, now_ns) and not await self._start(due_ns):
                return None
        return cron_times.wait_ns(self.cron_job, now_ns, schedule)

    def _may_start(self, due_ns: int, now_ns: int) -> bool:
        spec, status = self.cron_job.spec, self.cron_job.status
        if spec.HasField("startingDeadlineSeconds") and due_ns + spec.startingDeadlineSeconds * SECOND_NS < now_ns:
            note = f"Missed scheduled time to start a job: {cron_expressions.format_rfc1123(due_ns)}"
            self._report(recorders.WARNING, "MissSchedule", note)
            return False
        name = _job_name(self.cron_job, due_ns)
        if any(reference.name == name for reference in status.active) or (
            status.HasField("lastScheduleTime") and meta.unix_ns(status.lastScheduleTime) == due_ns
        ):
            return False
        if spec.concurrencyPolicy == FORBID and status.active:
            note = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._report(recorders.NORMAL, "JobAlreadyActive", note)
            return False
        return True

    async def _start(self, due_ns: int) -> bool:
        """Create the Job of a run. False: it is there already, and known."""
        status = self.cron_job.status
        if self.cron_job.spec.concurrencyPolicy == REPLACE:
            await self._replace()
        job = _new_job(self.cron_job, due_ns)
        try:
            created = await self._client.create(job)
        except errors.AlreadyExists:
            created = await self._client.get("jobs", job.metadata.name, job.metadata.namespace)
            owner = meta.controller_of(created)
            if owner is None or owner.uid != self.cron_job.metadata.uid or self._is_active(created.metadata.uid):
                return False
        except errors.ApiError as error:
            if not any(cause.reason == "NamespaceTerminating" for cause in error.causes):
                self._report(recorders.WARNING, "FailedCreate", f"Error creating job: {error.message}")
            raise
        else:
            self._report(recorders.NORMAL, "SuccessfulCreate", f"Created job {created.metadata.name}", routine=True)
        metadata = created.metadata
        status.active.append(
            core_v1_pb2.ObjectReference(
                kind="Job",
                apiVersion="batch/v1",
                namespace=metadata.namespace,
                name=metadata.name,
                uid=metadata.uid,
                resourceVersion=metadata.resourceVersion,
            )
        )
        meta.set_time(status.lastScheduleTime, due_ns)
        self.changed = True
        return True

    async def _replace(self) -> None:
        """Jobs that still run go."""
        for reference in list(self.cron_job.status.active):
            try:
                job = await self._client.get("jobs", reference.name, reference.namespace)
            except errors.ApiError as error:
                self._report(recorders.WARNING, "FailedGet", f"Get job: {error.message}")
                raise
            if not await self._delete(job):
                raise errors.Conflict(f"could not replace job {reference.namespace}/{reference.name}")
            self.changed = True


def _expression(cron_job: batch_v1_pb2.CronJob) -> str:
    """The schedule with its time zone (``formatSchedule``)."""
    spec = cron_job.spec
    if "TZ" in spec.schedule or not spec.HasField("timeZone"):
        return str(spec.schedule)
    try:
        cron_expressions.find_zone(spec.timeZone)
    except cron_expressions.CronError:
        return str(spec.schedule)
    return f"TZ={spec.timeZone} {spec.schedule}"


def _job_name(cron_job: batch_v1_pb2.CronJob, due_ns: int) -> str:
    """By the minute."""
    return f"{cron_job.metadata.name}-{due_ns // (60 * SECOND_NS)}"


def _new_job(cron_job: batch_v1_pb2.CronJob, due_ns: int) -> batch_v1_pb2.Job:
    """``getJobFromTemplate2``."""
    template = cron_job.spec.jobTemplate
    job = batch_v1_pb2.Job()
    metadata = job.metadata
    metadata.namespace = cron_job.metadata.namespace
    metadata.name = _job_name(cron_job, due_ns)
    metadata.labels.update(template.metadata.labels)
    metadata.annotations.update(template.metadata.annotations)
    metadata.annotations[SCHEDULED_AT] = cron_expressions.format_time(due_ns, cron_job.spec.timeZone)
    metadata.ownerReferences.append(meta.owner_reference(cron_job, "batch/v1", "CronJob"))
    job.spec.CopyFrom(template.spec)
    return job


def _start(job: batch_v1_pb2.Job) -> tuple[bool, int, str]:
    """Jobs that never started come last (``byJobStartTime``)."""
    status = job.status
    return not status.HasField("startTime"), status.startTime.seconds, job.metadata.name
