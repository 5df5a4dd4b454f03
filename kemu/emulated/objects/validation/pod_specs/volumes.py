"""The volumes of pods, and where containers mount them.

Mirrors ``ValidateVolumes``, ``ValidateVolumeMounts``, ``ValidateVolumeDevices`` of ``pkg/apis/core/validation``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.validation import checks, storage, volume_sources
from kemu.emulated.objects.validation.causes import duplicate, forbidden, invalid, not_found, required
from kemu.emulated.objects.validation.metadata import check_template
from kemu.emulated.objects.validation.pod_specs import environments
from kemu.emulated.objects.validation.volume_sources import Check
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

Sources = dict[str, core_v1_pb2.VolumeSource]
"""By the name of the volume, those without a problem."""

OF_CLAIM = core_v1_pb2.VolumeSource(persistentVolumeClaim=core_v1_pb2.PersistentVolumeClaimVolumeSource())

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")
_MOST_MODE = 0o777
_SHORTEST_TOKEN_S = 600


def check_volumes(
    volumes: Sequence[core_v1_pb2.Volume], path: str, found: list[Cause], pod_name: str | None = None
) -> Sources:
    """``pod_name``: None: of a template, where images may be without a reference."""
    there: Sources = {}
    created: tuple[str, ...] = ()
    if pod_name:
        created = tuple(f"{pod_name}-{one.name}" for one in volumes if one.volumeSource.HasField("ephemeral"))
    kinds = _OF_TEMPLATES if pod_name is None else _OF_PODS
    for index, volume in enumerate(volumes):
        here, name, source = f"{path}[{index}]", volume.name, volume.volumeSource
        before = len(found)
        volume_sources.check_sources(source, kinds, here, found)
        if source.HasField("iscsi") and (problem := volume_sources.portal_problem(name, source.iscsi)):
            found.append(invalid(f"{here}.name", name, problem))
        if created and name and source.HasField("ephemeral") and source.ListFields()[0][0].name == "ephemeral":
            problems = names.dns_subdomain(f"{pod_name}-{name}")
            found.extend(invalid(f"{here}.name", name, f'PVC name "{pod_name}-{name}": {one}') for one in problems)
        if not name or names.dns_label(name):
            checks.needed_name(name, f"{here}.name", names.dns_label, found)
        if name in there:
            found.append(duplicate(f"{here}.name", name))
        if len(found) == before:
            there[name] = source
        if created and source.HasField("persistentVolumeClaim"):
            claim = source.persistentVolumeClaim.claimName
            if claim in created:
                detail = "must not reference a PVC that gets created for an ephemeral volume"
                found.append(invalid(f"{here}.persistentVolumeClaim.claimName", claim, detail))
    return there


# Sources ------------------------------------------------------------------------------------------------------------


def _check_empty_dir(source: core_v1_pb2.EmptyDirVolumeSource, path: str, found: list[Cause]) -> None:
    if source.HasField("sizeLimit"):
        text = source.sizeLimit.string
        if storage.quantities_are_right(text) and quantities.parse(text) < quantities.ZERO:
            found.append(forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def _wrong_mode(mode: int, path: str) -> Cause:
    return invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _check_item(item: core_v1_pb2.KeyToPath, path: str, found: list[Cause]) -> None:
    """``validateKeyToPath``"""
    text, mode = item.path, item.mode
    if not item.key:
        found.append(required(f"{path}.key"))
    if not text:
        found.append(required(f"{path}.path"))
    if ".." in text or text.startswith("/"):
        volume_sources.check_non_reserved(text, f"{path}.path", found)
    if not 0 <= mode <= _MOST_MODE:
        found.append(_wrong_mode(mode, f"{path}.mode"))


def _check_secret(source: core_v1_pb2.SecretVolumeSource, path: str, found: list[Cause]) -> None:
    if not source.secretName:
        found.append(required(f"{path}.secretName"))
    if not 0 <= source.defaultMode <= _MOST_MODE:
        found.append(_wrong_mode(source.defaultMode, f"{path}.defaultMode"))
    for index, item in enumerate(source.items):
        _check_item(item, f"{path}.items[{index}]", found)


def _check_config_map(source: core_v1_pb2.ConfigMapVolumeSource, path: str, found: list[Cause]) -> None:
    if not source.localObjectReference.name:
        found.append(required(f"{path}.name"))
    if not 0 <= source.defaultMode <= _MOST_MODE:
        found.append(_wrong_mode(source.defaultMode, f"{path}.defaultMode"))
    for index, item in enumerate(source.items):
        _check_item(item, f"{path}.items[{index}]", found)


def _check_downward(source: core_v1_pb2.DownwardAPIVolumeSource, path: str, found: list[Cause]) -> None:
    if not 0 <= source.defaultMode <= _MOST_MODE:
        found.append(_wrong_mode(source.defaultMode, f"{path}.defaultMode"))
    for file in source.items:
        _check_file(file, path, found)


def _check_file(file: core_v1_pb2.DownwardAPIVolumeFile, path: str, found: list[Cause]) -> None:
    """``validateDownwardAPIVolumeFile``; Kubernetes does not say which file it is."""
    if not file.path:
        found.append(required(f"{path}.path"))
    if ".." in file.path or file.path.startswith("/"):
        volume_sources.check_non_reserved(file.path, f"{path}.path", found)
    if file.HasField("fieldRef"):
        environments.check_field(file.fieldRef, environments.FIELDS_OF_FILES, f"{path}.fieldRef", found)
        if file.HasField("resourceFieldRef"):
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(invalid(path, "resource", detail))
    elif file.HasField("resourceFieldRef"):
        environments.check_resource(file.resourceFieldRef, f"{path}.resourceFieldRef", found, of_file=True)
    else:
        found.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    if not 0 <= file.mode <= _MOST_MODE:
        found.append(_wrong_mode(file.mode, f"{path}.mode"))


def _check_projected(source: core_v1_pb2.ProjectedVolumeSource, path: str, found: list[Cause]) -> None:
    """``validateProjectedVolumeSource``; the server drops certificates and trust bundles before."""
    if not 0 <= source.defaultMode <= _MOST_MODE:
        found.append(_wrong_mode(source.defaultMode, f"{path}.defaultMode"))
    taken: dict[str, None] = {}
    for index, one in enumerate(source.sources):
        here = f"{path}.sources[{index}]"
        for field in ("secret", "configMap"):
            if one.HasField(field):
                projection = getattr(one, field)
                name = projection.localObjectReference.name
                if not name:
                    found.append(required(f"{here}.{field}.name"))
                for number, item in enumerate(projection.items):
                    _check_item(item, f"{here}.{field}.items[{number}]", found)
                    if item.path in taken:
                        found.append(invalid(path, name, "conflicting duplicate paths"))
                    elif item.path:
                        taken[item.path] = None
        for file in one.downwardAPI.items:
            _check_file(file, f"{here}.downwardAPI", found)
            if file.path in taken:
                found.append(invalid(path, file.path, "conflicting duplicate paths"))
            elif file.path:
                taken[file.path] = None
        if one.HasField("serviceAccountToken"):
            _check_token(one.serviceAccountToken, path, f"{here}.serviceAccountToken", found)
        if len(one.ListFields()) > 1:
            found.append(forbidden(here, "may not specify more than 1 volume type per source"))


def _check_token(
    token: core_v1_pb2.ServiceAccountTokenProjection, path: str, own_path: str, found: list[Cause]
) -> None:
    """``path``: of all sources, where Kubernetes says that the token has its."""
    here, seconds = f"{own_path}.expirationSeconds", token.expirationSeconds
    if seconds < _SHORTEST_TOKEN_S:
        found.append(invalid(here, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > 1 << 32:
        found.append(invalid(here, seconds, "may not specify a duration larger than 2^32 seconds"))
    if not token.path:
        found.append(required(f"{path}.path"))
    elif ".." in token.path or token.path.startswith("/"):
        volume_sources.check_non_reserved(token.path, f"{path}.path", found)


def _check_csi(source: core_v1_pb2.CSIVolumeSource, path: str, found: list[Cause]) -> None:
    volume_sources.check_driver_name(source.driver, f"{path}.driver", found)
    if source.HasField("nodePublishSecretRef"):
        name = source.nodePublishSecretRef.name
        if name:
            found.extend(invalid(f"{path}.name", name, one) for one in names.dns_subdomain(name))
        else:
            found.append(required(f"{path}.nodePublishSecretRef.name"))


def _check_ephemeral(source: core_v1_pb2.EphemeralVolumeSource, path: str, found: list[Cause]) -> None:
    here = f"{path}.volumeClaimTemplate"
    if not source.HasField("volumeClaimTemplate"):
        found.append(required(here))
        return
    check_template(source.volumeClaimTemplate.metadata, f"{here}.metadata", found)
    storage.check_claim_spec(source.volumeClaimTemplate.spec, f"{here}.spec", found)


def _check_image(source: core_v1_pb2.ImageVolumeSource, path: str, found: list[Cause]) -> None:
    checks.choice(source.pullPolicy, f"{path}.pullPolicy", PULL_POLICIES, found)


def _check_image_of_pod(source: core_v1_pb2.ImageVolumeSource, path: str, found: list[Cause]) -> None:
    if not source.reference:
        found.append(required(f"{path}.reference"))
    _check_image(source, path, found)


_ORDER = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_KINDS: Mapping[str, Check] = {
    **volume_sources.OF_PODS,
    "emptyDir": _check_empty_dir,
    "secret": _check_secret,
    "configMap": _check_config_map,
    "downwardAPI": _check_downward,
    "projected": _check_projected,
    "csi": _check_csi,
    "ephemeral": _check_ephemeral,
    "image": _check_image,
}
_OF_TEMPLATES: Mapping[str, Check] = {name: _KINDS[name] for name in _ORDER}
_OF_PODS: Mapping[str, Check] = {**_OF_TEMPLATES, "image": _check_image_of_pod}


# Mounts -------------------------------------------------------------------------------------------------------------

AnyContainer = core_v1_pb2.Container | core_v1_pb2.EphemeralContainerCommon


def check_mounts(container: AnyContainer, path: str, there: Sources, found: list[Cause]) -> None:
    """``path``: of the container. ``there``: the volumes of its pod."""
    here = f"{path}.volumeMounts"
    devices = {one.name: one.devicePath for one in container.volumeDevices}
    seen: dict[str, None] = {}
    for index, mount in enumerate(container.volumeMounts):
        name, at = f"{here}[{index}].name", f"{here}[{index}].mountPath"
        if not mount.name:
            found.append(required(name))
        if mount.name not in there:
            found.append(not_found(name, mount.name))
        if not mount.mountPath:
            found.append(required(at))
        if mount.mountPath in seen:
            found.append(invalid(at, mount.mountPath, "must be unique"))
        seen[mount.mountPath] = None
        if devices:
            _check_apart(mount.name, name, mount.mountPath, at, devices, "volumeDevices", found)
        if mount.subPath:
            volume_sources.check_descending(mount.subPath, f"{here}.subPath", found)
        if mount.subPathExpr:
            if mount.subPath:
                detail = "subPathExpr and subPath are mutually exclusive"
                found.append(invalid(f"{here}[{index}].subPathExpr", mount.subPathExpr, detail))
            volume_sources.check_descending(mount.subPathExpr, f"{here}.subPathExpr", found)
        if mount.HasField("mountPropagation"):
            _check_propagation(mount, container, f"{here}.mountPropagation", found)
        if mount.HasField("recursiveReadOnly"):
            _check_recursion(mount, f"{here}.recursiveReadOnly", found)


def _check_apart(
    name: str, name_path: str, at: str, at_path: str, others: Mapping[str, str], field: str, found: list[Cause]
) -> None:
    """A volume is mounted or used as a device, and so is a path."""
    if name in others:
        found.append(invalid(name_path, name, f"must not already exist in {field}"))
    if at in others.values():
        found.append(invalid(at_path, at, f"must not already exist as a path in {field}"))


def _check_propagation(mount: core_v1_pb2.VolumeMount, container: AnyContainer, path: str, found: list[Cause]) -> None:
    checks.listed(mount.mountPropagation, path, "core.v1.MountPropagationMode", found)
    if mount.mountPropagation == "Bidirectional" and not container.securityContext.privileged:
        detail = "Bidirectional mount propagation is available only to privileged containers"
        found.append(forbidden(path, detail))


def _check_recursion(mount: core_v1_pb2.VolumeMount, path: str, found: list[Cause]) -> None:
    checks.listed(mount.recursiveReadOnly, path, _RECURSIONS, found)
    if mount.recursiveReadOnly in ("Enabled", "IfPossible"):
        if not mount.readOnly:
            found.append(forbidden(path, "may only be specified when readOnly is true"))
        if mount.HasField("mountPropagation") and mount.mountPropagation != "None":
            detail = "may only be specified when mountPropagation is None or not specified"
            found.append(forbidden(path, detail))


def check_devices(container: AnyContainer, path: str, there: Sources, found: list[Cause]) -> None:
    """Volumes that a container uses as block devices. ``path``: of the container."""
    mounts = {one.name: one.mountPath for one in container.volumeMounts}
    names_seen: dict[str, None] = {}
    paths_seen: dict[str, None] = {}
    for index, device in enumerate(container.volumeDevices):
        here = f"{path}.volumeDevices[{index}]"
        name, at = f"{here}.name", f"{here}.devicePath"
        source = there.get(device.name)
        if not device.name:
            found.append(required(name))
        if device.name in names_seen:
            found.append(invalid(name, device.name, "must be unique"))
        if source is None:
            found.append(not_found(name, device.name))
        elif not source.HasField("persistentVolumeClaim") and not source.HasField("ephemeral"):
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            found.append(invalid(name, device.name, detail))
        if not device.devicePath:
            found.append(required(at))
        if device.devicePath in paths_seen:
            found.append(invalid(at, device.devicePath, "must be unique"))
        if ".." in device.devicePath.split("/"):
            found.append(invalid(at, device.devicePath, "can not contain backsteps ('..')"))
        else:
            paths_seen[device.devicePath] = None
        _check_apart(device.name, name, device.devicePath, at, mounts, "volumeMounts", found)
        if device.name:
            names_seen[device.name] = None


def names_of(claims: Iterable[str]) -> Sources:
    """Volumes of claims: those of a StatefulSet's templates."""
    return dict.fromkeys(claims, OF_CLAIM)
