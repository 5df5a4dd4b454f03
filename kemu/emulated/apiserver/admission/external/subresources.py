"""Bindings and evictions, about which admission is asked as about new objects: of a Binding, of an Eviction."""

from __future__ import annotations

from kemu.emulated.apiserver.admission import Chain
from kemu.emulated.apiserver.admission.external.attributes import CREATE, Asking
from kemu.emulated.objects import resources
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2

PODS = resources.BY_PLURAL["pods"]


class Subresources:
    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    async def bind(self, asking: Asking, request: api_pb2.BindRequest) -> api_pb2.BindRequest:
        """The binding as it shall be. Raises :class:`kemu.errors.ApiError`."""
        binding = core_v1_pb2.Binding()
        metadata = binding.metadata
        metadata.name, metadata.namespace = request.name, request.namespace
        if request.uid:
            metadata.uid = request.uid
        metadata.annotations.update(request.annotations)
        metadata.labels.update(request.labels)
        binding.target.kind, binding.target.name = "Node", request.node
        before = binding.SerializeToString(deterministic=True)
        await self._ask(asking, "binding", request.namespace, request.name, binding)
        if binding.SerializeToString(deterministic=True) == before:
            return request
        changed = api_pb2.BindRequest()
        changed.CopyFrom(request)
        changed.uid, changed.node = binding.metadata.uid, binding.target.name
        changed.annotations.clear()
        changed.annotations.update(binding.metadata.annotations)
        changed.labels.clear()
        changed.labels.update(binding.metadata.labels)
        return changed

    async def evict(self, asking: Asking, request: api_pb2.EvictRequest) -> api_pb2.EvictRequest:
        """The eviction as it shall be. Raises :class:`kemu.errors.ApiError`."""
        eviction = policy_v1_pb2.Eviction()
        eviction.metadata.name, eviction.metadata.namespace = request.name, request.namespace
        options, wanted = eviction.deleteOptions, request.preconditions
        if request.HasField("grace_period_seconds"):
            options.gracePeriodSeconds = request.grace_period_seconds
        if wanted.uid:
            options.preconditions.uid = wanted.uid
        if wanted.resource_version:
            options.preconditions.resourceVersion = wanted.resource_version
        options.dryRun.extend(request.dry_run)
        before = eviction.SerializeToString(deterministic=True)
        await self._ask(asking, "eviction", request.namespace, request.name, eviction)
        if eviction.SerializeToString(deterministic=True) == before:
            return request
        changed = api_pb2.EvictRequest(namespace=request.namespace, name=request.name, dry_run=request.dry_run)
        options = eviction.deleteOptions
        if options.HasField("gracePeriodSeconds"):
            changed.grace_period_seconds = options.gracePeriodSeconds
        changed.preconditions.uid = options.preconditions.uid
        changed.preconditions.resource_version = options.preconditions.resourceVersion
        return changed

    async def _ask(self, asking: Asking, subresource: str, namespace: str, name: str, obj: KubernetesObject) -> None:
        external = self._chain.external
        assert external is not None
        subject = resources.SUBRESOURCE_MESSAGES[type(obj)]
        asked = external.attributes(asking, CREATE, PODS, subresource, namespace, name, obj, None, subject)
        await external.mutate(asked)
        await self._chain.validate_asking(asked)
