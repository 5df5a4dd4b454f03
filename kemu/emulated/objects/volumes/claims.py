"""PersistentVolumeClaims and PersistentVolumes: annotations, classes, and who claims what.

Mirrors ``k8s.io/component-helpers/storage`` (volume/pv_helpers.go, volume/helpers.go, ephemeral/ephemeral.go).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""On a claim: it has been bound. If its volume goes, its data is lost."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""On a claim or a volume: a controller bound it, not its author."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the scheduler wants its volume to be reachable from there."""
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
"""On a claim: who is to create its volume."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
"""On a volume: who created it."""
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"

NO_PROVISIONER = "kubernetes.io/no-provisioner"

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
ATTRIBUTES_PROTECTION = "kubernetes.io/vac-protection"
PROVISIONER_PROTECTION = "external-provisioner.volume.kubernetes.io/finalizer"
"""Finalizers."""

PENDING, BOUND, LOST = "Pending", "Bound", "Lost"
AVAILABLE, RELEASED, FAILED = "Available", "Released", "Failed"
IMMEDIATE, WAIT_FOR_FIRST_CONSUMER = "Immediate", "WaitForFirstConsumer"
DELETE, RETAIN, RECYCLE = "Delete", "Retain", "Recycle"

READ_WRITE_ONCE, READ_ONLY_MANY = "ReadWriteOnce", "ReadOnlyMany"
READ_WRITE_MANY, READ_WRITE_ONCE_POD = "ReadWriteMany", "ReadWriteOncePod"

FILESYSTEM, BLOCK = "Filesystem", "Block"


def class_of_claim(claim: core_v1_pb2.PersistentVolumeClaim) -> str:
    """The name of its class, "" for none (``GetPersistentVolumeClaimClass``)."""
    return str(claim.metadata.annotations.get(BETA_CLASS, claim.spec.storageClassName))


def has_class(claim: core_v1_pb2.PersistentVolumeClaim) -> bool:
    """Whether it names a class, be it "" (``PersistentVolumeClaimHasClass``)."""
    return BETA_CLASS in claim.metadata.annotations or claim.spec.HasField("storageClassName")


def class_of_volume(volume: core_v1_pb2.PersistentVolume) -> str:
    """``GetPersistentVolumeClass``."""
    return str(volume.metadata.annotations.get(BETA_CLASS, volume.spec.storageClassName))


def is_default(storage_class: storage_v1_pb2.StorageClass) -> bool:
    """Whether claims without a class get this one (``IsDefaultAnnotation``)."""
    annotations = storage_class.metadata.annotations
    return "true" in (annotations.get(DEFAULT_CLASS), annotations.get(BETA_DEFAULT_CLASS))


def default_of(classes: Iterable[storage_v1_pb2.StorageClass]) -> storage_v1_pb2.StorageClass | None:
    """The default one of these classes: the newest, then the first by name (``GetDefaultClass``)."""
    found = [one for one in classes if is_default(one)]
    found.sort(key=lambda one: (-one.metadata.creationTimestamp.seconds, one.metadata.name))
    return found[0] if found else None


def is_fully_bound(claim: core_v1_pb2.PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volumeName) and BIND_COMPLETED in claim.metadata.annotations


def requested(claim: core_v1_pb2.PersistentVolumeClaim) -> Quantity:
    """How much storage a claim asks for; 0 where it says nothing."""
    requests = claim.spec.resources.requests
    return quantities.parse(requests["storage"].string) if "storage" in requests else quantities.ZERO


def capacity(volume: core_v1_pb2.PersistentVolume) -> Quantity:
    amounts = volume.spec.capacity
    return quantities.parse(amounts["storage"].string) if "storage" in amounts else quantities.ZERO


def claim_name(pod_name: str, volume: core_v1_pb2.Volume) -> str:
    """The claim behind a volume of a pod; "" for a volume without one (``VolumeClaimName`` for an ephemeral one)."""
    source = volume.volumeSource
    if source.HasField("persistentVolumeClaim"):
        return str(source.persistentVolumeClaim.claimName)
    if source.HasField("ephemeral"):
        return f"{pod_name}-{volume.name}"
    return ""


def claim_names(pod: core_v1_pb2.Pod) -> Iterator[str]:
    """The names of the claims of a pod, also those of its ephemeral volumes."""
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        if source.HasField("persistentVolumeClaim") or source.HasField("ephemeral"):
            yield claim_name(pod.metadata.name, volume)


def not_for_pod(claim: core_v1_pb2.PersistentVolumeClaim, pod: core_v1_pb2.Pod) -> str:
    """Why the claim is not that of an ephemeral volume of this pod; "" if it is (``VolumeIsForPod``)."""
    owner = meta.controller_of(claim)
    metadata = pod.metadata
    if claim.metadata.namespace == metadata.namespace and owner is not None and owner.uid == metadata.uid:
        return ""
    name = f"{metadata.namespace}/{metadata.name}"
    return f"PVC {meta.namespaced_name(claim)} was not created for pod {name} (pod is not owner)"


def is_bound_to(volume: core_v1_pb2.PersistentVolume, claim: core_v1_pb2.PersistentVolumeClaim) -> bool:
    """Whether the volume is bound, or pre-bound, to this claim (``IsVolumeBoundToClaim``)."""
    if not volume.spec.HasField("claimRef"):
        return False
    reference, metadata = volume.spec.claimRef, claim.metadata
    if reference.name != metadata.name or reference.namespace != metadata.namespace:
        return False
    return not reference.uid or reference.uid == metadata.uid


def bound_to(
    volume: core_v1_pb2.PersistentVolume, claim: core_v1_pb2.PersistentVolumeClaim
) -> core_v1_pb2.PersistentVolume | None:
    """A copy of the volume that refers to the claim; None if it does already (``GetBindVolumeToClaim``)."""
    by_controller = not is_bound_to(volume, claim)
    reference, metadata = volume.spec.claimRef, claim.metadata
    refers = (
        volume.spec.HasField("claimRef")
        and (reference.name, reference.namespace, reference.uid) == (metadata.name, metadata.namespace, metadata.uid)
    )  # fmt: skip
    if refers and (not by_controller or BOUND_BY_CONTROLLER in volume.metadata.annotations):
        return None
    bound = meta.copied(volume)
    if not refers:
        bound.spec.claimRef.Clear()
        refer(bound.spec.claimRef, claim)
    if by_controller and BOUND_BY_CONTROLLER not in volume.metadata.annotations:
        bound.metadata.annotations[BOUND_BY_CONTROLLER] = "yes"
    return bound


def refer(reference: core_v1_pb2.ObjectReference, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
    """Fill in an ObjectReference to a claim (``reference.GetReference``)."""
    metadata = claim.metadata
    reference.kind, reference.apiVersion = "PersistentVolumeClaim", "v1"
    reference.namespace, reference.name, reference.uid = metadata.namespace, metadata.name, metadata.uid
    reference.resourceVersion = metadata.resourceVersion


def attachment_name(handle: str, driver: str, node: str) -> str:
    """Attachment name of the VolumeAttachment of a volume on a node, by which its kubelet finds it
    (``getAttachmentName``)."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"
