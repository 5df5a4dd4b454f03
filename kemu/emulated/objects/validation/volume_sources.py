"""The sources of volumes that pods and PersistentVolumes have in common, in one table for each.

``validateVolumeSource``, ``ValidatePersistentVolumeSpec`` and the checks of sources of ``pkg/apis/core/validation``.
What only pods have is in :mod:`kemu.emulated.objects.validation.pod_specs.volumes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import forbidden, invalid, not_supported, required, too_long
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

Check = Callable[[Any, str, list[Cause]], None]
"""(source, its path, causes)"""
Iscsi = core_v1_pb2.ISCSIVolumeSource | core_v1_pb2.ISCSIPersistentVolumeSource

_PLACES = {"gcePersistentDisk": "persistentDisk"}
_SURPLUS_PLACES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Kubernetes names other fields than the API has: of the first source, and of those beside it."""

_LONGEST_DRIVER_NAME = 63
_LONGEST_TENANT = 64


def check_sources(
    source: Message, kinds: Mapping[str, Check], path: str, found: list[Cause], several: str = ""
) -> None:
    """A volume has one source. ``kinds``: in the order in which Kubernetes looks. ``several``: a kind that may stand
    beside another."""
    stated = source.ListFields()
    if len(stated) == 1:
        name = stated[0][0].name
        kinds[name](stated[0][1], f"{path}.{_PLACES.get(name, name)}", found)
        return
    there = {field.name: None for field, _ in stated}
    for number, name in enumerate(name for name in kinds if name in there):
        if number and name != several:
            here = f"{path}.{_SURPLUS_PLACES.get(name, name)}"
            found.append(forbidden(here, "may not specify more than 1 volume type"))
        else:
            kinds[name](getattr(source, name), f"{path}.{_PLACES.get(name, name)}", found)
    if not there:
        found.append(required(path, "must specify a volume type"))


# Paths --------------------------------------------------------------------------------------------------------------


def check_no_backsteps(text: str, path: str, found: list[Cause]) -> None:
    """``validatePathNoBacksteps``"""
    if ".." in text and ".." in text.split("/"):
        found.append(invalid(path, text, "must not contain '..'"))


def check_descending(text: str, path: str, found: list[Cause]) -> None:
    """``validateLocalDescendingPath``"""
    if text.startswith("/"):
        found.append(invalid(path, text, "must be a relative path"))
    check_no_backsteps(text, path, found)


def check_non_reserved(text: str, path: str, found: list[Cause]) -> None:
    """``ValidateLocalNonReservedPath``; worth a call only for texts that begin with a slash, or have two dots."""
    check_descending(text, path, found)
    if text.startswith("..") and not text.startswith("../"):
        found.append(invalid(path, text, "must not start with '..'"))


# Parts of the tables ------------------------------------------------------------------------------------------------


def all_of(*several: Check) -> Check:
    def check(source: Message, path: str, found: list[Cause]) -> None:
        for one in several:
            one(source, path, found)

    return check


def needed(*fields: str) -> Check:
    """Fields that must be there, and not empty."""

    def check(source: Message, path: str, found: list[Cause]) -> None:
        found.extend(required(f"{path}.{field}") for field in fields if not getattr(source, field))

    return check


def _needed_of_secret(*fields: str) -> Check:
    def check(source: Message, path: str, found: list[Cause]) -> None:
        if source.HasField("secretRef"):
            secret = getattr(source, "secretRef")  # noqa: B009  # of messages of several kinds
            found.extend(required(f"{path}.secretRef.{one}") for one in fields if not getattr(secret, one))

    return check


def _in_range(field: str, first: int, last: int, told: int) -> Check:
    """``told``: where the range begins in the text."""

    def check(source: Message, path: str, found: list[Cause]) -> None:
        value = getattr(source, field)
        if not first <= value <= last:
            found.append(invalid(f"{path}.{field}", value, f"must be between {told} and {last}, inclusive"))

    return check


def _label(field: str) -> Check:
    def check(source: Message, path: str, found: list[Cause]) -> None:
        checks.name(getattr(source, field), f"{path}.{field}", names.dns_label, found)

    return check


def check_driver_name(name: str, path: str, found: list[Cause]) -> None:
    """``ValidateCSIDriverName``"""
    if not name:
        found.append(required(path))
        return
    if len(name) > _LONGEST_DRIVER_NAME:
        found.append(too_long(path, _LONGEST_DRIVER_NAME))
    found.extend(invalid(path, name, one) for one in names.dns_subdomain(name.lower()))


# Kinds --------------------------------------------------------------------------------------------------------------

_MANAGED_DISK = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
)  # fmt: skip
_BLOB_DISK = ("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",)
_INITIATORS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9-.]+)(:[^,;*&$|\s]+)$", re.ASCII),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$", re.ASCII),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$", re.ASCII),
}
_PORTAL_TEXT = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
    "specified."
)


