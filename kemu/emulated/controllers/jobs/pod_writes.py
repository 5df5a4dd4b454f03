"""The pods that a sync of a Job creates, deletes and sets free of their finalizer, several at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from kemu import errors
from kemu.emulated.client import clients, recorders
from kemu.emulated.controllers.jobs import completion_indexes, contexts, tracking
from kemu.emulated.controllers.workloads import slow_start
from kemu.emulated.objects import meta, names
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2
from kemu.runtime.runlog.events import PodCreated

MOST = 500
"""Pods that one sync creates or deletes (``MaxPodCreateDeletePerSync``)."""


class PodWrites:
    """Pod writes of one Job, in one sync."""

    def __init__(self, context: contexts.Context, key: str, job: batch_v1_pb2.Job) -> None:
        self._context = context
        self._key = key
        self._job = job
        self._client = context.client

    # --- creations ---------------------------------------------------------------------------------------------------

    async def create(self, pods: Sequence[core_v1_pb2.Pod]) -> tuple[int, errors.ApiError | None]:
        """Slowly at first. Returns how many were created, and the first failure."""
        expectations = self._context.expectations
        expectations.expect(self._key, creations=len(pods))
        left, failure = await slow_start.each(self._context.env, pods, self._create)
        expectations.observe_creation(self._key, len(left))
        return len(pods) - len(left), failure

    async def _create(self, pod: core_v1_pb2.Pod) -> None:
        try:
            created = await self._client.create(pod)
        except errors.ApiError as error:
            if isinstance(error, errors.Forbidden) and any(
                cause.reason == "NamespaceTerminating" for cause in error.causes
            ):
                return
            note = f"Error creating: {error.message}"
            self._context.recorder.event(self._job, recorders.WARNING, "FailedCreate", "FailedCreate", note)
            raise
        self._context.writes.wrote(self._key, "pods", created)
        name = created.metadata.name
        note = f"Created pod: {name}"
        reason = "SuccessfulCreate"
        self._context.recorder.event(self._job, recorders.NORMAL, reason, reason, note, routine=True)
        index = completion_indexes.of(created)
        old_uid, old_name = self._context.losses.take(self._job.metadata.uid, str(index))
        namespace = created.metadata.namespace
        self._context.env.log(
            PodCreated(
                pod=meta.namespaced_name(created),
                uid=created.metadata.uid,
                owner=f"Job {self._key}",
                replaces=f"{namespace}/{old_name}" if old_uid else "",
                replaces_uid=old_uid,
            ),
        )

    # --- deletions ---------------------------------------------------------------------------------------------------

    async def delete_surplus(self, pods: Sequence[core_v1_pb2.Pod]) -> tuple[int, int, errors.ApiError | None]:
        """Without their finalizer, so that they are not counted (``deleteJobPods``). Returns how many of them were
        ready, how many are deleted, and the first failure."""
        self._context.expectations.expect(self._key, deletions=len(pods))
        tried: list[Any] = []

        async def delete(pod: core_v1_pb2.Pod) -> errors.ApiError | None:
            try:
                if tracking.has_finalizer(pod):
                    await self._patch_finalizer(pod)
                tried.append(pod)
                await self._delete(pod)
            except errors.ApiError as error:
                # The watch will not show this deletion.
                self._context.expectations.observe_deletion(self._key)
                return None if isinstance(error, errors.NotFound) else error
            return None

        failures = await self._each(pods, delete, "delete surplus pods")
        # A ready pod counts as gone even if its deletion failed, but not if it has kept its finalizer.
        return self._deleted(pods, failures, tried)

    async def delete_active(self, pods: Sequence[Any]) -> tuple[int, int, errors.ApiError | None]:
        """The Job has ended: the pods keep their finalizer, and are counted (``deleteActivePods``)."""

        async def delete(pod: core_v1_pb2.Pod) -> errors.ApiError | None:
            try:
                await self._delete(pod)
            except errors.NotFound:
                return None
            except errors.ApiError as error:
                return error
            return None

        return self._deleted(pods, await self._each(pods, delete, "delete active pods"), pods)

    @staticmethod
    def _deleted(
        pods: Sequence[core_v1_pb2.Pod], failures: Sequence[errors.ApiError | None], tried: Sequence[core_v1_pb2.Pod]
    ) -> tuple[int, int, errors.ApiError | None]:
        failed = [error for error in failures if error is not None]
        return sum(map(meta.is_ready, tried)), len(pods) - len(failed), failed[0] if failed else None

    async def _delete(self, pod: core_v1_pb2.Pod) -> None:
        metadata, recorder = pod.metadata, self._context.recorder
        try:
            await self._client.delete("pods", metadata.name, metadata.namespace)
        except errors.NotFound:
            raise
        except errors.ApiError as error:
            recorder.event(
                self._job, recorders.WARNING, "FailedDelete", "FailedDelete", f"Error deleting: {error.message}"
            )
            raise
        reason, note = "SuccessfulDelete", f"Deleted pod: {metadata.name}"
        recorder.event(self._job, recorders.NORMAL, reason, reason, note, routine=True)

    # --- finalizers --------------------------------------------------------------------------------------------------

    async def remove_finalizers(self, pods: Sequence[core_v1_pb2.Pod]) -> tuple[list[str], errors.ApiError | None]:
        """UIDs of the pods that have lost theirs, and the first failure (``removeTrackingFinalizerFromPods``)."""
        removals = self._context.removals
        removals.expect(self._key, (pod.metadata.uid for pod in pods))

        async def remove(pod: core_v1_pb2.Pod) -> errors.ApiError | None:
            try:
                await self._patch_finalizer(pod)
            except errors.ApiError as error:
                removals.observe(self._key, pod.metadata.uid)
                return None if isinstance(error, errors.NotFound) else error
            return None

        failures = await self._each(pods, remove, "remove finalizers")
        removed = [pod.metadata.uid for pod, error in zip(pods, failures, strict=True) if error is None]
        return removed, next((error for error in failures if error is not None), None)

    async def _patch_finalizer(self, pod: core_v1_pb2.Pod) -> None:
        patched = await remove_finalizer(self._client, pod)
        self._context.writes.wrote(self._key, "pods", patched)

    async def _each(
        self, pods: Sequence[core_v1_pb2.Pod], work: Callable[[Any], Awaitable[errors.ApiError | None]], name: str
    ) -> list[errors.ApiError | None]:
        if len(pods) == 1:
            return [await work(pods[0])]

        async def one(pod: core_v1_pb2.Pod) -> errors.ApiError | None:
            return await work(pod)

        return list(await asyncio.gather(*(self._context.env.spawn(one(pod), name) for pod in pods)))


async def remove_finalizer(client: clients.Client, pod: core_v1_pb2.Pod) -> core_v1_pb2.Pod:
    """Raises NotFound, also if another pod has its name now."""
    metadata = pod.metadata
    try:
        found = await client.patch(
            "pods", metadata.name, metadata.namespace, tracking.REMOVAL, type="strategic", uid=metadata.uid
        )
        return cast(core_v1_pb2.Pod, found)
    except errors.Conflict as error:
        raise errors.NotFound(error.message) from None


def from_template(job: batch_v1_pb2.Job) -> core_v1_pb2.Pod:
    """A pod of a Job, without a completion index (``GetPodFromTemplate``)."""
    template = job.spec.template
    pod = core_v1_pb2.Pod()
    metadata = pod.metadata
    metadata.namespace = job.metadata.namespace
    prefix = f"{job.metadata.name}-"
    metadata.generateName = job.metadata.name if names.dns_subdomain(f"{prefix}a") else prefix
    for key in sorted(template.metadata.labels):
        metadata.labels[key] = template.metadata.labels[key]
    for key in sorted(template.metadata.annotations):
        metadata.annotations[key] = template.metadata.annotations[key]
    metadata.finalizers.extend(template.metadata.finalizers)
    if tracking.FINALIZER not in metadata.finalizers:
        metadata.finalizers.append(tracking.FINALIZER)
    metadata.ownerReferences.append(meta.owner_reference(job, "batch/v1", "Job"))
    pod.spec.CopyFrom(template.spec)
    if completion_indexes.is_indexed(job):
        completion_indexes.add_environment(pod.spec)
    return pod
