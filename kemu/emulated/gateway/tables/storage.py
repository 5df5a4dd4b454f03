"""The group storage.k8s.io."""

from __future__ import annotations

from kemu.emulated.gateway.tables import texts
from kemu.emulated.gateway.tables.printers import AGE, NAME, Cell, Column, Printer
from kemu.messages.k8s import storage_v1_pb2

_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _storage_class(storage_class: storage_v1_pb2.StorageClass, now_ns: int) -> list[Cell]:
    metadata = storage_class.metadata
    is_default = any(metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        f"{metadata.name} (default)" if is_default else metadata.name,
        storage_class.provisioner,
        texts.optional(storage_class, "reclaimPolicy", "Delete"),
        texts.optional(storage_class, "volumeBindingMode", "Immediate"),
        storage_class.allowVolumeExpansion,
        texts.age(storage_class, now_ns),
    ]


def _csi_node(csi_node: storage_v1_pb2.CSINode, now_ns: int) -> list[Cell]:
    return [csi_node.metadata.name, len(csi_node.spec.drivers), texts.age(csi_node, now_ns)]


def _csi_driver(driver: storage_v1_pb2.CSIDriver, now_ns: int) -> list[Cell]:
    spec = driver.spec
    return [
        driver.metadata.name,
        spec.attachRequired if spec.HasField("attachRequired") else True,
        spec.podInfoOnMount,
        spec.storageCapacity,
        ",".join(one.audience for one in spec.tokenRequests) if spec.tokenRequests else texts.UNSET,
        spec.requiresRepublish,
        ",".join(spec.volumeLifecycleModes) or texts.NONE,
        texts.age(driver, now_ns),
    ]


def _capacity(capacity: storage_v1_pb2.CSIStorageCapacity, now_ns: int) -> list[Cell]:
    size = texts.quantity(capacity.capacity.string) if capacity.HasField("capacity") else texts.UNSET
    return [capacity.metadata.name, capacity.storageClassName, size]


def _attachment(attachment: storage_v1_pb2.VolumeAttachment, now_ns: int) -> list[Cell]:
    spec = attachment.spec
    return [
        attachment.metadata.name,
        spec.attacher,
        spec.source.persistentVolumeName,
        spec.nodeName,
        attachment.status.attached,
        texts.age(attachment, now_ns),
    ]


def _attributes_class(attributes_class: storage_v1_pb2.VolumeAttributesClass, now_ns: int) -> list[Cell]:
    return [attributes_class.metadata.name, attributes_class.driverName, texts.age(attributes_class, now_ns)]


PRINTERS = {
    storage_v1_pb2.StorageClass: Printer(
        (
            NAME,
            Column("Provisioner", "Driver that provides the volumes."),
            Column("ReclaimPolicy", "What becomes of a volume when its claim is deleted."),
            Column("VolumeBindingMode", "When claims are bound."),
            Column("AllowVolumeExpansion", "Whether volumes may grow."),
            AGE,
        ),
        _storage_class,
    ),
    storage_v1_pb2.CSINode: Printer(
        (NAME, Column("Drivers", "Number of drivers on the node.", "integer"), AGE), _csi_node
    ),
    storage_v1_pb2.CSIDriver: Printer(
        (
            NAME,
            Column("AttachRequired", "Whether volumes are attached to nodes.", "boolean"),
            Column("PodInfoOnMount", "Whether the driver is told about the pod.", "boolean"),
            Column("StorageCapacity", "Whether the driver says how much room there is.", "boolean"),
            Column("TokenRequests", "Audiences of the tokens that the driver gets."),
            Column("RequiresRepublish", "Whether volumes are published again and again.", "boolean"),
            Column("Modes", "Lifecycles of the volumes."),
            AGE,
        ),
        _csi_driver,
    ),
    storage_v1_pb2.CSIStorageCapacity: Printer(
        (NAME, Column("StorageClassName", "Storage class of the volumes."), Column("Capacity", "Room that there is.")),
        _capacity,
    ),
    storage_v1_pb2.VolumeAttachment: Printer(
        (
            NAME,
            Column("Attacher", "Driver that attaches the volume.", format="name"),
            Column("PV", "The volume."),
            Column("Node", "Node to which it is attached."),
            Column("Attached", "Whether it is attached.", "boolean"),
            AGE,
        ),
        _attachment,
    ),
    storage_v1_pb2.VolumeAttributesClass: Printer(
        (NAME, Column("DriverName", "Driver of the volumes."), AGE), _attributes_class
    ),
}
