"""The checks of what volumes are made of: the sources that PersistentVolumes have, most of them in common with pods
(``validateISCSIVolumeSource`` and its like in ``pkg/apis/core/validation``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import TOO_LONG, forbidden, invalid, not_supported, required
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

LONGEST_DRIVER_NAME = 63
_LONGEST_PORTAL, _LONGEST_TENANT = 64, 64
_PAIRS = "must be a host:port pair or multiple pairs separated by commas"
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_ISCSI_NAMES = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+\Z", re.ASCII),
    "eui": re.compile(r"\Aeui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"\Anaa.[A-Za-z0-9]{32}\Z"),
}
_DISK_ADDRESSES = {
    "Managed": (
        "/subscriptions/",
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
    ),
    "Shared": ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
}
"""Of the kind ``Managed``, and of all others: how addresses of disks begin, and what is told of others."""


def check_sources(
    source: core_v1_pb2.PersistentVolumeSource, name: str, path: str, has_affinity: bool, found: list[Cause]
) -> bool:
    """A volume has one source, though Kubernetes lets a FlexVolume pass beside another one. Returns whether there is
    any. ``name``: of the volume."""
    stated = {field.name for field, _ in source.ListFields()}
    count = 0
    for field in _REQUIRED:
        if field not in stated:
            continue
        count += 1
        if count > 1 and field != "flexVolume":
            found.append(
                forbidden(f"{path}.{_OTHER_NAMES.get(field, field)}", "may not specify more than 1 volume type")
            )
            continue
        one, here = getattr(source, field), f"{path}.{_PLACES.get(field, field)}"
        check_required(one, _REQUIRED[field], here, found)
        if field == "iscsi":
            _check_portal(one, name, here, found)
        if field in _FURTHER:
            _FURTHER[field](one, here, found)
        if field == "local" and not has_affinity:
            found.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    return bool(stated)


def check_required(one: Any, fields: str, path: str, found: list[Cause]) -> None:
    """``fields``: that may not be empty, separated by spaces."""
    found.extend(required(f"{path}.{field}") for field in fields.split() if not getattr(one, field))


def check_driver_name(name: str, path: str, found: list[Cause]) -> None:
    """``ValidateCSIDriverName``."""
    if not name:
        found.append(required(path))
        return
    if len(name) > LONGEST_DRIVER_NAME:
        found.append(Cause(path, TOO_LONG, f"Too long: may not be more than {LONGEST_DRIVER_NAME} bytes"))
    found.extend(invalid(path, name, one) for one in names.dns_subdomain(name.lower()))


def check_steps(path_text: str, path: str, found: list[Cause]) -> None:
    """``validatePathNoBacksteps``."""
    if ".." in path_text.split("/"):
        found.append(invalid(path, path_text, "must not contain '..'"))


def check_partition(disk: Any, path: str, found: list[Cause]) -> None:
    """The disks of GCE and AWS."""
    if not 0 <= disk.partition <= 255:
        found.append(invalid(f"{path}.partition", disk.partition, "must be between 1 and 255, inclusive"))


def _check_host_path(host: core_v1_pb2.HostPathVolumeSource, path: str, found: list[Cause]) -> None:
    if host.path:
        check_steps(host.path, f"{path}.path", found)
        checks.listed(host.type, f"{path}.type", _HOST_PATH_TYPES, found)


def _check_local(local: core_v1_pb2.LocalVolumeSource, path: str, found: list[Cause]) -> None:
    check_steps(local.path, f"{path}.path", found)


def _check_glusterfs(volume: core_v1_pb2.GlusterfsPersistentVolumeSource, path: str, found: list[Cause]) -> None:
    if volume.HasField("endpointsNamespace"):
        here, namespace = f"{path}.endpointsNamespace", volume.endpointsNamespace
        if not namespace:
            found.append(invalid(here, "", "if the endpointnamespace is set, it must be a valid namespace name"))
        checks.name(namespace, here, names.dns_label, found)


def _check_flocker(volume: core_v1_pb2.FlockerVolumeSource, path: str, found: list[Cause]) -> None:
    if not volume.datasetName and not volume.datasetUUID:
        found.append(required(path, "one of datasetName and datasetUUID is required"))
    if volume.datasetName and volume.datasetUUID:
        found.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in volume.datasetName:
        found.append(invalid(f"{path}.datasetName", volume.datasetName, "must not contain '/'"))


def _check_nfs(volume: core_v1_pb2.NFSVolumeSource, path: str, found: list[Cause]) -> None:
    if not volume.path.startswith("/"):
        found.append(invalid(f"{path}.path", volume.path, "must be an absolute path"))


def _check_quobyte(volume: core_v1_pb2.QuobyteVolumeSource, path: str, found: list[Cause]) -> None:
    if not volume.registry:
        found.append(required(f"{path}.registry", _PAIRS))
    elif len(volume.tenant.encode()) > _LONGEST_TENANT:
        text = f"must be a UUID and may not exceed a length of {_LONGEST_TENANT} characters"
        found.append(required(f"{path}.tenant", text))
    else:
        found.extend(
            invalid(f"{path}.registry", volume.registry, _PAIRS)
            for pair in volume.registry.split(",")
            if not _is_pair(pair)
        )
    check_required(volume, "volume", path, found)


def _is_pair(text: str) -> bool:
    """``net.SplitHostPort``: whether it is a host, in brackets if it has colons, and a port."""
    host, colon, port = text.rpartition(":")
    if host.startswith("["):
        host, end = host[1:-1], host[-1]
        return bool(colon) and end == "]" and not set("[]") & set(host + port)
    return bool(colon) and not set("[]:") & set(host) and not set("[]") & set(port)


def _check_iscsi(volume: core_v1_pb2.ISCSIPersistentVolumeSource, path: str, found: list[Cause]) -> None:
    if not volume.iqn:
        found.append(required(f"{path}.iqn"))
    else:
        _check_iscsi_name(volume.iqn, f"{path}.iqn", found)
    if not 0 <= volume.lun <= 255:
        found.append(invalid(f"{path}.lun", volume.lun, "must be between 0 and 255, inclusive"))
    if (volume.chapAuthDiscovery or volume.chapAuthSession) and not volume.HasField("secretRef"):
        found.append(required(f"{path}.secretRef"))
    if volume.HasField("secretRef"):
        check_required(volume.secretRef, "name", f"{path}.secretRef", found)
    if volume.HasField("initiatorName"):
        _check_iscsi_name(volume.initiatorName, f"{path}.initiatorname", found)


def _check_iscsi_name(name: str, path: str, found: list[Cause]) -> None:
    known = _ISCSI_NAMES.get(name[:3])
    if known is None or not known.search(name):
        found.append(invalid(path, name, "must be valid format"))


def _check_portal(volume: core_v1_pb2.ISCSIPersistentVolumeSource, name: str, path: str, found: list[Cause]) -> None:
    if volume.HasField("initiatorName") and len(f"{name}:{volume.targetPortal}".encode()) > _LONGEST_PORTAL:
        text = (
            f"Total length of <volume name>:<iscsi.targetPortal> must be under {_LONGEST_PORTAL} characters if "
            "iscsi.initiatorName is specified."
        )
        found.append(invalid(f"{path}.targetportal", volume.targetPortal, text))


def _check_secret(volume: Any, path: str, found: list[Cause]) -> None:
    """The secret of Cinder and StorageOS."""
    if volume.HasField("secretRef"):
        check_required(volume.secretRef, "name namespace", f"{path}.secretRef", found)


def check_fc(volume: core_v1_pb2.FCVolumeSource, path: str, found: list[Cause]) -> None:
    names_of_targets, here = list(volume.targetWWNs), f"{path}.targetWWNs"
    if not names_of_targets and not volume.wwids:
        found.append(required(here, "must specify either targetWWNs or wwids, but not both"))
    if names_of_targets and volume.wwids:
        found.append(invalid(here, names_of_targets, "targetWWNs and wwids can not be specified simultaneously"))
    if names_of_targets and not volume.HasField("lun"):
        found.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif names_of_targets and not 0 <= volume.lun <= 255:
        found.append(invalid(f"{path}.lun", volume.lun, "must be between 0 and 255, inclusive"))


def check_flex(volume: Any, path: str, found: list[Cause]) -> None:
    """A FlexVolumeSource, or the one of PersistentVolumes."""
    for key in sorted(volume.options):
        namespace = f".{key.partition('/')[0].lower()}"
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            found.append(invalid(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved"))


def _check_azure_file(volume: core_v1_pb2.AzureFilePersistentVolumeSource, path: str, found: list[Cause]) -> None:
    if volume.HasField("secretNamespace") and not volume.secretNamespace:
        found.append(required(f"{path}.secretNamespace"))


def check_azure_disk(disk: core_v1_pb2.AzureDiskVolumeSource, path: str, found: list[Cause]) -> None:
    checks.listed(disk.cachingMode, f"{path}.cachingMode", "core.v1.AzureDataDiskCachingMode", found)
    checks.listed(disk.kind, f"{path}.kind", "core.v1.AzureDataDiskKind", found)
    start, form = _DISK_ADDRESSES["Managed" if disk.kind == "Managed" else "Shared"]
    if not disk.diskURI.startswith(start):
        found.append(not_supported(f"{path}.diskURI", disk.diskURI, (form,)))


def _check_storage_os(volume: core_v1_pb2.StorageOSPersistentVolumeSource, path: str, found: list[Cause]) -> None:
    checks.name(volume.volumeName, f"{path}.volumeName", names.dns_label, found)
    checks.name(volume.volumeNamespace, f"{path}.volumeNamespace", names.dns_label, found)
    _check_secret(volume, path, found)


def _check_csi(volume: core_v1_pb2.CSIPersistentVolumeSource, path: str, found: list[Cause]) -> None:
    check_driver_name(volume.driver, f"{path}.driver", found)
    check_required(volume, "volumeHandle", path, found)
    for secret in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        if volume.HasField(secret):
            one = getattr(volume, secret)
            checks.needed_name(one.name, f"{path}.{secret}.name", names.dns_subdomain, found)
            checks.needed_name(one.namespace, f"{path}.{secret}.namespace", names.dns_label, found)


_REQUIRED = {
    "hostPath": "path",
    "gcePersistentDisk": "pdName",
    "awsElasticBlockStore": "volumeID",
    "glusterfs": "endpoints path",
    "flocker": "",
    "nfs": "server path",
    "rbd": "monitors image",
    "quobyte": "",
    "cephfs": "monitors",
    "iscsi": "targetPortal",
    "cinder": "volumeID",
    "fc": "",
    "flexVolume": "driver",
    "azureFile": "secretName shareName",
    "vsphereVolume": "volumePath",
    "photonPersistentDisk": "pdID",
    "portworxVolume": "volumeID",
    "azureDisk": "diskName diskURI",
    "scaleIO": "gateway system volumeName",
    "local": "path",
    "storageos": "volumeName",
    "csi": "",
}
"""The fields of each source that may not be empty; in the order in which Kubernetes looks at the sources."""

_FURTHER: dict[str, Callable[[Any, str, list[Cause]], None]] = {
    "hostPath": _check_host_path,
    "gcePersistentDisk": check_partition,
    "awsElasticBlockStore": check_partition,
    "glusterfs": _check_glusterfs,
    "flocker": _check_flocker,
    "nfs": _check_nfs,
    "quobyte": _check_quobyte,
    "iscsi": _check_iscsi,
    "cinder": _check_secret,
    "fc": check_fc,
    "flexVolume": check_flex,
    "azureFile": _check_azure_file,
    "azureDisk": check_azure_disk,
    "local": _check_local,
    "storageos": _check_storage_os,
    "csi": _check_csi,
}
"""What else is checked of them."""

_OTHER_NAMES = {"cephfs": "cephFS"}
"""Where Kubernetes says that a source is one too many, if not at its field."""
_PLACES = {"gcePersistentDisk": "persistentDisk"}
"""Where it says what is wrong with a source."""
