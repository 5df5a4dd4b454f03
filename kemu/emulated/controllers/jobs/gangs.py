"""Jobs whose pods start together: the Workload and the PodGroup of a Job (feature gate WorkloadWithJob).

Mirrors ``job_scheduling_manager.go`` of ``pkg/controller/job``. A Job that is indexed and has as many completions as
pods at a time, more than one, gets a Workload before its first pod, and of that a PodGroup that its pods name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from kemu import errors
from kemu.emulated.client import informers, recorders, retries
from kemu.emulated.controllers.jobs import completion_indexes, conditions, contexts
from kemu.emulated.objects import meta
from kemu.emulated.objects.templates import hashes
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2, scheduling_v1alpha2_pb2

_VERSION = "scheduling.k8s.io/v1alpha2"
_LONGEST_NAME = 253

T = TypeVar("T", scheduling_v1alpha2_pb2.Workload, scheduling_v1alpha2_pb2.PodGroup)


class Gangs:
    def __init__(self, context: contexts.Context) -> None:
        self._context = context
        self._workloads: informers.Informer[scheduling_v1alpha2_pb2.Workload] = informers.Informer(
            context.client, "workloads"
        )
        self._groups: informers.Informer[scheduling_v1alpha2_pb2.PodGroup] = informers.Informer(
            context.client, "podgroups"
        )
        self.informers = (self._workloads, self._groups)

    async def group_of(self, job: batch_v1_pb2.Job, pods: Sequence[core_v1_pb2.Pod]) -> str:
        """The name of the PodGroup, made if the Job is new; "": its pods are scheduled one by one
        (``ensureWorkloadAndPodGroup``). Raises ApiError."""
        if not _is_candidate(job):
            return ""

        async def workload() -> scheduling_v1alpha2_pb2.Workload | None:
            return await self._workload(job, pods)

        found = await self._retried(workload)
        if found is None:
            return ""

        async def group() -> scheduling_v1alpha2_pb2.PodGroup | None:
            return await self._group(job, found)

        made = await self._retried(group)
        return "" if made is None else str(made.metadata.name)

    async def _retried(self, step: Callable[[], Awaitable[T | None]]) -> T | None:
        for _ in range(retries.RETRIES - 1):
            try:
                return await step()
            except errors.AlreadyExists:
                stretched = 1 + retries.JITTER * self._context.env.random.random()
                await self._context.env.clock.sleep(retries.RETRY_S * stretched)
        return await step()

    async def _workload(
        self, job: batch_v1_pb2.Job, pods: Sequence[core_v1_pb2.Pod]
    ) -> scheduling_v1alpha2_pb2.Workload | None:
        """``getOrCreateWorkload``."""
        found = [one for one in self._workloads.store.values() if _is_of(one, job)]
        if found:
            owned = _owned(found, job)
            return owned if owned is not None and len(owned.spec.podGroupTemplates) == 1 else None
        if pods or not _is_new(job):
            return None
        metadata, workload = job.metadata, scheduling_v1alpha2_pb2.Workload()
        workload.metadata.name = workload_name(metadata.name, metadata.uid)
        workload.metadata.namespace = metadata.namespace
        workload.metadata.ownerReferences.append(meta.owner_reference(job, "batch/v1", "Job"))
        reference = workload.spec.controllerRef
        reference.apiGroup, reference.kind, reference.name = "batch", "Job", metadata.name
        template = workload.spec.podGroupTemplates.add(name=f"{metadata.name}-pgt-0")
        template.schedulingPolicy.gang.minCount = job.spec.parallelism
        created = await self._context.client.create(workload)
        note = f"Created Workload {created.metadata.name} for Job {metadata.name}"
        self._context.recorder.event(job, recorders.NORMAL, "WorkloadCreated", "WorkloadCreated", note, routine=True)
        return created

    async def _group(
        self, job: batch_v1_pb2.Job, workload: scheduling_v1alpha2_pb2.Workload
    ) -> scheduling_v1alpha2_pb2.PodGroup | None:
        """``getOrCreatePodGroup``."""
        name, namespace = workload.metadata.name, workload.metadata.namespace
        found = [
            one
            for one in self._groups.store.values()
            if one.metadata.namespace == namespace and one.spec.podGroupTemplateRef.workload.workloadName == name
        ]
        if found:
            return _owned(found, job)
        template, group = workload.spec.podGroupTemplates[0], scheduling_v1alpha2_pb2.PodGroup()
        group.metadata.name, group.metadata.namespace = group_name(name, template.name), namespace
        owner = meta.owner_reference(workload, _VERSION, "Workload")
        owner.ClearField("controller")
        owner.ClearField("blockOwnerDeletion")
        group.metadata.ownerReferences.extend((meta.owner_reference(job, "batch/v1", "Job"), owner))
        reference = group.spec.podGroupTemplateRef.workload
        reference.workloadName, reference.podGroupTemplateName = name, template.name
        group.spec.schedulingPolicy.CopyFrom(template.schedulingPolicy)
        return await self._context.client.create(group)


def workload_name(job: str, uid: str) -> str:
    """``computeWorkloadName``."""
    suffix = hashes.of_text(f"(types.UID){uid}")
    return f"{job[: _LONGEST_NAME - len(suffix) - 1]}-{suffix}"


def group_name(workload: str, template: str) -> str:
    """``computePodGroupName``."""
    suffix = hashes.of_text(workload + template)
    most = _LONGEST_NAME - len(suffix) - 2
    if len(workload) + len(template) > most:
        half = most // 2
        if len(workload) <= half:
            template = template[: most - len(workload)]
        elif len(template) <= half:
            workload = workload[: most - len(template)]
        else:
            workload, template = workload[: most - half], template[:half]
    return f"{workload}-{template}-{suffix}"


def _is_candidate(job: batch_v1_pb2.Job) -> bool:
    """``IsGangSchedulingCandidate``."""
    spec = job.spec
    return (
        spec.parallelism > 1
        and completion_indexes.is_indexed(job)
        and spec.completions == spec.parallelism
        and not spec.template.spec.HasField("schedulingGroup")
    )


def _is_new(job: batch_v1_pb2.Job) -> bool:
    """``isNewJob``, but for its pods."""
    status = job.status
    return not (
        status.HasField("startTime")
        or status.succeeded
        or status.failed
        or meta.get_condition(status.conditions, conditions.SUSPENDED)
    )


def _is_of(workload: scheduling_v1alpha2_pb2.Workload, job: batch_v1_pb2.Job) -> bool:
    reference = workload.spec.controllerRef
    return workload.metadata.namespace == job.metadata.namespace and (
        (reference.apiGroup, reference.kind, reference.name) == ("batch", "Job", job.metadata.name)
    )


def _owned(found: Sequence[T], job: batch_v1_pb2.Job) -> T | None:
    """The only one, if the Job controls it."""
    if len(found) > 1:
        return None
    reference = meta.controller_of(found[0])
    return found[0] if reference is not None and reference.uid == job.metadata.uid else None
