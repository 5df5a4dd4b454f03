"""The checks of volumes: claims, volumes, and the group storage.k8s.io."""

from __future__ import annotations

from kemu.k8s import core_v1_pb2, storage_v1_pb2
from kemu.objects.validation.rules import Rules

RULES = {
    core_v1_pb2.PersistentVolume: Rules(),
    core_v1_pb2.PersistentVolumeClaim: Rules(),
    storage_v1_pb2.StorageClass: Rules(),
    storage_v1_pb2.CSINode: Rules(),
    storage_v1_pb2.CSIDriver: Rules(),
    storage_v1_pb2.CSIStorageCapacity: Rules(),
    storage_v1_pb2.VolumeAttachment: Rules(),
    storage_v1_pb2.VolumeAttributesClass: Rules(),
}
