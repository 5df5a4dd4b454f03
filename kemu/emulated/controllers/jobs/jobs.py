"""The actor ``controller/job``: sees that Jobs get their pods and that their pods are counted.

It watches Jobs and pods. Changes of a Job's spec sync it at once; events of pods and statuses wait for a second, so
that many of them make one sync. Mirrors ``pkg/controller/job``; a sync is in
:mod:`kemu.emulated.controllers.jobs.job_syncs`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, workqueues
from kemu.emulated.controllers import controllers, label_indexes, settings
from kemu.emulated.controllers.jobs import (
    completion_indexes,
    conditions,
    contexts,
    gangs,
    job_syncs,
    pod_writes,
    tracking,
)
from kemu.emulated.controllers.workloads import claims
from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.runtime.env import SECOND_NS, Env

NAME = "kubernetes.io/job-controller"
"""Jobs whose ``spec.managedBy`` names another controller are left alone."""
BATCH_S = 1.0
"""From the event of a pod to the sync (``SyncJobBatchPeriod``)."""
WORKERS = 5
_POD, _SELECTOR = "pod", "selector"


class JobController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.jobs.jobs:JobController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.context = contexts.Context(env, self.client, config)
        self.queue = self.context.queue
        self._orphan_queue: workqueues.WorkQueue[tuple[str, str]] = workqueues.WorkQueue(
            env, 1.0, 60.0, name="job_orphan_pod"
        )
        """Pods, and selectors of pods, whose finalizers that will not be removed otherwise."""
        self._orphan_selectors: dict[str, tuple[str, selectors.LabelSelector]] = {}
        """By UID of the Job that is gone or has ended: its namespace and selector."""
        self._jobs: informers.Informer[batch_v1_pb2.Job] = informers.Informer(
            self.client, "jobs", handler=informers.Callbacks(self._job_added, self._job_updated, self._job_deleted)
        )
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client, "pods", handler=informers.Callbacks(self._pod_added, self._pod_updated, self._pod_deleted)
        )
        self.context.read.update({"jobs": self._jobs, "pods": self._pods})
        gates = restored(settings.Jobs, config.get("settings", {})).feature_gates
        self._gangs = gangs.Gangs(self.context) if gates.workload_with_job else None
        self._owned: dict[str, dict[str, Any]] = {}
        """By UID of the controlling Job: its pods by UID."""
        self._orphans = label_indexes.LabelledObjects()
        """Pods without a controller."""
        self._tracked = label_indexes.LabelledObjects()
        """Pods with the finalizer."""
        self._selectors = label_indexes.Selectors()
        """Selectors of the Jobs."""

    async def run(self) -> None:
        await self.begin(self._pods, self._jobs, *(self._gangs.informers if self._gangs is not None else ()))
        self.env.spawn(self._work_on_orphans(), "orphan pods")
        await self.work(self.queue, self._sync, WORKERS)

    # --- events of Jobs ----------------------------------------------------------------------------------------------

    def _wake(self, key: str, delay_s: float = 0.0) -> None:
        self.queue.add_after(key, delay_s + self.lag_s())

    def _job_added(self, job: batch_v1_pb2.Job) -> None:
        key = controllers.key_of(job)
        self._selectors.put(key, job.metadata.namespace, _selector(job))
        self._wake(key)

    def _job_updated(self, old: batch_v1_pb2.Job, new: batch_v1_pb2.Job) -> None:
        key = controllers.key_of(new)
        self._selectors.put(key, new.metadata.namespace, _selector(new))
        if conditions.finished(new):
            # By now all finalizers should be gone; those that are not go now.
            self._free_pods_of(new)
            return
        changed = new.metadata.generation != old.metadata.generation
        self._wake(key, 0.0 if changed else BATCH_S)
        spec, status = new.spec, new.status
        if not status.HasField("startTime") or not spec.HasField("activeDeadlineSeconds"):
            return
        if not old.spec.HasField("activeDeadlineSeconds") or (
            old.spec.activeDeadlineSeconds != spec.activeDeadlineSeconds
        ):
            passed_ns = self.unix_ns() - meta.unix_ns(status.startTime)
            self._wake(key, spec.activeDeadlineSeconds - passed_ns / SECOND_NS)

    def _job_deleted(self, job: batch_v1_pb2.Job) -> None:
        key, uid = controllers.key_of(job), job.metadata.uid
        self._selectors.remove(key)
        self._wake(key)
        self.context.writes.forget(key)
        self.context.finished.pop(uid, None)
        self.context.losses.forget(uid)
        self._free_pods_of(job)
        self.context.backoffs.pop(key, None)

    def _free_pods_of(self, job: batch_v1_pb2.Job) -> None:
        """``enqueueLabelSelector``."""
        uid = job.metadata.uid
        self._orphan_selectors[uid] = job.metadata.namespace, _selector(job)
        self._orphan_queue.add((_SELECTOR, uid))

    # --- events of pods ----------------------------------------------------------------------------------------------

    def _pod_added(self, pod: core_v1_pb2.Pod) -> None:
        self._index(pod)
        if pod.metadata.HasField("deletionTimestamp"):
            self._note_deletion(pod, False)
            return
        reference = meta.controller_of(pod)
        if reference is not None:
            job = self._job_of(reference, pod.metadata.namespace)
            if job is not None:
                self.context.expectations.observe_creation(controllers.key_of(job))
                self._wake(controllers.key_of(job), BATCH_S)
            return
        self._offer(pod)

    def _pod_updated(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        self._unindex(old, new)
        self._index(new)
        self._note_loss(old, new)
        if new.metadata.HasField("deletionTimestamp"):
            self._note_deletion(new, False)
            return
        uid, namespace = new.metadata.uid, new.metadata.namespace
        is_free = not tracking.has_finalizer(new)
        before, now = meta.controller_of(old), meta.controller_of(new)
        if before is not None and before != now:
            self._observe(self._job_of(before, namespace), uid, is_free)
        if now is not None:
            self._observe(self._job_of(now, namespace), uid, is_free)
        elif before is not None or not meta.same_labels(old.metadata.labels, new.metadata.labels):
            self._offer(new)
        else:
            self._free(new)

    def _observe(self, job: batch_v1_pb2.Job | None, uid: str, is_free: bool) -> None:
        if job is None:
            return
        key = controllers.key_of(job)
        if is_free:
            self.context.removals.observe(key, uid)
        self._wake(key, BATCH_S)

    def _pod_deleted(self, pod: core_v1_pb2.Pod) -> None:
        self._unindex(pod, None)
        self._note_loss(pod, None)
        self._note_deletion(pod, True)

    def _note_deletion(self, pod: core_v1_pb2.Pod, is_final: bool) -> None:
        """``deletePod``: the pod is being deleted, or is gone."""
        reference = meta.controller_of(pod)
        job = None if reference is None else self._job_of(reference, pod.metadata.namespace)
        if job is None or conditions.finished(job):
            self._free(pod)
            return
        key = controllers.key_of(job)
        self.context.expectations.observe_deletion(key)
        if is_final or not tracking.has_finalizer(pod):
            self.context.removals.observe(key, pod.metadata.uid)
        self._wake(key, BATCH_S)

    def _offer(self, pod: core_v1_pb2.Pod) -> None:
        """An orphan loses its finalizer, unless a Job adopts it."""
        self._free(pod)
        for key in self._selectors.matching(pod.metadata.namespace, pod.metadata.labels):
            self._wake(key, BATCH_S)

    def _free(self, pod: core_v1_pb2.Pod) -> None:
        if tracking.has_finalizer(pod):
            self._orphan_queue.add((_POD, controllers.key_of(pod)))

    def _job_of(self, reference: meta_v1_pb2.OwnerReference, namespace: str) -> batch_v1_pb2.Job | None:
        """``resolveControllerRef``."""
        job = self._jobs.store.get(f"{namespace}/{reference.name}") if reference.kind == "Job" else None
        return job if job is not None and job.metadata.uid == reference.uid else None

    def _index(self, pod: core_v1_pb2.Pod) -> None:
        metadata, key = pod.metadata, controllers.key_of(pod)
        reference = meta.controller_of(pod)
        if reference is None:
            self._orphans.put(key, metadata.namespace, metadata.labels)
        elif reference.kind == "Job":
            self._owned.setdefault(reference.uid, {})[metadata.uid] = pod
        if tracking.has_finalizer(pod):
            self._tracked.put(key, metadata.namespace, metadata.labels)

    def _unindex(self, pod: core_v1_pb2.Pod, new: core_v1_pb2.Pod | None) -> None:
        """The pod is gone, or ``new`` now."""
        key = controllers.key_of(pod)
        before, now = meta.controller_of(pod), None if new is None else meta.controller_of(new)
        if before is None and (new is None or now is not None):
            self._orphans.remove(key)
        if before is not None and (now is None or now.uid != before.uid):
            pods = self._owned.get(before.uid, {})
            pods.pop(pod.metadata.uid, None)
            if not pods:
                self._owned.pop(before.uid, None)
        if new is None or not tracking.has_finalizer(new):
            self._tracked.remove(key)

    def _note_loss(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod | None) -> None:
        """For the run log: a pod that its Job will replace."""
        reference = meta.controller_of(old)
        if reference is None or reference.kind != "Job" or old.status.phase in pod_phases.TERMINAL:
            return
        was_deleted = old.metadata.HasField("deletionTimestamp")
        is_lost = (
            not was_deleted
            if new is None
            else new.status.phase == pod_phases.FAILED
            or (new.metadata.HasField("deletionTimestamp") and not was_deleted)
        )
        if is_lost:
            index = completion_indexes.of(old)
            self.context.losses.note(reference.uid, old.metadata.uid, old.metadata.name, str(index))

    # --- syncs -------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        """``syncJob``."""
        context = self.context
        context.writes.check(key)
        shared = self._jobs.store.get(key)
        if shared is None:
            context.expectations.forget(key)
            context.removals.forget(key)
            context.writes.forget(key)
            context.backoffs.pop(key, None)
            return
        if _is_managed_by_others(shared):
            return
        uid = shared.metadata.uid
        if conditions.finished(shared):
            context.backoffs.pop(key, None)
            context.writes.forget(key)
            context.finished.pop(uid, None)
            context.losses.forget(uid)
            return
        if uid in context.finished:
            return
        job = meta.copied(shared)
        may_manage = context.expectations.are_met(key)
        pods = await self._claim(job)
        group = "" if self._gangs is None else await self._gangs.group_of(job, pods)
        await job_syncs.JobSync(context, key, job, pods, may_manage, group).run()

    async def _claim(self, job: batch_v1_pb2.Job) -> list[core_v1_pb2.Pod]:
        """``getPodsForJob``: a pod that is adopted gets the finalizer."""
        selector, store = _selector(job), self._pods.store
        owned = list(self._owned.get(job.metadata.uid, {}).values())
        keys = self._orphans.matching(job.metadata.namespace, selector) if len(self._orphans) else []
        wrote = functools.partial(self.context.writes.wrote, controllers.key_of(job), "pods")
        claim = claims.Claims(self.env, self.client, "jobs", "Job", job, finalizer=tracking.FINALIZER, wrote=wrote)
        pods = await claim.claim(lambda pod: selector.matches(pod.metadata.labels), owned, [store[key] for key in keys])
        uid = job.metadata.uid
        return [
            pod if any(reference.uid == uid for reference in pod.metadata.ownerReferences) else _with_finalizer(pod)
            for pod in pods
        ]

    # --- finalizers of orphans ---------------------------------------------------------------------------------------

    async def _work_on_orphans(self) -> None:
        while True:
            key = await self._orphan_queue.get()
            try:
                await self._sync_orphans(*key)
                self._orphan_queue.forget(key)
            except errors.ApiError:
                self._orphan_queue.add_rate_limited(key)
            finally:
                self._orphan_queue.done(key)

    async def _sync_orphans(self, kind: str, name: str) -> None:
        """``syncOrphanPod``."""
        if kind == _POD:
            pod = self._pods.store.get(name)
            if pod is not None:
                await self._free_orphan(pod)
            return
        namespace, selector = self._orphan_selectors.pop(name, ("", None))
        if selector is None:
            return
        for key in self._tracked.matching(namespace, selector):
            pod = self._pods.store.get(key)
            if pod is None:
                continue
            try:
                await self._free_orphan(pod)
            except errors.ApiError:
                continue  # the next event of the pod tries again

    async def _free_orphan(self, pod: core_v1_pb2.Pod) -> None:
        """``handleSingleOrphanPod``."""
        reference = meta.controller_of(pod)
        if reference is not None:
            if reference.kind != "Job" or reference.apiVersion != "batch/v1":
                return
            job = self._job_of(reference, pod.metadata.namespace)
            if job is not None and (_is_managed_by_others(job) or not conditions.finished(job)):
                return
        if tracking.has_finalizer(pod):
            try:
                await pod_writes.remove_finalizer(self.client, pod)
            except errors.NotFound:
                return


def _is_managed_by_others(job: batch_v1_pb2.Job) -> bool:
    """``managedByExternalController``."""
    return bool(job.spec.HasField("managedBy")) and job.spec.managedBy != NAME


def _selector(job: batch_v1_pb2.Job) -> selectors.LabelSelector:
    return selectors.compile_labels_field(job.spec, "selector")


def _with_finalizer(pod: core_v1_pb2.Pod) -> core_v1_pb2.Pod:
    if tracking.has_finalizer(pod):
        return pod
    copy = meta.copied(pod)
    copy.metadata.finalizers.append(tracking.FINALIZER)
    return copy
