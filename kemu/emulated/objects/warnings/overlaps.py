"""Files of one volume whose paths are in each other's way (``pkg/api/pod/warnings.go``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from kemu.messages.k8s import core_v1_pb2

File = tuple[str, str]
"""Path, and what it comes from: empty where all files of a volume come from one object."""


def of(volume: core_v1_pb2.Volume) -> Iterator[str]:
    """Those of a volume; of none but those whose files are listed."""
    source, told = volume.volumeSource, ""
    if source.HasField("projected"):
        told, files = "Projected", list[File]()
        for one in source.projected.sources:
            files += _projected(one)
            if not one.ListFields():
                yield f'volume "{volume.name}" (Projected) has no sources provided'
    elif source.HasField("configMap"):
        told = f'ConfigMap "{source.configMap.localObjectReference.name}"'
        files = [(item.path, "") for item in source.configMap.items]
    elif source.HasField("secret"):
        told, files = f'Secret "{source.secret.secretName}"', [(item.path, "") for item in source.secret.items]
    elif source.HasField("downwardAPI"):
        told, files = "DownwardAPI", [(item.path, "") for item in source.downwardAPI.items]
    if told and len(files) > 1:
        for overlap in _overlapping(files):
            yield f'volume "{volume.name}" ({told}): overlapping paths: {overlap}'


def _projected(source: core_v1_pb2.VolumeProjection) -> list[File]:
    if source.HasField("serviceAccountToken"):
        return [(source.serviceAccountToken.path, "ServiceAccountToken")]
    if source.configMap.items:
        told = f'ConfigMap "{source.configMap.localObjectReference.name}"'
        return [(item.path, told) for item in source.configMap.items]
    if source.secret.items:
        told = f'Secret "{source.secret.localObjectReference.name}"'
        return [(item.path, told) for item in source.secret.items]
    if source.downwardAPI.items:
        return [(item.path, "DownwardAPI") for item in source.downwardAPI.items]
    if source.HasField("clusterTrustBundle"):
        bundle = source.clusterTrustBundle
        name = bundle.name if bundle.HasField("name") else bundle.signerName
        return [(bundle.path, f'ClusterTrustBundle "{name}"')]
    certificate = source.podCertificate
    parts = (
        (certificate.certificateChainPath, "PodCertificate chain"),
        (certificate.keyPath, "PodCertificate key"),
        (certificate.credentialBundlePath, "PodCertificate credential bundle"),
    )
    return [part for part in parts if part[0]]


def _overlapping(files: Iterable[File]) -> Iterator[str]:
    """Each with those before it that have its path, or a path above or below it."""
    before: list[File] = []
    for path, source in files:
        file = path.rstrip("/"), source
        below = f"{file[0]}/"
        for other in before:
            if file[0] and other[0] and (below.startswith(f"{other[0]}/") or f"{other[0]}/".startswith(below)):
                yield f"{_shown(file)} with {_shown(other)}"
        before.append(file)


def _shown(file: File) -> str:
    path, source = file
    return f"{json.dumps(path)} ({source})" if source else json.dumps(path)
