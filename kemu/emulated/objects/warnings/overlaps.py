"""Files of one volume whose paths are in each other's way (``pkg/api/pod/warnings.go``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kemu.messages.k8s import core_v1_pb2


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{json.dumps(self.path)} ({self.source})" if self.source else json.dumps(self.path)


def of(volume: core_v1_pb2.Volume) -> Iterator[str]:
    """Those of a volume; of none but those whose files are listed."""
    source = volume.volumeSource
    if source.HasField("configMap"):
        told = f'ConfigMap "{source.configMap.localObjectReference.name}"'
        yield from _told(volume, told, _overlapping(_File(item.path) for item in source.configMap.items))
    elif source.HasField("secret"):
        told = f'Secret "{source.secret.secretName}"'
        yield from _told(volume, told, _overlapping(_File(item.path) for item in source.secret.items))
    elif source.HasField("downwardAPI"):
        yield from _told(volume, "DownwardAPI", _overlapping(_File(item.path) for item in source.downwardAPI.items))
    elif source.HasField("projected"):
        files: list[_File] = []
        for one in source.projected.sources:
            if not one.ListFields():
                yield f'volume "{volume.name}" (Projected) has no sources provided'
            files += _projected(one)
        yield from _told(volume, "Projected", _overlapping(files))


def _told(volume: core_v1_pb2.Volume, kind: str, found: Iterable[str]) -> Iterator[str]:
    return (f'volume "{volume.name}" ({kind}): overlapping paths: {one}' for one in found)


def _projected(source: core_v1_pb2.VolumeProjection) -> list[_File]:
    if source.configMap.items:
        told = f'ConfigMap "{source.configMap.localObjectReference.name}"'
        return [_File(item.path, told) for item in source.configMap.items]
    if source.secret.items:
        told = f'Secret "{source.secret.localObjectReference.name}"'
        return [_File(item.path, told) for item in source.secret.items]
    if source.downwardAPI.items:
        return [_File(item.path, "DownwardAPI") for item in source.downwardAPI.items]
    if source.HasField("serviceAccountToken"):
        return [_File(source.serviceAccountToken.path, "ServiceAccountToken")]
    if source.HasField("clusterTrustBundle"):
        bundle = source.clusterTrustBundle
        name = bundle.name if bundle.HasField("name") else bundle.signerName
        return [_File(bundle.path, f'ClusterTrustBundle "{name}"')]
    certificate = source.podCertificate
    parts = (
        (certificate.certificateChainPath, "PodCertificate chain"),
        (certificate.keyPath, "PodCertificate key"),
        (certificate.credentialBundlePath, "PodCertificate credential bundle"),
    )
    return [_File(path, told) for path, told in parts if path]


def _overlapping(files: Iterable[_File]) -> Iterator[str]:
    """Each with those before it that have its path, or a path above or below it."""
    before: list[_File] = []
    for file in files:
        stripped = _File(file.path.rstrip("/"), file.source)
        if stripped.path:
            for other in before:
                if other.path and _is_below(stripped.path, other.path):
                    yield f"{stripped} with {other}"
        before.append(stripped)


def _is_below(path: str, other: str) -> bool:
    one, two = f"{path}/", f"{other}/"
    return one.startswith(two) or two.startswith(one)
