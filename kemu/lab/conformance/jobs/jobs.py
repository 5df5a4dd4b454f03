"""Recorded courses of a Job, repeated with the actor ``controller/job``.

The kubelet is the case's: a pod starts, gets ready and ends when its behaviour says so, counted from its creation. What
the controller writes is noted by the instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.controllers.jobs import completion_indexes, jobs
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.conformance import readings
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

Json = dict[str, Any]
FACTORY = "kemu.lab.conformance.jobs.jobs:Controller"
_MS_NS = 1_000_000
_KILLED = 137


class Controller(jobs.JobController):
    """The actor, with an API server that refuses what the case says and notes the rest."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        client = _Client(env)
        # The informers have theirs, which only read.
        self.client = self.context.client = client


class _Client(clients.Client):
    __slots__ = ()
    course: Course

    async def create(self, obj: KubernetesObject, resource: str = "") -> Any:
        if isinstance(obj, core_v1_pb2.Pod):
            self.course.check("create")
        created = await super().create(obj)
        if isinstance(created, core_v1_pb2.Pod):
            self.course.note_created(created)
        return created

    async def delete(self, resource: str, name: str, *args: Any, **options: Any) -> Any:
        self.course.check("delete")
        deleted = await super().delete(resource, name, *args, **options)
        self.course.now()["deleted"].append(self.course.name_of(cast(core_v1_pb2.Pod, deleted)))
        return deleted

    async def patch(self, resource: str, *args: Any, **options: Any) -> Any:
        if resource != "pods":
            return await super().patch(resource, *args, **options)
        self.course.check("patch")
        patched = await super().patch(resource, *args, **options)
        owner = meta.controller_of(patched)
        uid = "-" if owner is None else owner.uid
        finalizers = " ".join(patched.metadata.finalizers)
        self.course.now()["patched"].append(
            f"{self.course.name_of(cast(core_v1_pb2.Pod, patched))} {uid} [{finalizers}]"
        )
        return patched

    async def update_status(self, obj: Any) -> Any:
        self.course.check("updateStatus")
        updated = await super().update_status(obj)
        self.course.note_status(updated)
        return updated


