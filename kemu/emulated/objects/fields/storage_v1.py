"""The fields of volumes, claims and the kinds of storage.k8s.io."""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Reason, Sort, message

ACCEPTED: tuple[str, ...] = (
    "PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity",
    "VolumeAttachment", "VolumeAttributesClass",
)  # fmt: skip
"""Kinds that scenarios may hold."""

SORTS: dict[str, Sort] = {
    **message("PersistentVolume", parts="metadata spec status"),
    **message(
        "PersistentVolumeSpec",
        acts="capacity persistentVolumeSource accessModes claimRef persistentVolumeReclaimPolicy storageClassName "
        "volumeMode nodeAffinity volumeAttributesClassName",
        harmless={Reason.CONTAINERS: "mountOptions"},
    ),
    **message(
        "PersistentVolumeStatus",
        acts="phase",
        harmless={Reason.RECORDED: "message reason lastPhaseTransitionTime"},
    ),
    **message("PersistentVolumeClaim", parts="metadata spec status"),
    **message(
        "PersistentVolumeClaimSpec",
        acts="accessModes selector resources volumeName storageClassName volumeMode volumeAttributesClassName "
        "dataSource dataSourceRef",
    ),
    **message(
        "PersistentVolumeClaimStatus",
        acts="phase accessModes capacity currentVolumeAttributesClassName modifyVolumeStatus allocatedResources "
        "allocatedResourceStatuses",
        harmless={Reason.RECORDED: "conditions"},
    ),
    **message(
        "StorageClass",
        acts="provisioner reclaimPolicy volumeBindingMode allowedTopologies allowVolumeExpansion",
        parts="metadata",
        harmless={
            Reason.CONTENT: "parameters",
            Reason.CONTAINERS: "mountOptions",
        },
    ),
    **message("CSINode", parts="metadata spec"),
    **message("CSINodeSpec", parts="drivers"),
    **message(
        "CSINodeDriver",
        acts="name topologyKeys allocatable",
        harmless={Reason.RECORDED: "nodeID"},
    ),
    **message("CSIDriver", parts="metadata spec"),
    **message(
        "CSIDriverSpec",
        acts="attachRequired storageCapacity",
        harmless={
            Reason.CONTAINERS: "podInfoOnMount fsGroupPolicy tokenRequests requiresRepublish seLinuxMount "
            "serviceAccountTokenInSecrets",
            Reason.RECORDED: "volumeLifecycleModes nodeAllocatableUpdatePeriodSeconds",
            Reason.UNUSED: "preventPodSchedulingIfMissing",
        },
    ),
    **message(
        "CSIStorageCapacity",
        acts="nodeTopology storageClassName capacity maximumVolumeSize",
        parts="metadata",
    ),
    **message(
        "VolumeAttributesClass",
        acts="driverName",
        parts="metadata",
        harmless={Reason.CONTENT: "parameters"},
    ),
    **message("VolumeAttachment", acts="spec status", parts="metadata"),
}
