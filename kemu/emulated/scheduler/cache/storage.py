"""What the scheduler knows about storage: claims, volumes, classes, drivers, attachments.

Unlike nodes and pods this is no part of an attempt's snapshot: the plugins of kube-scheduler ask listers, which show
what the watches have shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from kemu.emulated.objects import meta
from kemu.emulated.objects.volumes import claims
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

T = TypeVar("T", bound=Any)


class Storage:
    """All by name, or by ``ns/name``, in the order in which they appeared."""

    def __init__(self) -> None:
        self.claims: dict[str, core_v1_pb2.PersistentVolumeClaim] = {}
        self.volumes: dict[str, core_v1_pb2.PersistentVolume] = {}
        self.classes: dict[str, storage_v1_pb2.StorageClass] = {}
        self.csi_nodes: dict[str, storage_v1_pb2.CSINode] = {}
        self.drivers: dict[str, storage_v1_pb2.CSIDriver] = {}
        self.capacities: dict[str, storage_v1_pb2.CSIStorageCapacity] = {}
        self.attachments: dict[str, dict[str, storage_v1_pb2.VolumeAttachment]] = {}
        """By node."""
        self._volumes_by_class: dict[str, dict[str, None]] = {}
        self.in_use: dict[str, int] = {}
        """How many pods on nodes use a claim, by ``ns/name`` (``IsPVCUsedByPods``)."""

    def set_volume(self, volume: core_v1_pb2.PersistentVolume, *, is_there: bool) -> None:
        name = volume.metadata.name
        old = self.volumes.get(name)
        if old is not None:
            members = self._volumes_by_class[claims.class_of_volume(old)]
            if not is_there or claims.class_of_volume(old) != claims.class_of_volume(volume):
                del members[name]
        if is_there:
            self.volumes[name] = volume
            self._volumes_by_class.setdefault(claims.class_of_volume(volume), {})[name] = None
        elif old is not None:
            del self.volumes[name]

    def set_attachment(self, attachment: storage_v1_pb2.VolumeAttachment, *, is_there: bool) -> None:
        node, name = attachment.spec.nodeName, attachment.metadata.name
        if is_there:
            self.attachments.setdefault(node, {})[name] = attachment
            return
        known = self.attachments.get(node, {})
        known.pop(name, None)
        if not known:
            self.attachments.pop(node, None)

    def volumes_of_class(self, name: str) -> Iterator[core_v1_pb2.PersistentVolume]:
        for volume in self._volumes_by_class.get(name, ()):
            yield self.volumes[volume]

    def use(self, namespace: str, pod_claims: tuple[str, ...], change: int) -> None:
        """A pod with these claims came to a node (1), or went (-1)."""
        for claim in pod_claims:
            key = f"{namespace}/{claim}"
            left = self.in_use.get(key, 0) + change
            if left:
                self.in_use[key] = left
            else:
                del self.in_use[key]


class AssumeCache(Generic[T]):
    """Objects as this scheduler is about to write them, on top of the store of a watch (``passiveAssumeCache``).

    What the watch shows later always wins.
    """

    def __init__(self, store: dict[str, T]) -> None:
        self._store: dict[str, T] = store
        self._assumed: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        stored = self._store.get(key)
        assumed = self._assumed.get(key)
        if assumed is None:
            return stored
        if stored is None or stored.metadata.resourceVersion != assumed.metadata.resourceVersion:
            del self._assumed[key]
            return stored
        return assumed

    def stored(self, key: str) -> T | None:
        """Without what is assumed (``GetAPIObj``)."""
        return self._store.get(key)

    def assume(self, obj: T) -> str:
        """Returns what is wrong: the object is not made from the one that the watch has shown last."""
        key = meta.namespaced_name(obj)
        stored = self._store.get(key)
        if stored is None:
            return not_found("persistentvolumeclaims" if obj.metadata.namespace else "persistentvolumes", key)
        known, new = stored.metadata.resourceVersion, obj.metadata.resourceVersion
        if known != new:
            return f'"{key}" is out of sync (stored: {known}, assume: {new})'
        self._assumed[key] = obj
        return ""

    def restore(self, obj: T) -> None:
        """Forget what was assumed, unless it is based on a newer object."""
        key = meta.namespaced_name(obj)
        assumed = self._assumed.get(key)
        if assumed is not None and assumed.metadata.resourceVersion == obj.metadata.resourceVersion:
            del self._assumed[key]


def not_found(resource: str, name: str) -> str:
    """The text of ``apierrors.NewNotFound``."""
    return f'{resource} "{name}" not found'
