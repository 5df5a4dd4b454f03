"""Recorded courses of a CronJob, repeated with the actor ``controller/cronjob``. Its Jobs end when the case says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.controllers.jobs import conditions, cron_jobs
from kemu.emulated.objects import meta, times
from kemu.emulated.objects.conversion import convert
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.messages.k8s import batch_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env

Json = dict[str, Any]
FACTORY = "kemu.lab.conformance.jobs.cron_jobs:Controller"
_MS_NS = 1_000_000


class Controller(cron_jobs.CronJobController):
    """The actor, with an API server that refuses what the case says and notes the rest."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.client = _Client(env)


class _Client(clients.Client):
    __slots__ = ()
    course: Course

    async def create(self, obj: KubernetesObject, resource: str = "") -> Any:
        if not isinstance(obj, batch_v1_pb2.Job):
            return await super().create(obj)
        self.course.check("create")
        created = await super().create(obj)
        self.course.note_created(created)
        return created

    async def delete(self, resource: str, name: str, *args: Any, **options: Any) -> Any:
        self.course.check("delete")
        deleted = await super().delete(resource, name, *args, **options)
        self.course.now()["deleted"].append(name)
        return deleted

    async def update_status(self, obj: Any) -> Any:
        self.course.check("updateStatus")
        updated = await super().update_status(obj)
        if updated.metadata.resourceVersion != obj.metadata.resourceVersion:
            self.course.note_status(updated)
        return updated


class Course:
    """One case, played."""

    def __init__(self, case: Json) -> None:
        self.case = case
        self.plane = ControlPlane()
        self.moments: list[Json] = []
        self._start_ns = case["startMs"] * _MS_NS
        self._failures: dict[str, int] = {}
        self._made = 0
        self._cron_job = convert.from_json(batch_v1_pb2.CronJob, case["cronJob"])

    def play(self) -> Json:
        _Client.course = self
        self.plane.run(self._play)
        for moment in self.moments:
            moment["deleted"].sort()
        kept = ({key: value for key, value in moment.items() if value or key == "atMs"} for moment in self.moments)
        return {"moments": list(kept)}

    async def _play(self) -> None:
        plane, case = self.plane, self.case
        await plane.runtime.begin()
        await plane.clock.sleep_until_ns(self._start_ns)
        for data in case.get("jobs") or ():
            await plane.put(convert.from_json(batch_v1_pb2.Job, data))
        await plane.put(self._cron_job)
        await plane.launch("controller/cronjob", FACTORY)
        for event in case.get("events") or ():
            await plane.clock.sleep_until_ns(self._start_ns + event["atMs"] * _MS_NS)
            await self._happen(event)
        await plane.clock.sleep_until_ns(self._start_ns + case["horizonMs"] * _MS_NS)

    # --- the record --------------------------------------------------------------------------------------------------

    def now(self) -> Json:
        at_ms = (self.plane.clock.now_ns() - self._start_ns) // _MS_NS
        if not self.moments or self.moments[-1]["atMs"] != at_ms:
            self.moments.append({"atMs": at_ms, "created": [], "deleted": [], "statuses": []})
        return self.moments[-1]

    def check(self, verb: str) -> None:
        if self._failures.get(verb, 0) > 0:
            self._failures[verb] -= 1
            raise errors.InternalError("as the case says")

    def note_created(self, job: batch_v1_pb2.Job) -> None:
        metadata = job.metadata
        # The API server gave it labels of its template, which the recorded one did not.
        labels = {key: value for key, value in metadata.labels.items() if key in self._labels()}
        self.now()["created"].append(
            {
                "name": metadata.name,
                "labels": labels,
                "annotations": dict(metadata.annotations),
                "owner": metadata.ownerReferences[0].uid,
            }
        )
        behaviours = self.case.get("behaviours") or ()
        if not behaviours:
            return
        behaviour = behaviours[self._made % len(behaviours)]
        self._made += 1

        def start(now: batch_v1_pb2.Job) -> None:
            meta.set_time(now.status.startTime, self.plane.clock.unix_ns())
            now.status.active = 1

        def end(now: batch_v1_pb2.Job) -> None:
            now_ns = self.plane.clock.unix_ns()
            fails = behaviour.get("fails", False)
            condition = conditions.FAILED if fails else conditions.COMPLETE
            now.status.conditions.append(conditions.new(condition, "", "", now_ns))
            if not fails:
                meta.set_time(now.status.completionTime, now_ns)
            now.status.active = 0

        self._later(job, behaviour["startMs"], start)
        if behaviour.get("endMs"):
            self._later(job, behaviour["endMs"], end)

    def _labels(self) -> Mapping[str, str]:
        return self._cron_job.spec.jobTemplate.metadata.labels

    def note_status(self, cron_job: batch_v1_pb2.CronJob) -> None:
        status = cron_job.status
        self.now()["statuses"].append(
            {
                "active": [f"{one.kind} {one.apiVersion} {one.name}" for one in status.active],
                "lastSchedule": _text(status, "lastScheduleTime"),
                "lastSuccessful": _text(status, "lastSuccessfulTime"),
            }
        )

    # --- what happens ------------------------------------------------------------------------------------------------

    def _later(self, job: batch_v1_pb2.Job, ms: int, change: Callable[[Any], None]) -> None:
        at_ns = self.plane.clock.now_ns() + ms * _MS_NS

        async def wait() -> None:
            await self.plane.clock.sleep_until_ns(at_ns)
            await self.plane.change(job, lambda now: change(now) if now.metadata.uid == job.metadata.uid else None)

        self.plane.env.spawn(wait(), f"{job.metadata.name} in {ms} ms")

    async def _happen(self, event: Json) -> None:
        what = event["do"]
        if what == "fail":
            self._failures[event["verb"]] = self._failures.get(event["verb"], 0) + 1
        elif what == "deleteJob":
            job = batch_v1_pb2.Job()
            job.metadata.namespace, job.metadata.name = self._cron_job.metadata.namespace, event["job"]
            await self.plane.remove(job)
        elif what == "deleteCronJob":
            await self.plane.remove(self._cron_job)
        else:
            wanted = convert.from_json(batch_v1_pb2.CronJobSpec, event["spec"])
            await self.plane.change(self._cron_job, lambda now: _respecify(now, wanted))


def answer(case: Json) -> Json:
    return Course(case).play()


def _respecify(cron_job: batch_v1_pb2.CronJob, spec: batch_v1_pb2.CronJobSpec) -> None:
    cron_job.spec.MergeFrom(spec)
    cron_job.metadata.generation += 1


def _text(status: batch_v1_pb2.CronJobStatus, field: str) -> str:
    return times.format_time(meta.unix_ns(getattr(status, field)) // SECOND_NS) if status.HasField(field) else ""
