"""RuntimeClass: overhead, node selector and tolerations of a pod's class (``plugin/pkg/admission/runtimeclass``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Derived, Plugin
from kemu.emulated.apiserver.admission.tolerations import sets
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import names, resources
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2, node_v1_pb2

PODS = resources.BY_PLURAL["pods"]
RUNTIME_CLASSES = resources.BY_PLURAL["runtimeclasses"]

MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
WITHOUT_CLASS = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Plugin[core_v1_pb2.Pod]):
    """Completes pods in :meth:`create`; refuses in :meth:`validate` an overhead that their class does not define."""

    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._classes = Derived(cache, "runtimeclasses", _by_name)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is PODS

    async def create(self, resource: Resource, obj: core_v1_pb2.Pod) -> None:
        if not obj.spec.HasField("runtimeClassName"):
            return
        found = await self._class_of(obj)
        if found.HasField("overhead"):
            _set_overhead(obj, found.overhead.podFixed)
        if found.HasField("scheduling"):
            _set_scheduling(obj, found.scheduling)

    async def validate(self, resource: Resource, obj: core_v1_pb2.Pod) -> None:
        spec = obj.spec
        found = await self._class_of(obj) if spec.HasField("runtimeClassName") else None
        if found is not None and found.HasField("overhead"):
            if not _same_amounts(found.overhead.podFixed, spec.overhead):
                raise errors.forbidden(PODS, obj.metadata.name, MISMATCH)
        elif spec.overhead:
            raise errors.forbidden(PODS, obj.metadata.name, WITHOUT_CLASS)

    async def _class_of(self, pod: core_v1_pb2.Pod) -> node_v1_pb2.RuntimeClass:
        wanted = pod.spec.runtimeClassName
        known = self._classes.get().get(wanted)
        if known is not None:
            return known
        _check_name(wanted)
        found = await self.live(RUNTIME_CLASSES, wanted)
        if found is None:
            raise errors.forbidden(PODS, pod.metadata.name, f'pod rejected: RuntimeClass "{wanted}" not found')
        return cast(node_v1_pb2.RuntimeClass, found)


def _check_name(name: str) -> None:
    """The client with which the plugin asks refuses what can be no part of a URL, before anything is asked."""
    if not name:
        raise kemu_errors.ApiError("resource name may not be empty")
    problems = names.path_segment(name)
    if problems:
        raise kemu_errors.ApiError(f'invalid resource name "{name}": [{" ".join(problems)}]')


def _by_name(classes: Iterable[Any]) -> dict[str, node_v1_pb2.RuntimeClass]:
    return {one.metadata.name: one for one in classes}


def _set_overhead(pod: core_v1_pb2.Pod, overhead: Mapping[str, Any]) -> None:
    own = pod.spec.overhead
    if own and not _same_amounts(overhead, own):
        raise errors.forbidden(PODS, pod.metadata.name, MISMATCH)
    own.clear()
    for name in sorted(overhead):
        own[name].string = overhead[name].string


def _same_amounts(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Equal as numbers, however they are written. An amount that cannot be read equals only the same text."""
    if sorted(one) != sorted(other):
        return False
    for name in one:
        first, second = one[name].string, other[name].string
        try:
            if quantities.parse(first) != quantities.parse(second):
                return False
        except ValueError:
            if first != second:
                return False
    return True


def _set_scheduling(pod: core_v1_pb2.Pod, scheduling: node_v1_pb2.Scheduling) -> None:
    spec = pod.spec
    for key in sorted(scheduling.nodeSelector):
        value = scheduling.nodeSelector[key]
        own = spec.nodeSelector.get(key, value)
        if own != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
            )
            raise errors.forbidden(PODS, pod.metadata.name, why)
        spec.nodeSelector[key] = value
    merged = sets.merge([*spec.tolerations, *scheduling.tolerations])
    del spec.tolerations[:]
    spec.tolerations.extend(merged)
