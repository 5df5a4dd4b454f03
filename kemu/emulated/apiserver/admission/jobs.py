"""JobValidation: a Job whose pods are a gang keeps its parallelism (``plugin/pkg/admission/job``)."""

from __future__ import annotations

from collections.abc import Iterator

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import batch_v1_pb2, scheduling_v1alpha2_pb2

_JOBS, _GROUPS = resources.BY_PLURAL["jobs"], resources.BY_PLURAL["podgroups"]


class JobValidation(Plugin[batch_v1_pb2.Job]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is _JOBS

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        return not subresource

    async def validate_update(
        self, resource: Resource, subresource: str, new: batch_v1_pb2.Job, old: batch_v1_pb2.Job
    ) -> None:
        if new.spec.parallelism == old.spec.parallelism:
            return
        for group in self._groups(old):
            if group.spec.schedulingPolicy.HasField("gang"):
                why = f'cannot change parallelism for a Job referencing gang-scheduled PodGroup "{group.metadata.name}"'
                raise errors.forbidden(resource, new.metadata.name, why)

    def _groups(self, job: batch_v1_pb2.Job) -> Iterator[scheduling_v1alpha2_pb2.PodGroup]:
        """The one that its pods name, or those that it controls."""
        entries, named = self.cache.collections["podgroups"].entries, job.spec.template.spec
        namespace = resources.key(_GROUPS, job.metadata.namespace, "")
        if named.HasField("schedulingGroup"):
            entry = entries.get(namespace + named.schedulingGroup.podGroupName.encode())
            if entry is not None:
                yield scheduling_v1alpha2_pb2.PodGroup.FromString(entry.value)
            return
        for key, entry in entries.items():
            if key.startswith(namespace):
                group = scheduling_v1alpha2_pb2.PodGroup.FromString(entry.value)
                owner = meta.controller_of(group)
                if owner is not None and owner.uid == job.metadata.uid:
                    yield group
