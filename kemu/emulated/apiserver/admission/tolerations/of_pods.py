"""PodTolerationRestriction: tolerations by namespace, and of memory pressure for pods that are not best-effort.

Mirrors ``plugin/pkg/admission/podtolerationrestriction``. Off by default, as in Kubernetes
(``DefaultOffAdmissionPlugins`` of ``pkg/kubeapiserver/options``); its cluster-wide lists are not built.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Derived, Plugin
from kemu.emulated.apiserver.admission.tolerations import sets
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.amounts import qos
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2

PODS = resources.BY_PLURAL["pods"]
NAMESPACES = resources.BY_PLURAL["namespaces"]
MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"

DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOWED = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
"""Annotations of a namespace: JSON lists of tolerations."""


class PodTolerationRestriction(Plugin[core_v1_pb2.Pod]):
    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._annotations = Derived(cache, "namespaces", _annotations_by_name)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is PODS

    async def create(self, resource: Resource, obj: core_v1_pb2.Pod) -> None:
        _merge(obj, await self._of_namespace(obj, DEFAULTS))

    async def validate(self, resource: Resource, obj: core_v1_pb2.Pod) -> None:
        if not sets.are_covered(obj.spec.tolerations, await self._of_namespace(obj, ALLOWED)):
            why = (
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace "
                "whitelist"
            )
            raise errors.forbidden(PODS, obj.metadata.name, why)

    def update(self, resource: Resource, new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> None:
        _merge(new, [])

    async def _of_namespace(self, pod: core_v1_pb2.Pod, annotation: str) -> list[core_v1_pb2.Toleration]:
        name = pod.metadata.namespace
        annotations = self._annotations.get().get(name)
        if annotations is None:
            namespace = await self.live(NAMESPACES, name)
            annotations = {} if namespace is None else dict(namespace.metadata.annotations)
        text = annotations.get(annotation)
        if not text:
            return []
        try:
            return [convert.from_json(core_v1_pb2.Toleration, one) for one in json.loads(text)]
        except (ValueError, TypeError, AttributeError) as error:
            raise errors.forbidden(PODS, pod.metadata.name, f"{annotation} of namespace {name}: {error}") from error


def _annotations_by_name(namespaces: Iterable[Any]) -> dict[str, dict[str, str]]:
    return {one.metadata.name: dict(one.metadata.annotations) for one in namespaces}


def _merge(pod: core_v1_pb2.Pod, extra: list[core_v1_pb2.Toleration]) -> None:
    if qos.qos_class(pod) != qos.BEST_EFFORT:
        extra = [*extra, core_v1_pb2.Toleration(key=MEMORY_PRESSURE, operator="Exists", effect="NoSchedule")]
    if extra:
        merged = sets.merge([*pod.spec.tolerations, *extra])
        del pod.spec.tolerations[:]
        pod.spec.tolerations.extend(merged)
