"""NamespaceLifecycle: nothing is created in a namespace that does not exist or that is terminating."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Derived, Plugin
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

IMMORTAL = ("default", "kube-system", "kube-public")
"""May not be deleted."""

NAMESPACES = resources.BY_PLURAL["namespaces"]


def _is_terminating(namespace: core_v1_pb2.Namespace) -> bool:
    return bool(namespace.metadata.HasField("deletionTimestamp") or namespace.status.phase == "Terminating")


def _terminating_by_name(namespaces: Iterable[Any]) -> dict[str, bool]:
    return {namespace.metadata.name: _is_terminating(namespace) for namespace in namespaces}


class NamespaceLifecycle(Plugin[KubernetesObject]):
    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._terminating = Derived(cache, "namespaces", _terminating_by_name)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource.namespaced or resource is NAMESPACES

    async def create(self, resource: Resource, obj: KubernetesObject) -> None:
        if not resource.namespaced:
            return
        name = obj.metadata.namespace
        terminating = self._terminating.get().get(name)
        if terminating is None:
            namespace = await self.live(NAMESPACES, name)
            if namespace is None:
                raise errors.not_found(NAMESPACES, name)
            terminating = _is_terminating(cast(core_v1_pb2.Namespace, namespace))
        if terminating:
            cause = kemu_errors.Cause(
                "metadata.namespace", "NamespaceTerminating", f"namespace {name} is being terminated"
            )
            why = f"unable to create new content in namespace {name} because it is being terminated"
            raise errors.forbidden(resource, obj.metadata.name, why, [cause])

    def delete(self, resource: Resource, name: str, namespace: str) -> None:
        if resource is NAMESPACES and name in IMMORTAL:
            raise errors.forbidden(resource, name, "this namespace may not be deleted")
