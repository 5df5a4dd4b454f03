"""The checks of volumes: claims, volumes, and the group storage.k8s.io (``pkg/apis/core/validation``,
``pkg/apis/storage/validation``)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.defaulting import data_sources
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.validation import checks, placement
from kemu.emulated.objects.validation.causes import (
    IMMUTABLE,
    INVALID,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kemu.emulated.objects.validation.metadata import check_label_key, check_label_selector, check_label_value
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

_RECLAIM_POLICY, _VOLUME_MODE = "core.v1.PersistentVolumeReclaimPolicy", "core.v1.PersistentVolumeMode"
_ACCESS_MODE = "core.v1.PersistentVolumeAccessMode"
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
    checks.name(spec.storageClassName, f"{path}.storageClassName", names.dns_subdomain, found)
    checks.supported(spec.volumeMode, f"{path}.volumeMode", _VOLUME_MODE, found)
    _check_sources(spec, path, found)
    checks.name(spec.volumeAttributesClassName, f"{path}.{_ATTRIBUTES}", names.dns_subdomain, found)


def _check_sources(spec: core_v1_pb2.PersistentVolumeClaimSpec, path: str, found: list[Cause]) -> None:
    """``validateDataSource``, ``validateDataSourceRef``."""
    source, reference = spec.dataSource, spec.dataSourceRef
    has_both = spec.HasField("dataSource") and spec.HasField("dataSourceRef")
    for name in ("dataSource", "dataSourceRef"):
        if spec.HasField(name):
            one, here = getattr(spec, name), f"{path}.{name}"
            found.extend(required(f"{here}.{part}") for part in ("name", "kind") if not getattr(one, part))
            if not one.apiGroup and one.kind != data_sources.CLAIM:
                text = f"must be '{data_sources.CLAIM}' when referencing the default apiGroup"
                found.append(invalid(here, one.kind, text))
            checks.name(one.apiGroup, f"{here}.apiGroup", names.dns_subdomain, found)
    if reference.namespace:
        checks.name(reference.namespace, f"{path}.dataSourceRef.namespace", names.dns_label, found)
    if not has_both:
        return
    if reference.namespace:
        found.append(invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif (source.apiGroup, source.kind, source.name) != (reference.apiGroup, reference.kind, reference.name):
        found.append(invalid(path, {}, "must match dataSourceRef"))


_ATTRIBUTES = "volumeAttributesClassName"
_FIXED_MODE = checks.fixed("volumeMode")


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
    if new.status.phase == "Bound":
        for spec in (after, before):
            spec.ClearField(_ATTRIBUTES)
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
    _FIXED_MODE(new.spec, old.spec, found)
    _check_attributes_update(new, old, found)


def _check_attributes_update(
    new: core_v1_pb2.PersistentVolumeClaim, old: core_v1_pb2.PersistentVolumeClaim, found: list[Cause]
) -> None:
    """A class that a volume has got is not given up."""
    if not old.status.HasField("currentVolumeAttributesClassName") or new.spec.volumeAttributesClassName:
        return
    has = new.spec.HasField(_ATTRIBUTES)
    if has != old.spec.HasField(_ATTRIBUTES) or old.spec.volumeAttributesClassName:
        what = "empty string" if has else "nil"
        text = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        found.append(forbidden(f"spec.{_ATTRIBUTES}", text))


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
    policy = spec.persistentVolumeReclaimPolicy
    checks.supported(policy, "spec.persistentVolumeReclaimPolicy", _RECLAIM_POLICY, found)
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
    checks.name(spec.storageClassName, "spec.storageClassName", names.dns_subdomain, found)
    checks.supported(spec.volumeMode, "spec.volumeMode", _VOLUME_MODE, found)
    if spec.HasField(_ATTRIBUTES):
        path = f"spec.{_ATTRIBUTES}"
        if spec.volumeAttributesClassName:
            checks.name(spec.volumeAttributesClassName, path, names.dns_subdomain, found)
        else:
            found.append(required(path, "an empty string is disallowed"))
        if not source.HasField("csi"):
            found.append(required("spec.csi", f"has to be specified when using {_ATTRIBUTES}"))


def _check_volume_update(
    new: core_v1_pb2.PersistentVolume, old: core_v1_pb2.PersistentVolume, found: list[Cause]
) -> None:
    _check_volume(new, found)
    if new.spec.persistentVolumeSource != old.spec.persistentVolumeSource:
        found.append(
            forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
        )
    _FIXED_MODE(new.spec, old.spec, found)
    if old.spec.HasField("nodeAffinity") and new.spec.nodeAffinity != old.spec.nodeAffinity:
        text = "field is immutable, except for updating from beta label to GA"
        found.append(invalid("nodeAffinity", new.spec.nodeAffinity, text))
    if old.spec.HasField(_ATTRIBUTES) and not new.spec.HasField(_ATTRIBUTES):
        found.append(forbidden(f"spec.{_ATTRIBUTES}", "update from non-nil value to nil is forbidden"))


# The group storage.k8s.io -------------------------------------------------------------------------------------------


def _check_class(storage_class: storage_v1_pb2.StorageClass, found: list[Cause]) -> None:
    checks.needed_name(storage_class.provisioner.lower(), "provisioner", names.label_key, found)
    checks.supported(storage_class.reclaimPolicy, "reclaimPolicy", _RECLAIM_POLICY, found)
    checks.choice(storage_class.volumeBindingMode, "volumeBindingMode", "storage.v1.VolumeBindingMode", found)
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


_FIXED_CLASS = checks.fixed("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def _check_class_update(new: storage_v1_pb2.StorageClass, old: storage_v1_pb2.StorageClass, found: list[Cause]) -> None:
    _FIXED_CLASS(new, old, found)
    _check_topologies(new.allowedTopologies, found)


def _check_csi_node(csi_node: storage_v1_pb2.CSINode, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, driver in enumerate(csi_node.spec.drivers):
        here = f"spec.drivers[{index}]"
        _check_driver_name(driver.name, f"{here}.name", found)
        if not driver.nodeID:
            found.append(required(f"{here}.nodeID"))
        checks.not_negative(driver.allocatable.count, f"{here}.allocatable.count", found)
        checks.unique(driver.name, seen, f"{here}.name", driver.name, found)


def _check_csi_node_update(new: storage_v1_pb2.CSINode, old: storage_v1_pb2.CSINode, found: list[Cause]) -> None:
    """``ValidateCSINodeUpdate``: of a driver that stays, only how many volumes the node takes may change."""
    _check_csi_node(new, found)
    for before in old.spec.drivers:
        for after in new.spec.drivers:
            if before.name == after.name:
                one, other = _fixed(after), _fixed(before)
                if one != other:
                    found.append(Cause("spec.drivers", INVALID, f"Invalid value: {one}: {IMMUTABLE}"))


def _fixed(driver: storage_v1_pb2.CSINodeDriver) -> str:
    """What does not change, as Kubernetes' own type writes it."""
    known = {"Name": driver.name, "NodeID": driver.nodeID, "TopologyKeys": [*driver.topologyKeys], "Allocatable": None}
    return json.dumps(known, separators=(",", ":"), ensure_ascii=False)


