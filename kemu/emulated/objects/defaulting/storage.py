"""The defaults of volumes: claims, volumes, and the group storage.k8s.io."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.defaulting import data_sources
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2


def default_claim_spec(spec: core_v1_pb2.PersistentVolumeClaimSpec) -> None:
    """The defaults of a claim, or of a template of claims."""
    if not spec.volumeMode:
        spec.volumeMode = "Filesystem"


def default_claim(claim: core_v1_pb2.PersistentVolumeClaim) -> None:
    default_claim_spec(claim.spec)
    if not claim.status.phase:
        claim.status.phase = "Pending"


def _default_volume(volume: core_v1_pb2.PersistentVolume) -> None:
    spec = volume.spec
    if not volume.status.phase:
        volume.status.phase = "Pending"
    if not spec.persistentVolumeReclaimPolicy:
        spec.persistentVolumeReclaimPolicy = "Retain"
    if not spec.volumeMode:
        spec.volumeMode = "Filesystem"
    source = spec.persistentVolumeSource
    if source.HasField("hostPath") and not source.hostPath.HasField("type"):
        source.hostPath.type = ""


def _default_class(storage_class: storage_v1_pb2.StorageClass) -> None:
    if not storage_class.reclaimPolicy:
        storage_class.reclaimPolicy = "Delete"
    if not storage_class.volumeBindingMode:
        storage_class.volumeBindingMode = "Immediate"


def _default_driver(driver: storage_v1_pb2.CSIDriver) -> None:
    spec = driver.spec
    if not spec.HasField("attachRequired"):
        spec.attachRequired = True
    for field in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        if not spec.HasField(field):
            setattr(spec, field, False)
    if not spec.fsGroupPolicy:
        spec.fsGroupPolicy = "ReadWriteOnceWithFSType"
    if not spec.volumeLifecycleModes:
        spec.volumeLifecycleModes.append("Persistent")


FILL: dict[type[Message], Callable[[Any], None]] = {
    core_v1_pb2.PersistentVolumeClaim: default_claim,
    core_v1_pb2.PersistentVolume: _default_volume,
    storage_v1_pb2.StorageClass: _default_class,
    storage_v1_pb2.CSIDriver: _default_driver,
}


def _prepare_phase(obj: core_v1_pb2.PersistentVolume | core_v1_pb2.PersistentVolumeClaim) -> None:
    """``PrepareForCreate`` of claims and volumes, which have no generation: they are not bound yet."""
    obj.ClearField("status")
    obj.status.phase = "Pending"


def _prepare_claim(claim: core_v1_pb2.PersistentVolumeClaim) -> None:
    _prepare_phase(claim)
    data_sources.prepare(claim.spec)


def _prepare_attachment(attachment: storage_v1_pb2.VolumeAttachment) -> None:
    attachment.ClearField("status")


PREPARE: dict[type[Message], Callable[[Any], None]] = {
    core_v1_pb2.PersistentVolumeClaim: _prepare_claim,
    core_v1_pb2.PersistentVolume: _prepare_phase,
    storage_v1_pb2.VolumeAttachment: _prepare_attachment,
}