def _check_host_path(source: core_v1_pb2.HostPathVolumeSource, path: str, found: list[Cause]) -> None:
    if not source.path:
        found.append(required(f"{path}.path"))
        return
    check_no_backsteps(source.path, f"{path}.path", found)
    checks.listed(source.type, f"{path}.type", "core.v1.HostPathType", found)


def _check_git(source: core_v1_pb2.GitRepoVolumeSource, path: str, found: list[Cause]) -> None:
    if not source.repository:
        found.append(required(f"{path}.repository"))
    check_descending(source.directory, f"{path}.directory", found)


def _check_absolute(source: core_v1_pb2.NFSVolumeSource, path: str, found: list[Cause]) -> None:
    if not source.path.startswith("/"):
        found.append(invalid(f"{path}.path", source.path, "must be an absolute path"))


def portal_problem(volume: str, source: Iscsi) -> str:
    """What is wrong with the length of an iSCSI portal with the name of its volume; empty: nothing."""
    too_long = source.HasField("initiatorName") and len(f"{volume}:{source.targetPortal}".encode()) > 64
    return _PORTAL_TEXT if too_long else ""


def _check_iscsi(source: core_v1_pb2.ISCSIVolumeSource, path: str, found: list[Cause]) -> None:
    needed("targetPortal")(source, path, found)
    _check_iscsi_rest(source, path, "must be valid format starting with iqn, eui, or naa", found)


def _check_iscsi_rest(source: Iscsi, path: str, no_kind: str, found: list[Cause]) -> None:
    """``no_kind``: the text for a name that is of no known kind."""
    if source.iqn:
        _check_initiator(source.iqn, f"{path}.iqn", no_kind, found)
    else:
        found.append(required(f"{path}.iqn"))
    _in_range("lun", 0, 255, 0)(source, path, found)
    if (source.chapAuthDiscovery or source.chapAuthSession) and not source.HasField("secretRef"):
        found.append(required(f"{path}.secretRef"))
    if no_kind == "must be valid format":
        _needed_of_secret("name")(source, path, found)
    if source.HasField("initiatorName"):
        _check_initiator(source.initiatorName, f"{path}.initiatorname", no_kind, found)


def _check_initiator(name: str, path: str, no_kind: str, found: list[Cause]) -> None:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        found.append(invalid(path, name, no_kind))
    elif not pattern.search(name):
        found.append(invalid(path, name, "must be valid format"))


def _check_flocker(source: core_v1_pb2.FlockerVolumeSource, path: str, found: list[Cause]) -> None:
    if not source.datasetName and not source.datasetUUID:
        found.append(required(path, "one of datasetName and datasetUUID is required"))
    if source.datasetName and source.datasetUUID:
        found.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in source.datasetName:
        found.append(invalid(f"{path}.datasetName", source.datasetName, "must not contain '/'"))


def _check_quobyte(source: core_v1_pb2.QuobyteVolumeSource, path: str, found: list[Cause]) -> None:
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    if not source.registry:
        found.append(required(f"{path}.registry", pairs))
    elif len(source.tenant.encode()) > _LONGEST_TENANT:
        found.append(required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    else:
        wrong = [one for one in source.registry.split(",") if not _HOST_AND_PORT.fullmatch(one)]
        found.extend(invalid(f"{path}.registry", source.registry, pairs) for _ in wrong)
    needed("volume")(source, path, found)


_HOST_AND_PORT = re.compile(r"(?:\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*", re.DOTALL)
"""``net.SplitHostPort``"""


def _check_fc(source: core_v1_pb2.FCVolumeSource, path: str, found: list[Cause]) -> None:
    here = f"{path}.targetWWNs"
    if not source.targetWWNs and not source.wwids:
        found.append(required(here, "must specify either targetWWNs or wwids, but not both"))
    if source.targetWWNs and source.wwids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        found.append(invalid(here, list(source.targetWWNs), detail))
    if source.targetWWNs:
        if source.HasField("lun"):
            _in_range("lun", 0, 255, 0)(source, path, found)
        else:
            found.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))


def _check_flex(
    source: core_v1_pb2.FlexVolumeSource | core_v1_pb2.FlexPersistentVolumeSource, path: str, found: list[Cause]
) -> None:
    needed("driver")(source, path, found)
    for key in sorted(source.options):
        namespace = f".{key.partition('/')[0].lower()}"
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            found.append(invalid(f"{path}.options[{key}]", key, detail))


def _check_azure_disk(source: core_v1_pb2.AzureDiskVolumeSource, path: str, found: list[Cause]) -> None:
    needed("diskName", "diskURI")(source, path, found)
    if source.HasField("cachingMode"):
        checks.listed(source.cachingMode, f"{path}.cachingMode", "core.v1.AzureDataDiskCachingMode", found)
    if not source.HasField("kind"):
        return
    checks.listed(source.kind, f"{path}.kind", "core.v1.AzureDataDiskKind", found)
    is_managed = source.kind == "Managed"
    if not source.diskURI.startswith("/subscriptions/" if is_managed else "https://"):
        known = _MANAGED_DISK if is_managed else _BLOB_DISK
        found.append(not_supported(f"{path}.diskURI", source.diskURI, known))


