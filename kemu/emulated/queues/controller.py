"""The actor ``controller/kueue``: admits Jobs to the quota of their queue, and preempts them.

A Job with the label ``kueue.x-k8s.io/queue-name`` waits suspended until all of its pods have quota. An admitted Job has
an annotation with what it was given, from which the actor goes on after a restart. One that is preempted is suspended,
and keeps its quota until its pods are gone. Config: ``settings`` (:class:`kemu.emulated.queues.settings.Settings`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu import errors
from kemu.emulated.client import informers
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import requests
from kemu.emulated.queues import cycles, settings
from kemu.emulated.queues.workloads import Workload
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2, scheduling_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import JobAdmitted, JobPreempted

LABEL = "kueue.x-k8s.io/queue-name"
ADMISSION = "kemu.dev/admission"
"""What an admitted Job was given: JSON with ``usage`` by flavor and resource, and the second of its admission."""
WAITS, RUNS, STOPS = "waits", "runs", "stops"

Job = batch_v1_pb2.Job


@dataclass
class _Known:
    """A Job as the actor knows it."""

    queue: str
    """Its ClusterQueue."""
    workload: Workload
    state: str = WAITS
    reason: str = ""
    """Why it was preempted."""


class Kueue(controllers.Controller):
    """Factory: ``kemu.emulated.queues.controller:Kueue``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        stated = restored(settings.Settings, config["settings"])
        self._scheduler = cycles.Scheduler(stated)
        self._local = {f"{one.namespace}/{one.name}": one.cluster_queue for one in stated.local_queues} or {
            f"default/{one.name}": one.name for one in stated.cluster_queues
        }
        self._known: dict[str, _Known] = {}
        """By UID."""
        self._changed = asyncio.Event()
        self._jobs: informers.Informer[Job] = informers.Informer(
            self.client,
            "jobs",
            handler=informers.Callbacks(self._see, lambda old, new: self._see(new), self._gone),
        )
        self._classes: informers.Informer[scheduling_v1_pb2.PriorityClass] = informers.Informer(
            self.client, "priorityclasses"
        )
        self._begun = False

    async def run(self) -> None:
        await self.begin(self._classes, self._jobs)
        self._begun = True
        for job in list(self._jobs.store.values()):
            self._see(job)
        while True:
            await self._changed.wait()
            if lag_s := self.lag_s():
                await self.clock.sleep_until_ns(self.clock.now_ns() + int(lag_s * SECOND_NS))
            self._changed.clear()
            while await self._cycle():
                pass

    def _now_s(self) -> float:
        return self.unix_ns() / SECOND_NS

    # --- Jobs --------------------------------------------------------------------------------------------------------

    def _see(self, job: Job) -> None:
        queue = self._local.get(f"{job.metadata.namespace}/{job.metadata.labels.get(LABEL, '')}")
        if not self._begun or queue is None:
            return
        known = self._known.get(job.metadata.uid)
        if _has_ended(job):
            if known is not None:
                self._forget(job.metadata.uid)
        elif known is None:
            self._learn(job, queue)
        elif known.state == STOPS and job.spec.suspend and not job.status.active:
            self._scheduler.release(queue, known.workload)
            self._scheduler.resume(queue, known.workload, known.reason, self._now_s())
            known.state = WAITS
            self._changed.set()

    def _learn(self, job: Job, queue: str) -> None:
        """A Job that is new, or that was there before the actor."""
        admission = json.loads(job.metadata.annotations.get(ADMISSION, "{}"))
        metadata = job.metadata
        workload = Workload(
            controllers.key_of(job),
            metadata.uid,
            self._priority(job.spec.template.spec),
            queued=meta.unix_ns(metadata.creationTimestamp) / SECOND_NS,
        )
        known = _Known(queue, workload)
        wanted = _requests(job)
        if not job.spec.suspend and not admission:
            self.env.spawn(self._patch(workload, {"spec": {"suspend": True}}), f"suspend {workload.name}")
            return
        self._known[metadata.uid] = known
        self._scheduler.add(queue, workload, wanted)
        if admission:
            waiting = self._scheduler.waiting[queue]
            del waiting.active[workload.name]
            workload.usage, workload.uses = admission["usage"], frozenset(admission["usage"])
            workload.reserved = admission["at"]
            waiting.queue.admit(workload)
            known.state = STOPS if job.spec.suspend else RUNS
            workload.evicted = known.state == STOPS
        self._changed.set()

    def _priority(self, spec: core_v1_pb2.PodSpec) -> int:
        found = self._classes.store.get(spec.priorityClassName) if spec.priorityClassName else None
        if found is not None:
            return found.value
        return max((one.value for one in self._classes.store.values() if one.globalDefault), default=0)

    def _gone(self, job: Job) -> None:
        if job.metadata.uid in self._known:
            self._forget(job.metadata.uid)

    def _forget(self, uid: str) -> None:
        known = self._known.pop(uid)
        self._scheduler.forget(known.queue, known.workload)
        self._changed.set()

    # --- cycles ------------------------------------------------------------------------------------------------------

    async def _cycle(self) -> bool:
        """Whether another one may admit more at once."""
        if not self._scheduler.has_work:
            return False
        now_s = self._now_s()
        outcome = self._scheduler.cycle(now_s)
        for target, preemptor in outcome.evicted:
            known = self._known[target.workload.uid]
            known.state, known.reason = STOPS, target.reason
            target.workload.evicted = True
            self.env.log(
                JobPreempted(
                    job=target.workload.name,
                    uid=target.workload.uid,
                    queue=known.queue,
                    by=preemptor.name,
                    reason=target.reason,
                )
            )
            await self._patch(target.workload, {"spec": {"suspend": True}})
        for entry in outcome.admitted:
            known = self._known[entry.workload.uid]
            known.state = RUNS
            self.env.log(
                JobAdmitted(
                    job=entry.workload.name, uid=entry.workload.uid, queue=known.queue, flavors=sorted(entry.usage)
                )
            )
            text = json.dumps({"usage": entry.usage, "at": now_s}, sort_keys=True)
            patch = {"metadata": {"annotations": {ADMISSION: text}}, "spec": {"suspend": False}}
            await self._patch(entry.workload, patch)
        return bool(outcome.admitted or outcome.given_up)

    async def _patch(self, workload: Workload, patch: Mapping[str, Any]) -> None:
        """Again until it is done, or the Job is gone."""
        namespace, name = meta.split_name(workload.name)
        while True:
            try:
                await self.client.patch("jobs", name, namespace, patch, uid=workload.uid)
            except (errors.NotFound, errors.Conflict):
                return
            except errors.ApiError:
                await self.clock.sleep_until_ns(self.clock.now_ns() + SECOND_NS)
            else:
                return


def _has_ended(job: Job) -> bool:
    return any(one.type in ("Complete", "Failed") and one.status == "True" for one in job.status.conditions)


def _requests(job: Job) -> dict[str, int]:
    """What all of its pods request together; ``pods`` counts them."""
    count = job.spec.parallelism if job.spec.HasField("parallelism") else 1
    if job.spec.HasField("completions"):
        count = min(count, job.spec.completions)
    pod = core_v1_pb2.Pod(spec=job.spec.template.spec)
    return {name: amount * count for name, amount in requests.pod_requests(pod).items()}