class Course:
    """One case, played."""

    def __init__(self, case: Json) -> None:
        self.case = case
        self.plane = ControlPlane(checks_statuses=False)
        self.moments: list[Json] = []
        self._failures: dict[str, int] = {}
        self._names: dict[str, str] = {}
        """By UID of a pod: its name in the record."""
        self._name_by_key: dict[str, str] = {}
        """The same with the namespace, by namespace and name."""
        self._made: dict[str, int] = {}
        self._job = convert.from_json(batch_v1_pb2.Job, case["job"])

    def play(self) -> Json:
        _Client.course = self
        self.plane.run(self._play)
        for moment in self.moments:
            moment["created"].sort(key=lambda one: one["name"])
            moment["deleted"].sort()
            moment["patched"].sort()
        kept = ({key: value for key, value in moment.items() if value or key == "atMs"} for moment in self.moments)
        return {"moments": list(kept)}

    async def _play(self) -> None:
        plane, case = self.plane, self.case
        await plane.launch("controller/job", FACTORY)
        await plane.watch("pods", _Kubelet(self))
        await plane.runtime.begin()
        for pod in readings.pods(case.get("pods")):
            self._names[pod.metadata.uid] = pod.metadata.name
            # The API server refuses to change a pod without them.
            defaults.apply(pod)
            await plane.put(pod)
            # Until the controller has seen it.
            await plane.clock.sleep_until_ns(plane.clock.now_ns() + 1)
        await plane.put(self._job)
        for event in case.get("events") or ():
            await plane.clock.sleep_until_ns(event["atMs"] * _MS_NS)
            await self._happen(event)
        await plane.clock.sleep_until_ns(case["horizonMs"] * _MS_NS)

    # --- the record --------------------------------------------------------------------------------------------------

    def now(self) -> Json:
        at_ms = self.plane.clock.now_ns() // _MS_NS
        if not self.moments or self.moments[-1]["atMs"] != at_ms:
            self.moments.append({"atMs": at_ms, "created": [], "deleted": [], "patched": [], "statuses": []})
        return self.moments[-1]

    def check(self, verb: str) -> None:
        if self._failures.get(verb, 0) > 0:
            self._failures[verb] -= 1
            raise errors.InternalError("as the case says")

    def name_of(self, pod: core_v1_pb2.Pod) -> str:
        return self._names[pod.metadata.uid]

    def note_created(self, pod: core_v1_pb2.Pod) -> None:
        metadata = pod.metadata
        self.now()["created"].append(
            {
                "name": self.name_of(pod),
                "labels": dict(metadata.labels),
                "annotations": dict(metadata.annotations) or None,
                "finalizers": list(metadata.finalizers),
                "hostname": pod.spec.hostname,
                "environment": [
                    f"{one.name}={one.valueFrom.fieldRef.fieldPath}"
                    for one in pod.spec.containers[0].env
                    if one.valueFrom.HasField("fieldRef")
                ],
                "owner": metadata.ownerReferences[0].uid,
            }
        )

    def note_status(self, job: batch_v1_pb2.Job) -> None:
        status = job.status
        uncounted = status.uncountedTerminatedPods
        self.now()["statuses"].append(
            {
                "active": status.active,
                "ready": status.ready if status.HasField("ready") else None,
                "terminating": status.terminating if status.HasField("terminating") else None,
                "succeeded": status.succeeded,
                "failed": status.failed,
                "completedIndexes": status.completedIndexes,
                "failedIndexes": status.failedIndexes if status.HasField("failedIndexes") else None,
                "uncounted": sorted(
                    [f"{self._names[uid]} succeeded" for uid in uncounted.succeeded]
                    + [f"{self._names[uid]} failed" for uid in uncounted.failed]
                ),
                "conditions": [
                    f"{one.type}={one.status} {one.reason} at {self._seconds(one.lastTransitionTime)}: "
                    f"{self._as_recorded(one.message)}"
                    for one in status.conditions
                ],
                "startSeconds": self._seconds(status.startTime) if status.HasField("startTime") else None,
                "completedSeconds": self._seconds(status.completionTime) if status.HasField("completionTime") else None,
            }
        )

    def _as_recorded(self, message: str) -> str:
        """With the names that pods have in the record."""
        return " ".join(self._name_by_key.get(word, word) for word in message.split(" "))

    def _seconds(self, time: meta_v1_pb2.Time) -> int:
        return int(time.seconds) - self.plane.clock.epoch_unix_s

    # --- what the case does ------------------------------------------------------------------------------------------

    async def _happen(self, event: Json) -> None:
        what, plane = event["do"], self.plane
        if what == "fail":
            self._failures[event["verb"]] = self._failures.get(event["verb"], 0) + event["count"]
        elif what == "deleteJob":
            await plane.remove(self._job)
        elif what == "patchJob":
            spec = event["spec"]
            await plane.change(self._job, lambda job: _respecify(job, spec))
        else:
            await self._happen_to_pod(event)

    async def _happen_to_pod(self, event: Json) -> None:
        pod = await self._find(event["pod"])
        if pod is None:
            return
        metadata = pod.metadata
        if event["do"] == "relabelPod":
            await self.plane.change(pod, lambda now: _relabel(now, event.get("labels") or {}))
            return
        if event["do"] == "disruptPod":
            if metadata.HasField("deletionTimestamp"):
                return
            now_ns = self.plane.clock.unix_ns()
            await self.plane.change(pod, lambda now: _renew(now, "DisruptionTarget", "True", now_ns))
        await self.plane.client.delete("pods", metadata.name, metadata.namespace)

    async def _find(self, name: str) -> Any | None:
        for pod in (await self.plane.client.list("pods", self._job.metadata.namespace)).items:
            if self._names.get(pod.metadata.uid) == name:
                return pod
        return None

    # --- pods --------------------------------------------------------------------------------------------------------

    def came(self, pod: core_v1_pb2.Pod) -> None:
        """A pod was created: it gets the name that it has in the record."""
        metadata = pod.metadata
        if metadata.uid in self._names:
            return
        number = self._made.get(metadata.generateName, 0)
        self._made[metadata.generateName] = number + 1
        name = f"{metadata.generateName}{number:03}"
        self._names[metadata.uid] = name
        self._name_by_key[meta.namespaced_name(pod)] = f"{metadata.namespace}/{name}"
        behaviours = self.case.get("behaviours") or ()
        if behaviours:
            index = max(0, completion_indexes.of(pod))
            self._live(pod, behaviours[(number + index) % len(behaviours)])

    def _live(self, pod: core_v1_pb2.Pod, behaviour: Json) -> None:
        now_ns = self.plane.clock.unix_ns

        def start(now: core_v1_pb2.Pod) -> None:
            now.spec.nodeName = "node"
            now.status.phase = pod_phases.RUNNING
            status = now.status.containerStatuses.add(name=now.spec.containers[0].name)
            status.restartCount = behaviour.get("restarts", 0)
            status.state.running.SetInParent()

        def end(now: core_v1_pb2.Pod) -> None:
            if behaviour.get("disrupted"):
                _renew(now, "DisruptionTarget", "True", now_ns())
            self._end(now, behaviour.get("exitCode", 0))

        self._later(pod, behaviour["startMs"], pod_phases.PENDING, start)
        if behaviour.get("readyMs"):
            self._later(
                pod, behaviour["readyMs"], pod_phases.RUNNING, lambda now: _renew(now, "Ready", "True", now_ns())
            )
        if behaviour.get("endMs"):
            self._later(pod, behaviour["endMs"], pod_phases.RUNNING, end)

    def _later(self, pod: core_v1_pb2.Pod, ms: int, phase: str, change: Callable[[Any], None]) -> None:
        """Change a pod that is in this phase and not being deleted."""

        def apply(now: core_v1_pb2.Pod) -> None:
            if now.status.phase == phase and not now.metadata.HasField("deletionTimestamp"):
                change(now)

        self._spawn_later(pod, ms, apply)

    def _spawn_later(self, pod: core_v1_pb2.Pod, ms: int, change: Callable[[Any], None]) -> None:
        at_ns = self.plane.clock.now_ns() + ms * _MS_NS

        async def wait() -> None:
            await self.plane.clock.sleep_until_ns(at_ns)
            await self.plane.change(pod, lambda now: change(now) if now.metadata.uid == pod.metadata.uid else None)

        self.plane.env.spawn(wait(), f"{pod.metadata.name} in {ms} ms")

    def terminates(self, pod: core_v1_pb2.Pod) -> None:
        """A pod began to terminate: its containers are killed when its grace period is over, and then it goes."""
        grace_ms = int(pod.metadata.deletionGracePeriodSeconds) * 1000
        if not grace_ms:
            return
        at_ns = self.plane.clock.now_ns() + grace_ms * _MS_NS
        metadata = pod.metadata

        async def go() -> None:
            await self.plane.clock.sleep_until_ns(at_ns)
            await self.plane.change(pod, lambda now: self._end(now, _KILLED))
            await self.plane.clock.sleep_until_ns(at_ns + _MS_NS)
            try:
                await self.plane.client.delete("pods", metadata.name, metadata.namespace, 0, metadata.uid)
            except (errors.NotFound, errors.Conflict):
                return

        self.plane.env.spawn(go(), f"end of {metadata.name}")

    def _end(self, pod: core_v1_pb2.Pod, exit_code: int) -> None:
        if pod_phases.is_terminal(pod):
            return
        pod.status.phase = pod_phases.FAILED if exit_code else pod_phases.SUCCEEDED
        now_ns = self.plane.clock.unix_ns()
        _renew(pod, "Ready", "False", now_ns)
        for status in pod.status.containerStatuses:
            status.state.Clear()
            status.state.terminated.exitCode = exit_code
            meta.set_time(status.state.terminated.finishedAt, now_ns)