_SHARED: dict[str, Check] = {
    "hostPath": _check_host_path,
    "gcePersistentDisk": all_of(needed("pdName"), _in_range("partition", 0, 255, 1)),
    "awsElasticBlockStore": all_of(needed("volumeID"), _in_range("partition", 0, 255, 1)),
    "nfs": all_of(needed("server", "path"), _check_absolute),
    "glusterfs": needed("endpoints", "path"),
    "flocker": _check_flocker,
    "rbd": needed("monitors", "image"),
    "cephfs": needed("monitors"),
    "quobyte": _check_quobyte,
    "fc": _check_fc,
    "flexVolume": _check_flex,
    "azureFile": needed("secretName", "shareName"),
    "vsphereVolume": needed("volumePath"),
    "photonPersistentDisk": needed("pdID"),
    "portworxVolume": needed("volumeID"),
    "azureDisk": _check_azure_disk,
    "scaleIO": needed("gateway", "system", "volumeName"),
}
"""Kinds of which a pod and a PersistentVolume say the same."""

_STORAGE_OS = (needed("volumeName"), _label("volumeName"), _label("volumeNamespace"))

OF_PODS: dict[str, Check] = {
    **_SHARED,
    "gitRepo": _check_git,
    "iscsi": _check_iscsi,
    "persistentVolumeClaim": needed("claimName"),
    "cinder": all_of(needed("volumeID"), _needed_of_secret("name")),
    "storageos": all_of(*_STORAGE_OS, _needed_of_secret("name")),
}
"""Those of a pod's volumes that hold no configuration of their own; not in Kubernetes' order."""


# PersistentVolumes --------------------------------------------------------------------------------------------------


def _check_endpoints_namespace(
    source: core_v1_pb2.GlusterfsPersistentVolumeSource, path: str, found: list[Cause]
) -> None:
    if source.HasField("endpointsNamespace"):
        here, namespace = f"{path}.endpointsNamespace", source.endpointsNamespace
        if not namespace:
            detail = "if the endpointnamespace is set, it must be a valid namespace name"
            found.append(invalid(here, namespace, detail))
        else:
            checks.name(namespace, here, names.dns_label, found)


def _check_secret_namespace(source: core_v1_pb2.AzureFilePersistentVolumeSource, path: str, found: list[Cause]) -> None:
    if source.HasField("secretNamespace"):
        needed("secretNamespace")(source, path, found)


def _check_local(source: core_v1_pb2.LocalVolumeSource, path: str, found: list[Cause]) -> None:
    needed("path")(source, path, found)
    check_no_backsteps(source.path, f"{path}.path", found)


_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def _check_persistent_csi(source: core_v1_pb2.CSIPersistentVolumeSource, path: str, found: list[Cause]) -> None:
    check_driver_name(source.driver, f"{path}.driver", found)
    needed("volumeHandle")(source, path, found)
    for field in _CSI_SECRETS:
        if source.HasField(field):
            secret, here = getattr(source, field), f"{path}.{field}"
            checks.needed_name(secret.name, f"{here}.name", names.dns_subdomain, found)
            checks.needed_name(secret.namespace, f"{here}.namespace", names.dns_label, found)


def _persistent_iscsi(volume: str) -> Check:
    def check(source: core_v1_pb2.ISCSIPersistentVolumeSource, path: str, found: list[Cause]) -> None:
        needed("targetPortal")(source, path, found)
        problem = portal_problem(volume, source)
        if problem:
            found.append(invalid(f"{path}.targetportal", source.targetPortal, problem))
        _check_iscsi_rest(source, path, "must be valid format", found)

    return check


_PERSISTENT: dict[str, Check] = {
    **_SHARED,
    "glusterfs": all_of(_SHARED["glusterfs"], _check_endpoints_namespace),
    "cinder": all_of(needed("volumeID"), _needed_of_secret("name", "namespace")),
    "azureFile": all_of(_SHARED["azureFile"], _check_secret_namespace),
    "local": _check_local,
    "storageos": all_of(*_STORAGE_OS, _needed_of_secret("name", "namespace")),
    "csi": _check_persistent_csi,
}
_PERSISTENT_ORDER = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip


def check_persistent(source: Message, path: str, volume: str, has_nodes: bool, found: list[Cause]) -> None:
    """The source of a PersistentVolume (``ValidatePersistentVolumeSpec``). ``has_nodes``: it says on which nodes."""

    def check_local(local: core_v1_pb2.LocalVolumeSource, here: str, found: list[Cause]) -> None:
        _check_local(local, here, found)
        if not has_nodes:
            found.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))

    kinds = {**_PERSISTENT, "iscsi": _persistent_iscsi(volume), "local": check_local}
    check_sources(source, {name: kinds[name] for name in _PERSISTENT_ORDER}, path, found, several="flexVolume")
