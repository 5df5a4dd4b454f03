"""Volumes of plugins in the tree as the CSI drivers see them that have replaced these plugins.

Mirrors ``k8s.io/csi-translation-lib`` as far as the scheduler asks it: driver, handle, and topology.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.message import Message

from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
ZONES_APART = "__"
"""Between the zones in the label of a volume that reaches several."""
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
_UNSPECIFIED = "UNSPECIFIED"


class MigrationError(ValueError):
    """A volume that its CSI driver cannot take over."""


class _Plugin(NamedTuple):
    field: str
    """Field of the source of a volume."""
    name: str
    driver: str
    handle: Callable[[Any, Mapping[str, str]], str]
    """Handle of a source and the labels of its volume."""
    topology: str = ""
    """The label of the driver's zones."""
    is_in_pods: bool = True
    """Whether a pod may name it without a claim."""
    is_migrated: bool = True
    """Whether the scheduler asks the driver (``isCSIMigrationOn``)."""


def _gce_handle(source: core_v1_pb2.GCEPersistentDiskVolumeSource, labels: Mapping[str, str]) -> str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or "").split(ZONES_APART)
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_region(zones)}/disks/{source.pdName}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{source.pdName}"


def _region(zones: list[str]) -> str:
    found: dict[str, None] = {}
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            text = f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            raise MigrationError(f"failed to get region from zones: {text}")
        found["-".join(parts[:2])] = None
    if len(found) != 1:
        seen = " ".join(f"{region}:{{}}" for region in sorted(found))
        text = f"multiple or no regions gotten from zones, got: map[{seen}]"
        raise MigrationError(f"failed to get region from zones: {text}")
    return next(iter(found))


def _ebs_handle(source: Any, labels: Mapping[str, str]) -> str:
    identity = str(source.volumeID)
    if not identity.startswith("aws://"):
        return identity
    identity = identity.removeprefix("aws://").partition("/")[2].strip("/").rpartition("/")[2]
    if not re.fullmatch("vol-[^/]*", identity):
        raise MigrationError(f"Invalid format for AWS volume ({source.volumeID})")
    return identity


def _azure_disk_handle(source: Any, labels: Mapping[str, str]) -> str:
    if source.HasField("kind") and source.kind.lower() != "managed":
        raise MigrationError(f"kind({source.kind}) is not supported in csi migration")
    return str(source.diskURI)


_PLUGINS = (
    _Plugin("gcePersistentDisk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", _gce_handle,
            "topology.gke.io/zone"),
    _Plugin("awsElasticBlockStore", "kubernetes.io/aws-ebs", "ebs.csi.aws.com", _ebs_handle,
            "topology.ebs.csi.aws.com/zone"),
    _Plugin("cinder", "kubernetes.io/cinder", "cinder.csi.openstack.org",
            lambda source, labels: str(source.volumeID), "topology.cinder.csi.openstack.org/zone"),
    _Plugin("azureDisk", "kubernetes.io/azure-disk", "disk.csi.azure.com", _azure_disk_handle),
    _Plugin("azureFile", "kubernetes.io/azure-file", "file.csi.azure.com", lambda source, labels: "",
            is_migrated=False),
    _Plugin("vsphereVolume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com",
            lambda source, labels: str(source.volumePath), is_migrated=False),
    _Plugin("portworxVolume", "kubernetes.io/portworx-volume", "pxd.portworx.com",
            lambda source, labels: str(source.volumeID)),
)  # fmt: skip
_BY_FIELD = {plugin.field: plugin for plugin in _PLUGINS}
_BY_NAME = {plugin.name: plugin for plugin in _PLUGINS}


def plugin_of(source: core_v1_pb2.PersistentVolumeSource | core_v1_pb2.VolumeSource) -> _Plugin | None:
    """The plugin in the tree behind the source of a volume, if a CSI driver has replaced it."""
    for field, plugin in _BY_FIELD.items():
        if source.HasField(field):
            return plugin
    return None


def is_inline(source: core_v1_pb2.VolumeSource) -> bool:
    """Whether a pod's volume is of such a plugin (``IsInlineMigratable``)."""
    plugin = plugin_of(source)
    return plugin is not None and plugin.is_in_pods


def driver_of_provisioner(provisioner: str) -> str | None:
    """The driver that creates volumes in place of a provisioner in the tree, "" if the scheduler does not ask it; None
    for a provisioner that is none of these."""
    plugin = _BY_NAME.get(provisioner)
    if plugin is None:
        return None
    return plugin.driver if plugin.is_migrated else ""


def new_driver_of(provisioner: str) -> str | None:
    """The driver that has replaced a provisioner of the tree (``IsMigrationEnabledForPlugin``)."""
    plugin = _BY_NAME.get(provisioner)
    return None if plugin is None else plugin.driver


def handle_of(source: Any, labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Driver and handle of a volume's source; None if no driver has taken it over. Raises MigrationError."""
    plugin = plugin_of(source)
    if plugin is None or not plugin.is_migrated:
        return None
    return plugin.driver, plugin.handle(getattr(source, plugin.field), labels)


def inline_handle(source: Message) -> tuple[str, str] | None:
    """:func:`handle_of` for a volume that a pod names itself (``TranslateInTreeInlineVolumeToCSI``)."""
    return handle_of(source, {})


def migrated_on(csi_node: storage_v1_pb2.CSINode | None, plugin: str) -> bool:
    """Whether the kubelet of a node says that it has handed over this plugin (``isPluginMigratedToCSIOnNode``)."""
    if csi_node is None:
        return False
    return plugin in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def translated(volume: core_v1_pb2.PersistentVolume) -> core_v1_pb2.PersistentVolume:
    """A copy of a volume of the tree whose node affinity speaks of its driver's labels (``TranslateInTreePVToCSI``).

    Raises MigrationError.
    """
    plugin = plugin_of(volume.spec.persistentVolumeSource)
    assert plugin is not None
    plugin.handle(getattr(volume.spec.persistentVolumeSource, plugin.field), volume.metadata.labels)
    made = type(volume)()
    made.CopyFrom(volume)
    if plugin.topology:
        _translate_topology(made, plugin.topology)
    return made


def _translate_topology(volume: core_v1_pb2.PersistentVolume, key: str) -> None:
    """``translateTopologyFromInTreeToCSI``."""
    terms = volume.spec.nodeAffinity.required.nodeSelectorTerms
    used = [one.key for term in terms for one in term.matchExpressions]
    labels = volume.metadata.labels
    is_old = ZONE not in used and (BETA_ZONE in used or (ZONE not in labels and BETA_ZONE in labels))
    zone = BETA_ZONE if is_old else ZONE
    if any(one.key == zone and one.values for term in terms for one in term.matchExpressions):
        _rename(terms, zone, key)
    elif zone in labels:
        zones = sorted({value.strip(): None for value in labels[zone].split(ZONES_APART) if value.strip()})
        if zones:
            if not len(terms):
                terms.add()
            for term in terms:
                term.matchExpressions.add(key=key, operator="In", values=zones)
    if is_old:
        _rename(terms, BETA_REGION, REGION)


def _rename(terms: Sequence[core_v1_pb2.NodeSelectorTerm], old: str, new: str) -> None:
    for term in terms:
        for one in term.matchExpressions:
            if one.key == old:
                one.key = new