class _Kubelet:
    """A handler for pods."""

    def __init__(self, course: Course) -> None:
        self._course = course

    def on_add(self, obj: Any) -> None:
        self._course.came(obj)

    def on_update(self, old: Any, new: Any) -> None:
        if new.metadata.HasField("deletionTimestamp") and not old.metadata.HasField("deletionTimestamp"):
            self._course.terminates(new)

    def on_delete(self, old: KubernetesObject) -> None:
        pass


def answer(case: Json) -> Json:
    return Course(case).play()


def _respecify(job: batch_v1_pb2.Job, spec: Json) -> None:
    wanted = convert.from_json(batch_v1_pb2.JobSpec, spec)
    job.spec.MergeFrom(wanted)
    job.metadata.generation += 1


def _relabel(pod: core_v1_pb2.Pod, labels: Mapping[str, str]) -> None:
    pod.metadata.labels.clear()
    pod.metadata.labels.update(labels)


def _renew(pod: core_v1_pb2.Pod, kind: str, status: str, now_ns: int) -> None:
    """Replace a condition: at the end of the list, with this time."""
    kept = [one for one in pod.status.conditions if one.type != kind]
    del pod.status.conditions[:]
    pod.status.conditions.extend(kept)
    meta.set_condition(pod.status.conditions, kind, status, "", "", now_ns)
