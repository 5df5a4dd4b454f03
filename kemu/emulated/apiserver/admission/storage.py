"""DefaultStorageClass, StorageObjectInUseProtection and PersistentVolumeClaimResize
(``plugin/pkg/admission/storage``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Derived, Plugin
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.volumes import claims
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_CLAIMS = resources.BY_PLURAL["persistentvolumeclaims"]
_FINALIZERS = {
    "persistentvolumeclaims": claims.CLAIM_PROTECTION,
    "persistentvolumes": claims.VOLUME_PROTECTION,
    "volumeattributesclasses": claims.ATTRIBUTES_PROTECTION,
}


class DefaultStorageClass(Plugin[core_v1_pb2.PersistentVolumeClaim]):
    """A claim that names no class, be it "", gets the default one, if there is one."""

    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._default: Derived[Any] = Derived(cache, "storageclasses", claims.default_of)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is _CLAIMS

    async def create(self, resource: Resource, obj: core_v1_pb2.PersistentVolumeClaim) -> None:
        if claims.has_class(obj):
            return
        default = self._default.get()
        if default is not None:
            obj.spec.storageClassName = default.metadata.name


class StorageObjectInUseProtection(Plugin[KubernetesObject]):
    """Claims, volumes and classes of attributes stay until they are not used any more: their finalizers are removed by
    ``controller/volume-protection``."""

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource.plural in _FINALIZERS

    async def create(self, resource: Resource, obj: KubernetesObject) -> None:
        finalizer = _FINALIZERS[resource.plural]
        if finalizer not in obj.metadata.finalizers:
            obj.metadata.finalizers.append(finalizer)


def _by_name(found: Iterable[Any]) -> dict[str, bool]:
    """Whether claims of a class may grow."""
    return {one.metadata.name: one.allowVolumeExpansion for one in found}


class PersistentVolumeClaimResize(Plugin[core_v1_pb2.PersistentVolumeClaim]):
    """Only a bound claim grows, and only if its class allows it (``storage/persistentvolume/resize``)."""

    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._allows: Derived[dict[str, bool]] = Derived(cache, "storageclasses", _by_name)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is _CLAIMS

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        return not subresource

    async def validate_update(
        self,
        resource: Resource,
        subresource: str,
        new: core_v1_pb2.PersistentVolumeClaim,
        old: core_v1_pb2.PersistentVolumeClaim,
    ) -> None:
        if not claims.requested(old) < claims.requested(new):
            return
        why = ""
        if old.status.phase != claims.BOUND:
            why = "Only bound persistent volume claims can be expanded"
        else:
            name = claims.class_of_claim(new)
            if not name or name != claims.class_of_claim(old) or not self._allows.get().get(name):
                why = (
                    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                    "support resize"
                )
        if why:
            raise errors.forbidden(resource, new.metadata.name, why)
