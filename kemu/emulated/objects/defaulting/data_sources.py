"""What a claim is to be filled with: its data source (``pkg/api/persistentvolumeclaim``, KEP-1495).

A claim says it twice: ``dataSource`` names a claim or a snapshot, ``dataSourceRef`` anything.
"""

from __future__ import annotations

from kemu.messages.k8s import core_v1_pb2

CLAIM, SNAPSHOT = "PersistentVolumeClaim", "VolumeSnapshot"
SNAPSHOT_GROUP = "snapshot.storage.k8s.io"


def prepare(
    spec: core_v1_pb2.PersistentVolumeClaimSpec, old: core_v1_pb2.PersistentVolumeClaimSpec | None = None
) -> None:
    """What a user may not say is dropped, and what is said once is said twice: ``DropDisabledFields``,
    ``EnforceDataSourceBackwardsCompatibility``, ``NormalizeDataSources``. ``old``: before an update."""
    if spec.HasField("dataSourceRef") and spec.dataSourceRef.namespace and not (old and old.HasField("dataSourceRef")):
        spec.ClearField("dataSourceRef")
    had_one = old is not None and (old.HasField("dataSource") or old.HasField("dataSourceRef"))
    if not had_one and not spec.HasField("dataSourceRef") and not is_legacy(spec):
        spec.ClearField("dataSource")
    if spec.HasField("dataSource") and not spec.HasField("dataSourceRef"):
        _copy(spec.dataSource, spec.dataSourceRef)
    elif spec.HasField("dataSourceRef") and not spec.HasField("dataSource") and not spec.dataSourceRef.namespace:
        _copy(spec.dataSourceRef, spec.dataSource)


def is_legacy(spec: core_v1_pb2.PersistentVolumeClaimSpec) -> bool:
    """Whether ``dataSource`` names a claim or a snapshot."""
    source = spec.dataSource
    return spec.HasField("dataSource") and (source.kind, source.apiGroup) in ((CLAIM, ""), (SNAPSHOT, SNAPSHOT_GROUP))


def of(spec: core_v1_pb2.PersistentVolumeClaimSpec) -> core_v1_pb2.TypedObjectReference | None:
    return spec.dataSourceRef if spec.HasField("dataSourceRef") else None


def _copy(
    source: core_v1_pb2.TypedLocalObjectReference | core_v1_pb2.TypedObjectReference,
    to: core_v1_pb2.TypedLocalObjectReference | core_v1_pb2.TypedObjectReference,
) -> None:
    to.kind, to.name = source.kind, source.name
    if source.HasField("apiGroup"):
        to.apiGroup = source.apiGroup