def _check_attributes(attributes: storage_v1_pb2.VolumeAttributesClass, found: list[Cause]) -> None:
    """``ValidateVolumeAttributesClass``."""
    checks.needed_name(attributes.driverName.lower(), "driverName", names.label_key, found)
    parameters = attributes.parameters
    if len(parameters) > _MOST_PARAMETERS:
        found.append(_too_long("parameters", _MOST_PARAMETERS))
        return
    found.extend(invalid("parameters", key, "field can not be empty.") for key in parameters if not key)
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _LARGEST_PARAMETERS:
        found.append(_too_long("parameters", _LARGEST_PARAMETERS))
    if not parameters:
        found.append(required("parameters", "must contain at least one key/value pair"))


_MOST_PARAMETERS, _LARGEST_PARAMETERS = 512, 256 * 1024


def _too_long(path: str, most: int) -> Cause:
    return Cause(path, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")


def _check_attributes_class_update(
    new: storage_v1_pb2.VolumeAttributesClass, old: storage_v1_pb2.VolumeAttributesClass, found: list[Cause]
) -> None:
    if new.driverName != old.driverName:
        found.append(forbidden("driverName", "updates to driverName are forbidden."))
    if dict(new.parameters) != dict(old.parameters):
        found.append(forbidden("parameters", "updates to parameters are forbidden."))
    _check_attributes(new, found)


def _check_csi_driver(csi_driver: storage_v1_pb2.CSIDriver, found: list[Cause]) -> None:
    period = csi_driver.spec.nodeAllocatableUpdatePeriodSeconds
    if csi_driver.spec.HasField("nodeAllocatableUpdatePeriodSeconds") and period < _SHORTEST_PERIOD_S:
        text = f"must be greater than or equal to {_SHORTEST_PERIOD_S} seconds"
        found.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))


_SHORTEST_PERIOD_S = 10


def _check_csi_driver_update(new: storage_v1_pb2.CSIDriver, old: storage_v1_pb2.CSIDriver, found: list[Cause]) -> None:
    _check_csi_driver(new, found)
    if new.spec.attachRequired != old.spec.attachRequired:
        found.append(invalid("spec.attachedRequired", new.spec.attachRequired, IMMUTABLE))
    if list(new.spec.volumeLifecycleModes) != list(old.spec.volumeLifecycleModes):
        found.append(invalid("spec.volumeLifecycleModes", list(new.spec.volumeLifecycleModes), IMMUTABLE))


def _check_capacity(capacity: storage_v1_pb2.CSIStorageCapacity, found: list[Cause]) -> None:
    if capacity.HasField("nodeTopology"):
        check_label_selector(capacity.nodeTopology, "nodeTopology", found)
    if not capacity.storageClassName:
        found.extend(invalid("storageClassName", "", one) for one in names.dns_subdomain(""))
    checks.name(capacity.storageClassName, "storageClassName", names.dns_subdomain, found)
    if capacity.HasField("capacity"):
        text = capacity.capacity.string
        if not quantities_are_right(text):
            found.append(invalid("capacity", text, _NO_QUANTITY))
        elif quantities.parse(text) < quantities.ZERO:
            found.append(invalid("capacity", text, checks.NOT_NEGATIVE))


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
    checks.fixed("spec")(new, old, found)


# Parts --------------------------------------------------------------------------------------------------------------

_NO_QUANTITY = "must be a quantity"


def _check_access_modes(modes: Sequence[str], path: str, found: list[Cause]) -> None:
    supported = go_types.values(_ACCESS_MODE)
    found.extend(not_supported(path, mode, supported) for mode in modes if mode not in supported)
    others = [mode for mode in modes if mode in supported and mode != "ReadWriteOncePod"]
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
        found.append(invalid(path, text, checks.POSITIVE))


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
    storage_v1_pb2.CSINode: Rules(_check_csi_node, _check_csi_node_update),
    storage_v1_pb2.CSIDriver: Rules(_check_csi_driver, _check_csi_driver_update),
    storage_v1_pb2.CSIStorageCapacity: Rules(_check_capacity, checks.fixed("nodeTopology", "storageClassName")),
    storage_v1_pb2.VolumeAttachment: Rules(_check_attachment, _check_attachment_update),
    storage_v1_pb2.VolumeAttributesClass: Rules(_check_attributes, _check_attributes_class_update),
}
