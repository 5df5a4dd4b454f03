"""The objects of storage in recorded cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.cache.storage import Storage
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

MESSAGES: dict[str, Any] = {
    "persistentVolumes": core_v1_pb2.PersistentVolume,
    "persistentVolumeClaims": core_v1_pb2.PersistentVolumeClaim,
    "storageClasses": storage_v1_pb2.StorageClass,
    "csiNodes": storage_v1_pb2.CSINode,
    "csiDrivers": storage_v1_pb2.CSIDriver,
    "csiStorageCapacities": storage_v1_pb2.CSIStorageCapacity,
    "volumeAttachments": storage_v1_pb2.VolumeAttachment,
}


def objects(case: Mapping[str, Any], key: str) -> Iterator[Any]:
    """The objects of a kind in a case."""
    for data in case.get(key, ()):
        yield convert.from_json(MESSAGES[key], data)


def fill(storage: Storage, case: Mapping[str, Any]) -> None:
    """Show a scheduler what the case has."""
    for volume in objects(case, "persistentVolumes"):
        storage.set_volume(volume, is_there=True)
    for attachment in objects(case, "volumeAttachments"):
        storage.set_attachment(attachment, is_there=True)
    stores: dict[str, dict[str, Any]] = {
        "persistentVolumeClaims": storage.claims,
        "storageClasses": storage.classes,
        "csiNodes": storage.csi_nodes,
        "csiDrivers": storage.drivers,
        "csiStorageCapacities": storage.capacities,
    }
    for key, store in stores.items():
        for one in objects(case, key):
            store[meta.namespaced_name(one)] = one
