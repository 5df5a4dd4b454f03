"""The defaults of volumes: claims, volumes, and the group storage.k8s.io."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.defaulting import data_sources, shared
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2


def default_claim_spec(spec: core_v1_pb2.PersistentVolumeClaimSpec) -> None:
    """The defaults of a claim, or of a template of claims."""
    if not spec.HasField("volumeMode"):
        spec.volumeMode = "Filesystem"
    shared.round_up(spec.resources.limits)
    shared.round_up(spec.resources.requests)


def default_claim(claim: core_v1_pb2.PersistentVolumeClaim) -> None:
    default_claim_spec(claim.spec)
    shared.round_up(claim.status.capacity)
    shared.round_up(claim.status.allocatedResources)
    if not claim.status.phase:
        claim.status.phase = "Pending"


def _default_volume(volume: core_v1_pb2.PersistentVolume) -> None:
    spec = volume.spec
    if not volume.status.phase:
        volume.status.phase = "Pending"
    if not spec.persistentVolumeReclaimPolicy:
        spec.persistentVolumeReclaimPolicy = "Retain"
    if not spec.HasField("volumeMode"):
        spec.volumeMode = "Filesystem"
    _default_volume_spec(spec)


def _default_volume_spec(spec: core_v1_pb2.PersistentVolumeSpec) -> None:
    shared.round_up(spec.capacity)
    for field, source in spec.persistentVolumeSource.ListFields():
        default_source(field.name, source)


_TEXTS: Mapping[str, Mapping[str, str]] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""Of sources of volumes: what stands where there is no text."""
_STATED: Mapping[str, Mapping[str, str | int | bool]] = {
    "secret": {"defaultMode": 0o644},
    "configMap": {"defaultMode": 0o644},
    "downwardAPI": {"defaultMode": 0o644},
    "projected": {"defaultMode": 0o644},
    "hostPath": {"type": ""},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
}
"""What stands where nothing is stated."""


def default_source(kind: str, source: Message) -> None:
    """What pods and PersistentVolumes leave out of a source of this kind."""
    for field, text in _TEXTS.get(kind, {}).items():
        if not getattr(source, field):
            setattr(source, field, text)
    for field, value in _STATED.get(kind, {}).items():
        if not source.HasField(field):
            setattr(source, field, value)


def _default_attachment(attachment: storage_v1_pb2.VolumeAttachment) -> None:
    if attachment.spec.source.HasField("inlineVolumeSpec"):
        _default_volume_spec(attachment.spec.source.inlineVolumeSpec)


def _default_class(storage_class: storage_v1_pb2.StorageClass) -> None:
    if not storage_class.HasField("reclaimPolicy"):
        storage_class.reclaimPolicy = "Delete"
    if not storage_class.HasField("volumeBindingMode"):
        storage_class.volumeBindingMode = "Immediate"


def _default_driver(driver: storage_v1_pb2.CSIDriver) -> None:
    spec = driver.spec
    if not spec.HasField("attachRequired"):
        spec.attachRequired = True
    for field in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        if not spec.HasField(field):
            setattr(spec, field, False)
    if not spec.HasField("fsGroupPolicy"):
        spec.fsGroupPolicy = "ReadWriteOnceWithFSType"
    if not spec.volumeLifecycleModes:
        spec.volumeLifecycleModes.append("Persistent")


FILL: dict[type[Message], Callable[[Any], None]] = {
    core_v1_pb2.PersistentVolumeClaim: default_claim,
    core_v1_pb2.PersistentVolume: _default_volume,
    storage_v1_pb2.StorageClass: _default_class,
    storage_v1_pb2.CSIDriver: _default_driver,
    storage_v1_pb2.VolumeAttachment: _default_attachment,
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


def drop_disabled_of_driver(new: storage_v1_pb2.CSIDriver, old: storage_v1_pb2.CSIDriver | None = None) -> None:
    """What only a feature gate uses that is off (``csiDriverStrategy``)."""
    field = "preventPodSchedulingIfMissing"
    if new.spec.HasField(field) and (old is None or not old.spec.HasField(field)):
        new.spec.ClearField(field)


PREPARE: dict[type[Message], Callable[[Any], None]] = {
    core_v1_pb2.PersistentVolumeClaim: _prepare_claim,
    core_v1_pb2.PersistentVolume: _prepare_phase,
    storage_v1_pb2.VolumeAttachment: _prepare_attachment,
    storage_v1_pb2.CSIDriver: drop_disabled_of_driver,
}
