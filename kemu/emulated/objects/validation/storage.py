"""The checks of volumes: claims, volumes, and the group storage.k8s.io (``pkg/apis/core/validation``,
``pkg/apis/storage/validation``)."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.validation import placement
from kemu.emulated.objects.validation.causes import IMMUTABLE, duplicate, forbidden, invalid, not_supported, required
from kemu.emulated.objects.validation.metadata import check_label_key, check_label_selector, check_label_value
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_VOLUME_MODES = ("Block", "Filesystem")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_LONGEST_DRIVER_NAME = 63

# Claims -------------------------------------------------------------------------------------------------------------


def check_claim_spec(spec: core_v1_pb2.PersistentVolumeClaimSpec, path: str, found: list[Cause]) -> None:
    """``ValidatePersistentVolumeClaimSpec``, also of templates."""
    if not spec.accessModes:
        found.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    if spec.HasField("selector"):
        check_label_selector(spec.selector, f"{path}.selector", found)
    _check_access_modes(spec.accessModes, f"{path}.accessModes", found)
    size = f"{path}.resources[storage]"
    if "storage" not in spec.resources.requests:
        found.append(required(size))
    else:
        _check_positive(spec.resources.requests["storage"].string, size, found)
    _check_class_name(spec.storageClassName, f"{path}.storageClassName", found)
    if spec.volumeMode and spec.volumeMode not in _VOLUME_MODES:
        found.append(not_supported(f"{path}.volumeMode", spec.volumeMode, _VOLUME_MODES))


def _check_claim(claim: core_v1_pb2.PersistentVolumeClaim, found: list[Cause]) -> None:
    check_claim_spec(claim.spec, "spec", found)


def _check_claim_update(
    new: core_v1_pb2.PersistentVolumeClaim, old: core_v1_pb2.PersistentVolumeClaim, found: list[Cause]
) -> None:
    """The volume may be named once, the class given once; of a bound claim the size may grow."""
    _check_claim(new, found)
    after, before = type(new.spec)(), type(old.spec)()
    after.CopyFrom(new.spec)
    before.CopyFrom(old.spec)
    if not before.volumeName and after.volumeName:
        before.volumeName = after.volumeName
    if not before.HasField("storageClassName") and after.HasField("storageClassName"):
        before.storageClassName = after.storageClassName
    if new.status.phase == "Bound" and "storage" in after.resources.requests:
        after.resources.requests["storage"].string = before.resources.requests["storage"].string
    if after != before:
        text = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        found.append(forbidden("spec", text))
    sizes = [one.spec.resources.requests["storage"].string or "0" for one in (new, old)]
    if all(quantities_are_right(text) for text in sizes):
        wanted, stated = (quantities.parse(text) for text in sizes)
        has = (
            quantities.parse(old.status.capacity["storage"].string)
            if "storage" in old.status.capacity
            else quantities.ZERO
        )
        if wanted < stated and not has < wanted:
            text = "field can not be less than status.capacity"
            found.append(forbidden("spec.resources.requests.storage", text))
    if new.spec.volumeMode != old.spec.volumeMode:
        found.append(invalid("volumeMode", new.spec.volumeMode, IMMUTABLE))


# Volumes ------------------------------------------------------------------------------------------------------------


def _check_volume(volume: core_v1_pb2.PersistentVolume, found: list[Cause]) -> None:
    """``ValidatePersistentVolumeSpec``."""
    spec = volume.spec
    if not spec.accessModes:
        found.append(required("spec.accessModes"))
    _check_access_modes(spec.accessModes, "spec.accessModes", found)
    if not spec.capacity:
        found.append(required("spec.capacity"))
    if list(spec.capacity) != ["storage"]:
        amounts = {name: spec.capacity[name].string for name in sorted(spec.capacity)}
        found.append(not_supported("spec.capacity", amounts, ("storage",)))
    for name in sorted(spec.capacity):
        _check_positive(spec.capacity[name].string, f"spec.capacity[{name}]", found)
    if spec.persistentVolumeReclaimPolicy not in ("", *_RECLAIM_POLICIES):
        policy = spec.persistentVolumeReclaimPolicy
        found.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES))
    has_affinity = spec.HasField("nodeAffinity")
    if has_affinity:
        if spec.nodeAffinity.HasField("required"):
            placement.check_node_selector(spec.nodeAffinity.required, "spec.nodeAffinity.required", found)
        else:
            found.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
    sources = [field.name for field, _ in spec.persistentVolumeSource.ListFields()]
    if not sources:
        found.append(required("spec", "must specify a volume type"))
    found.extend(forbidden(f"spec.{name}", "may not specify more than 1 volume type") for name in sources[1:])
    source = spec.persistentVolumeSource
    if source.HasField("hostPath") and not source.hostPath.path:
        found.append(required("spec.hostPath.path"))
    if source.HasField("local"):
        if not source.local.path:
            found.append(required("spec.local.path"))
        if not has_affinity:
            found.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    if source.HasField("csi"):
        _check_driver_name(source.csi.driver, "spec.csi.driver", found)
        if not source.csi.volumeHandle:
            found.append(required("spec.csi.volumeHandle"))
    _check_class_name(spec.storageClassName, "spec.storageClassName", found)
    if spec.volumeMode and spec.volumeMode not in _VOLUME_MODES:
        found.append(not_supported("spec.volumeMode", spec.volumeMode, _VOLUME_MODES))


def _check_volume_update(
    new: core_v1_pb2.PersistentVolume, old: core_v1_pb2.PersistentVolume, found: list[Cause]
) -> None:
    _check_volume(new, found)
    if new.spec.persistentVolumeSource != old.spec.persistentVolumeSource:
        found.append(
            forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
        )
    if new.spec.volumeMode != old.spec.volumeMode:
        found.append(invalid("volumeMode", new.spec.volumeMode, IMMUTABLE))
    if old.spec.HasField("nodeAffinity") and new.spec.nodeAffinity != old.spec.nodeAffinity:
        text = "field is immutable, except for updating from beta label to GA"
        found.append(invalid("nodeAffinity", new.spec.nodeAffinity, text))


# The group storage.k8s.io -------------------------------------------------------------------------------------------


def _check_class(storage_class: storage_v1_pb2.StorageClass, found: list[Cause]) -> None:
    provisioner = storage_class.provisioner
    if not provisioner:
        found.append(required("provisioner"))
    else:
        check_label_key(provisioner.lower(), "provisioner", found)
    if storage_class.reclaimPolicy not in ("", *_RECLAIM_POLICIES):
        found.append(not_supported("reclaimPolicy", storage_class.reclaimPolicy, _RECLAIM_POLICIES))
    if not storage_class.volumeBindingMode:
        found.append(required("volumeBindingMode"))
    elif storage_class.volumeBindingMode not in _BINDING_MODES:
        found.append(not_supported("volumeBindingMode", storage_class.volumeBindingMode, _BINDING_MODES))
    _check_topologies(storage_class.allowedTopologies, found)


def _check_topologies(terms: Sequence[core_v1_pb2.TopologySelectorTerm], found: list[Cause]) -> None:
    """``validateAllowedTopologies``."""
    seen: list[dict[str, list[str]]] = []
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}]"
        keys: dict[str, list[str]] = {}
        for place, one in enumerate(term.matchLabelExpressions):
            here = f"{path}.matchLabelExpressions[{place}]"
            if not one.values:
                found.append(required(f"{here}.values"))
            for number, value in enumerate(one.values):
                check_label_value(value, f"{here}.values[{number}]", found)
            found.extend(
                duplicate(f"{here}.values[{number}]", value)
                for number, value in enumerate(one.values)
                if value in one.values[:number]
            )
            check_label_key(one.key, f"{here}.key", found)
            if one.key in keys:
                found.append(duplicate(f"{here}.key", one.key))
            keys[one.key] = sorted(one.values)
        if keys in seen:
            found.append(duplicate(f"{path}.matchLabelExpressions", ""))
        seen.append(keys)


def _check_class_update(new: storage_v1_pb2.StorageClass, old: storage_v1_pb2.StorageClass, found: list[Cause]) -> None:
    if dict(new.parameters) != dict(old.parameters):
        found.append(invalid("parameters", dict(new.parameters), IMMUTABLE))
    fixed = ("provisioner", "reclaimPolicy", "volumeBindingMode")
    changed = [field for field in fixed if getattr(new, field) != getattr(old, field)]
    found.extend(invalid(field, getattr(new, field), IMMUTABLE) for field in changed)
    _check_topologies(new.allowedTopologies, found)


def _check_csi_node(csi_node: storage_v1_pb2.CSINode, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, driver in enumerate(csi_node.spec.drivers):
        here = f"spec.drivers[{index}]"
        _check_driver_name(driver.name, f"{here}.name", found)
        if not driver.nodeID:
            found.append(required(f"{here}.nodeID"))
        if driver.allocatable.count < 0:
            found.append(invalid(f"{here}.allocatable.count", driver.allocatable.count, _NOT_NEGATIVE))
        if driver.name in seen:
            found.append(duplicate(f"{here}.name", driver.name))
        seen[driver.name] = None


def _check_csi_driver_update(new: storage_v1_pb2.CSIDriver, old: storage_v1_pb2.CSIDriver, found: list[Cause]) -> None:
    if new.spec.attachRequired != old.spec.attachRequired:
        found.append(invalid("spec.attachedRequired", new.spec.attachRequired, IMMUTABLE))
    if list(new.spec.volumeLifecycleModes) != list(old.spec.volumeLifecycleModes):
        found.append(invalid("spec.volumeLifecycleModes", list(new.spec.volumeLifecycleModes), IMMUTABLE))


def _check_capacity(capacity: storage_v1_pb2.CSIStorageCapacity, found: list[Cause]) -> None:
    if capacity.HasField("nodeTopology"):
        check_label_selector(capacity.nodeTopology, "nodeTopology", found)
    if not capacity.storageClassName:
        found.extend(invalid("storageClassName", "", one) for one in names.dns_subdomain(""))
    _check_class_name(capacity.storageClassName, "storageClassName", found)
    if capacity.HasField("capacity"):
        text = capacity.capacity.string
        if not quantities_are_right(text):
            found.append(invalid("capacity", text, _NO_QUANTITY))
        elif quantities.parse(text) < quantities.ZERO:
            found.append(invalid("capacity", text, _NOT_NEGATIVE))


def _check_capacity_update(
    new: storage_v1_pb2.CSIStorageCapacity, old: storage_v1_pb2.CSIStorageCapacity, found: list[Cause]
) -> None:
    if new.nodeTopology != old.nodeTopology:
        found.append(invalid("nodeTopology", new.nodeTopology, IMMUTABLE))
    if new.storageClassName != old.storageClassName:
        found.append(invalid("storageClassName", new.storageClassName, IMMUTABLE))


def _check_attachment(attachment: storage_v1_pb2.VolumeAttachment, found: list[Cause]) -> None:
    spec = attachment.spec
    _check_driver_name(spec.attacher, "spec.attacher", found)
    if not spec.source.HasField("persistentVolumeName") and not spec.source.HasField("inlineVolumeSpec"):
        text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        found.append(required("spec.source", text))
    if not spec.nodeName:
        found.append(required("spec.nodeName"))


def _check_attachment_update(
    new: storage_v1_pb2.VolumeAttachment, old: storage_v1_pb2.VolumeAttachment, found: list[Cause]
) -> None:
    _check_attachment(new, found)
    if new.spec != old.spec:
        found.append(invalid("spec", new.spec, IMMUTABLE))


# Parts --------------------------------------------------------------------------------------------------------------

_NOT_NEGATIVE = "must be greater than or equal to 0"
_NO_QUANTITY = "must be a quantity"


def _check_access_modes(modes: Sequence[str], path: str, found: list[Cause]) -> None:
    found.extend(not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES)
    others = [mode for mode in modes if mode in _ACCESS_MODES and mode != "ReadWriteOncePod"]
    if others and "ReadWriteOncePod" in modes:
        found.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))


def quantities_are_right(text: str) -> bool:
    """Whether a text is a quantity."""
    try:
        quantities.parse(text)
    except ValueError:
        return False
    return True


def _check_positive(text: str, path: str, found: list[Cause]) -> None:
    if not quantities_are_right(text):
        found.append(invalid(path, text, _NO_QUANTITY))
    elif not quantities.parse(text) > quantities.ZERO:
        found.append(invalid(path, text, "must be greater than zero"))


def _check_class_name(name: str, path: str, found: list[Cause]) -> None:
    if name:
        found.extend(invalid(path, name, one) for one in names.dns_subdomain(name))


def _check_driver_name(name: str, path: str, found: list[Cause]) -> None:
    """``ValidateCSIDriverName``."""
    if not name:
        found.append(required(path))
        return
    if len(name) > _LONGEST_DRIVER_NAME:
        found.append(Cause(path, "FieldValueTooLong", f"Too long: may not be more than {_LONGEST_DRIVER_NAME} bytes"))
    found.extend(invalid(path, name, one) for one in names.dns_subdomain(name.lower()))


RULES = {
    core_v1_pb2.PersistentVolume: Rules(_check_volume, _check_volume_update),
    core_v1_pb2.PersistentVolumeClaim: Rules(_check_claim, _check_claim_update),
    storage_v1_pb2.StorageClass: Rules(_check_class, _check_class_update),
    storage_v1_pb2.CSINode: Rules(_check_csi_node),
    storage_v1_pb2.CSIDriver: Rules(update=_check_csi_driver_update),
    storage_v1_pb2.CSIStorageCapacity: Rules(_check_capacity, _check_capacity_update),
    storage_v1_pb2.VolumeAttachment: Rules(_check_attachment, _check_attachment_update),
    storage_v1_pb2.VolumeAttributesClass: Rules(),
}
