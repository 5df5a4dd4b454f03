"""The checks of volumes: claims, volumes, and the group storage.k8s.io (``pkg/apis/core/validation``,
``pkg/apis/storage/validation``)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.objects.conversion import go_structs
from kemu.emulated.objects.defaulting import data_sources
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.validation import checks, placement, volume_sources
from kemu.emulated.objects.validation.causes import (
    IMMUTABLE,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from kemu.emulated.objects.validation.metadata import check_label_key, check_label_selector
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

_RECLAIM_POLICY, _VOLUME_MODE = "core.v1.PersistentVolumeReclaimPolicy", "core.v1.PersistentVolumeMode"
_ACCESS_MODE = "core.v1.PersistentVolumeAccessMode"
_FILESYSTEM = "Filesystem"

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
    if spec.HasField("volumeMode"):
        checks.listed(spec.volumeMode, f"{path}.volumeMode", _VOLUME_MODE, found)
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
    if _has_found_its_class(new, old):
        after.ClearField("storageClassName")
    _check_class_annotation(new, old, found)
    if new.status.phase == "Bound":
        if after.resources.requests:
            after.resources.requests["storage"].string = before.resources.requests["storage"].string
        after.ClearField(_ATTRIBUTES)
        if before.HasField(_ATTRIBUTES):
            after.volumeAttributesClassName = before.volumeAttributesClassName
    if after != before and go_structs.value(after) != go_structs.value(before):
        text = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        found.append(forbidden("spec", f"{text}\n{go_structs.diff(before, after, ('spec',))}"))
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


def _check_claim_status(
    new: core_v1_pb2.PersistentVolumeClaim, old: core_v1_pb2.PersistentVolumeClaim, found: list[Cause]
) -> None:
    status = new.status
    for name in sorted(status.capacity):
        _check_amount(status.capacity[name].string, f"status.capacity[{name}]", found)
    path = "status.allocatedResourceStatuses"
    for name in sorted(status.allocatedResourceStatuses):
        _check_resized(name, path, found)
        if status.allocatedResourceStatuses[name] not in _RESIZES:
            found.append(not_supported(path, name, _RESIZES))
    path = "status.allocatedResources"
    for name in sorted(status.allocatedResources):
        if _check_resized(name, path, found):
            _check_amount(status.allocatedResources[name].string, f"{path}[{name}]", found)


def _check_resized(name: str, path: str, found: list[Cause]) -> bool:
    """``validatePersistentVolumeClaimResourceKey``"""
    problems = names.label_key(name)
    found.extend(invalid(path, name, problem) for problem in problems)
    if problems:
        return False
    if requests.is_native(name) and name != "storage":
        found.append(not_supported(path, name, ("storage",)))
        return False
    return True


def _check_amount(text: str, path: str, found: list[Cause]) -> None:
    """``validateBasicResource``"""
    if text and quantities.value(text) < 0:
        found.append(invalid(path, quantities.value(text), "must be a valid resource quantity"))


_RESIZES = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip


def _check_class_annotation(
    new: core_v1_pb2.PersistentVolumeClaim, old: core_v1_pb2.PersistentVolumeClaim, found: list[Cause]
) -> None:
    """It stays, unless the field takes its place (``validateStorageClassUpgradeFromAnnotation``)."""
    was, stated = (one.metadata.annotations.get(_OLD_CLASS, "") for one in (old, new))
    moves = not old.spec.HasField("storageClassName") and new.spec.storageClassName == was
    if was != stated and not (moves and _OLD_CLASS not in new.metadata.annotations):
        found.append(invalid(f"metadata.annotations.{_OLD_CLASS}", stated, IMMUTABLE))


def _has_found_its_class(new: core_v1_pb2.PersistentVolumeClaim, old: core_v1_pb2.PersistentVolumeClaim) -> bool:
    """A claim without a class may get one (``validateStorageClassUpgradeFromNil``)."""
    name = new.spec.storageClassName
    return (
        new.spec.HasField("storageClassName")
        and not old.spec.HasField("storageClassName")
        and old.metadata.annotations.get(_OLD_CLASS, name) == name
    )


_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


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


def _check_new_volume(volume: core_v1_pb2.PersistentVolume, found: list[Cause]) -> None:
    _check_volume(volume, found)
    stated = {field.name for field, _ in volume.spec.persistentVolumeSource.ListFields()}
    if _MOUNT_OPTIONS in volume.metadata.annotations and not stated & _WITH_MOUNT_OPTIONS:
        text = "may not specify mount options for this volume type"
        found.append(forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", text))


_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_WITH_MOUNT_OPTIONS = frozenset(
    (
        *(
            "gcePersistentDisk",
            "awsElasticBlockStore",
            "glusterfs",
            "nfs",
            "rbd",
            "quobyte",
            "iscsi",
            "cinder",
            "cephfs",
        ),
        *("azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk"),
    )
)
"""Sources that may be mounted with the options of that annotation (``pkg/volume/validation``)."""


def _check_volume(volume: core_v1_pb2.PersistentVolume, found: list[Cause]) -> None:
    _check_volume_spec(volume.spec, "spec", volume.metadata.name, False, found)


def _check_volume_spec(
    spec: core_v1_pb2.PersistentVolumeSpec, path: str, name: str, is_inline: bool, found: list[Cause]
) -> None:
    """``ValidatePersistentVolumeSpec``. ``is_inline``: of the volume of a pod, in a VolumeAttachment."""
    has_affinity = spec.HasField("nodeAffinity")
    if is_inline:
        _check_inline(spec, ("claimRef", "capacity"), path, found)
        if not spec.persistentVolumeSource.HasField("csi"):
            found.append(required(f"{path}.csi", f"has to be specified {_INLINE}"))
    if not spec.accessModes:
        found.append(required(f"{path}.accessModes"))
    _check_access_modes(spec.accessModes, f"{path}.accessModes", found)
    policy, place = spec.persistentVolumeReclaimPolicy, f"{path}.persistentVolumeReclaimPolicy"
    if is_inline:
        if policy not in ("", "Retain"):
            found.append(forbidden(place, f"may only be Retain {_INLINE}"))
        _check_inline(spec, ("nodeAffinity",), path, found)
    else:
        _check_volume_capacity(spec, f"{path}.capacity", found)
        checks.supported(policy, place, _RECLAIM_POLICY, found)
        if has_affinity and spec.nodeAffinity.HasField("required"):
            placement.check_node_selector(spec.nodeAffinity.required, f"{path}.nodeAffinity.required", found)
        elif has_affinity:
            found.append(required(f"{path}.nodeAffinity.required", "must specify required node constraints"))
    source = spec.persistentVolumeSource
    volume_sources.check_persistent(source, path, name, has_affinity and not is_inline, found)
    if source.hostPath.path and posixpath.normpath(source.hostPath.path) in ("/", "//") and policy == "Recycle":
        found.append(forbidden(place, "may not be 'recycle' for a hostPath mount of '/'"))
    if is_inline:
        _check_inline(spec, ("storageClassName",), path, found)
        if spec.HasField("volumeMode") and spec.volumeMode != _FILESYSTEM:
            text = f"may not specify volumeMode other than {_FILESYSTEM} {_INLINE}"
            found.append(forbidden(f"{path}.volumeMode", text))
        return  # Kubernetes does not look at its class of attributes (``PersistentVolumeSpecValidationOptions``).
    checks.name(spec.storageClassName, f"{path}.storageClassName", names.dns_subdomain, found)
    if spec.HasField("volumeMode"):
        checks.listed(spec.volumeMode, f"{path}.volumeMode", _VOLUME_MODE, found)
    if spec.HasField(_ATTRIBUTES):
        place = f"{path}.{_ATTRIBUTES}"
        if spec.volumeAttributesClassName:
            checks.name(spec.volumeAttributesClassName, place, names.dns_subdomain, found)
        else:
            found.append(required(place, "an empty string is disallowed"))
        if not source.HasField("csi"):
            found.append(required(f"{path}.csi", f"has to be specified when using {_ATTRIBUTES}"))


_INLINE = "in the context of inline volumes"


def _check_inline(
    spec: core_v1_pb2.PersistentVolumeSpec, fields: tuple[str, ...], path: str, found: list[Cause]
) -> None:
    stated = [field.name for field, value in spec.ListFields() if value != ""]
    found.extend(forbidden(f"{path}.{field}", f"may not be specified {_INLINE}") for field in fields if field in stated)


def _check_volume_capacity(spec: core_v1_pb2.PersistentVolumeSpec, path: str, found: list[Cause]) -> None:
    if not spec.capacity:
        found.append(required(path))
    if list(spec.capacity) != ["storage"]:
        amounts = {name: str(quantities.parse(spec.capacity[name].string)) for name in sorted(spec.capacity)}
        found.append(not_supported(path, amounts or go_structs.nothing({}, ("spec", "capacity")), ("storage",)))
    for name in sorted(spec.capacity):
        here, text = f"{path}[{name}]", spec.capacity[name].string
        if quantities_are_right(text) and (whole := quantities.parse(text).value) < 0:
            found.append(invalid(here, whole, "must be a valid resource quantity"))
        _check_positive(text, here, found)


_EXPAND_SECRET = "controllerExpandSecretRef"
"""Of a source whose volume is made for CSI: it may come later."""


def _check_volume_update(
    new: core_v1_pb2.PersistentVolume, old: core_v1_pb2.PersistentVolume, found: list[Cause]
) -> None:
    _check_new_volume(new, found)
    _check_volume(new, found)  # Once more by ``ValidatePersistentVolumeUpdate``.
    after, before = new.spec.persistentVolumeSource, old.spec.persistentVolumeSource
    if before.HasField("csi") and after.HasField("csi") and not before.csi.HasField(_EXPAND_SECRET):
        one = type(after)()
        one.CopyFrom(after)
        one.csi.ClearField(_EXPAND_SECRET)
        after = one
    if after != before:
        path = "spec.persistentvolumesource"
        found.append(
            forbidden(path, f"{path} is immutable after creation\n{go_structs.diff(before, after, ('spec',))}")
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
    _check_parameters(storage_class.parameters, found)
    checks.supported(storage_class.reclaimPolicy, "reclaimPolicy", ("Delete", "Retain"), found)
    checks.listed(storage_class.volumeBindingMode, "volumeBindingMode", "storage.v1.VolumeBindingMode", found)
    _check_topologies(storage_class.allowedTopologies, found)


def _check_topologies(terms: Sequence[core_v1_pb2.TopologySelectorTerm], found: list[Cause]) -> None:
    """``validateAllowedTopologies``: it has an empty term seen for each one before it begins."""
    seen: list[dict[str, list[str]]] = [{} for _ in terms]
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}]"
        keys: dict[str, list[str]] = {}
        for place, one in enumerate(term.matchLabelExpressions):
            here = f"{path}.matchLabelExpressions[{place}]"
            if not one.values:
                found.append(required(f"{here}.values"))
            found.extend(
                duplicate(f"{here}.values[{number}]", value)
                for number, value in enumerate(one.values)
                if value in one.values[:number]
            )
            check_label_key(one.key, f"{here}.key", found)
            if one.key in keys:
                found.append(duplicate(f"{here}.key", one.key))
            keys[one.key] = sorted(dict.fromkeys(one.values))
        found.extend(duplicate(f"{path}.matchLabelExpressions", "") for other in seen if other == keys)
        seen.append(keys)


_FIXED_CLASS = checks.fixed("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def _check_class_update(new: storage_v1_pb2.StorageClass, old: storage_v1_pb2.StorageClass, found: list[Cause]) -> None:
    _check_class(new, found)
    _FIXED_CLASS(new, old, found)


def _check_csi_node(csi_node: storage_v1_pb2.CSINode, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, driver in enumerate(csi_node.spec.drivers):
        here = f"spec.drivers[{index}]"
        volume_sources.check_driver_name(driver.name, f"{here}.name", found)
        if not driver.nodeID:
            found.append(required(f"{here}.nodeID"))
        if len(driver.nodeID.encode()) > _LONGEST_NODE_ID:
            text = f"must be {_LONGEST_NODE_ID} characters or less"
            found.append(invalid(f"{here}.nodeID", driver.nodeID, text))
        checks.not_negative(driver.allocatable.count, f"{here}.allocatable.count", found)
        checks.unique(driver.name, seen, f"{here}.name", driver.name, found)
        keys: dict[str, None] = {}
        for key in driver.topologyKeys:
            if not key:
                found.append(required(here))
            checks.unique(key, keys, here, key, found)
            check_label_key(key, here, found)


_LONGEST_NODE_ID = 256


def _check_csi_node_update(new: storage_v1_pb2.CSINode, old: storage_v1_pb2.CSINode, found: list[Cause]) -> None:
    """``ValidateCSINodeUpdate``: of a driver that stays, only how many volumes the node takes may change."""
    _check_csi_node(new, found)
    for before in old.spec.drivers:
        for after in new.spec.drivers:
            if before.name == after.name:
                one, other = _fixed(after), _fixed(before)
                if one != other:
                    found.append(invalid("spec.drivers", one, IMMUTABLE))


def _fixed(driver: storage_v1_pb2.CSINodeDriver) -> storage_v1_pb2.CSINodeDriver:
    """What does not change."""
    found = type(driver)()
    found.CopyFrom(driver)
    found.ClearField("allocatable")
    return found


def _check_attributes(attributes: storage_v1_pb2.VolumeAttributesClass, found: list[Cause]) -> None:
    """``ValidateVolumeAttributesClass``."""
    checks.needed_name(attributes.driverName.lower(), "driverName", names.label_key, found)
    _check_parameters(attributes.parameters, found)
    if not attributes.parameters:
        found.append(required("parameters", "must contain at least one key/value pair"))


def _check_parameters(parameters: Mapping[str, str], found: list[Cause]) -> None:
    if len(parameters) > _MOST_PARAMETERS:
        found.append(too_long("parameters", _MOST_PARAMETERS))
        return
    found.extend(invalid("parameters", key, "field can not be empty.") for key in parameters if not key)
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _LARGEST_PARAMETERS:
        found.append(too_long("parameters", _LARGEST_PARAMETERS))


_MOST_PARAMETERS, _LARGEST_PARAMETERS = 512, 256 * 1024


def _check_attributes_class_update(
    new: storage_v1_pb2.VolumeAttributesClass, old: storage_v1_pb2.VolumeAttributesClass, found: list[Cause]
) -> None:
    if new.driverName != old.driverName:
        found.append(forbidden("driverName", "updates to driverName are forbidden."))
    if dict(new.parameters) != dict(old.parameters):
        found.append(forbidden("parameters", "updates to parameters are forbidden."))
    _check_attributes(new, found)


def _check_csi_driver(csi_driver: storage_v1_pb2.CSIDriver, found: list[Cause]) -> None:
    """``validateCSIDriverSpec``."""
    spec = csi_driver.spec
    checks.listed(spec.fsGroupPolicy, "spec.fsGroupPolicy", _GROUP_POLICIES, found)
    audiences: dict[str, None] = {}
    for index, token in enumerate(spec.tokenRequests):
        path, seconds = f"spec.tokenRequests[{index}]", token.expirationSeconds
        if token.audience in audiences:
            found.append(duplicate(f"{path}.audience", token.audience))
            continue
        audiences[token.audience] = None
        if token.HasField("expirationSeconds") and seconds < _SHORTEST_TOKEN_S:
            text = "may not specify a duration less than 10 minutes"
            found.append(invalid(f"{path}.expirationSeconds", seconds, text))
        if seconds > 1 << 32:
            text = "may not specify a duration larger than 2^32 seconds"
            found.append(invalid(f"{path}.expirationSeconds", seconds, text))
    for mode in spec.volumeLifecycleModes:
        checks.listed(mode, "spec.volumeLifecycleModes", ("Persistent", "Ephemeral"), found)
    period = spec.nodeAllocatableUpdatePeriodSeconds
    if spec.HasField("nodeAllocatableUpdatePeriodSeconds") and period < _SHORTEST_PERIOD_S:
        text = f"must be greater than or equal to {_SHORTEST_PERIOD_S} seconds"
        found.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    if spec.HasField("serviceAccountTokenInSecrets") and not spec.tokenRequests:
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        found.append(invalid("spec.serviceAccountTokenInSecrets", spec.serviceAccountTokenInSecrets, text))


_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_SHORTEST_PERIOD_S, _SHORTEST_TOKEN_S = 10, 600


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
    """``ValidateVolumeAttachment``."""
    spec, source = attachment.spec, attachment.spec.source
    has_name, has_spec = source.HasField("persistentVolumeName"), source.HasField("inlineVolumeSpec")
    volume_sources.check_driver_name(spec.attacher, "spec.attacher", found)
    if has_name == has_spec:
        text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        found.append(forbidden("spec.source", text) if has_name else required("spec.source", text))
    elif has_spec:
        _check_volume_spec(source.inlineVolumeSpec, "spec.source.inlineVolumeSpec", "", True, found)
    elif not source.persistentVolumeName:
        found.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
    _check_name(spec.nodeName, "spec.nodeName", found)
    _check_attachment_status(attachment.status, found)
    if has_name:
        _check_name(source.persistentVolumeName, "spec.source.persistentVolumeName", found)


def _check_name(name: str, path: str, found: list[Cause]) -> None:
    found.extend(invalid(path, name, problem) for problem in names.dns_subdomain(name))


def _check_attachment_status(status: storage_v1_pb2.VolumeAttachmentStatus, found: list[Cause]) -> None:
    """``validateVolumeAttachmentStatus``."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in status.attachmentMetadata.items())
    if size > _LARGEST_PARAMETERS:
        found.append(too_long("status.attachmentMetadata", _LARGEST_PARAMETERS))
    for field in ("attachError", "detachError"):
        error = getattr(status, field)
        if len(error.message.encode()) > _LONGEST_ERROR:
            # Kubernetes tells another limit.
            found.append(too_long(f"status.{field}.message", _LARGEST_PARAMETERS))
        if error.errorCode < 0:
            text = "must be between 0 and 2147483647, inclusive"
            found.append(invalid(f"status.{field}.errorCode", error.errorCode, text))


_LONGEST_ERROR = 1024


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


RULES = {
    core_v1_pb2.PersistentVolume: Rules(_check_new_volume, _check_volume_update),
    core_v1_pb2.PersistentVolumeClaim: Rules(_check_claim, _check_claim_update, _check_claim_status),
    storage_v1_pb2.StorageClass: Rules(_check_class, _check_class_update),
    storage_v1_pb2.CSINode: Rules(_check_csi_node, _check_csi_node_update),
    storage_v1_pb2.CSIDriver: Rules(_check_csi_driver, _check_csi_driver_update),
    storage_v1_pb2.CSIStorageCapacity: Rules(_check_capacity, checks.fixed("nodeTopology", "storageClassName")),
    storage_v1_pb2.VolumeAttachment: Rules(_check_attachment, _check_attachment_update, _check_attachment_update),
    storage_v1_pb2.VolumeAttributesClass: Rules(_check_attributes, _check_attributes_class_update),
}
