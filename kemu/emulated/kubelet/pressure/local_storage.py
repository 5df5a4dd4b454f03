"""The limits of a pod's local storage: of emptyDir volumes and of ephemeral storage.

Mirrors ``pkg/kubelet/eviction`` (``localStorageEviction``): a pod that uses more is evicted, whatever is free.
"""

from __future__ import annotations

from dataclasses import dataclass

from kemu.emulated.kubelet.pressure import eviction_messages
from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.usage import stats, storage_limits
from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import core_v1_pb2

EMPTY_DIR_LIMIT = "emptydirfs.limit"
POD_LIMIT = "ephemeralpodfs.limit"
CONTAINER_LIMIT = "ephemeralcontainerfs.limit"


@dataclass(frozen=True, slots=True)
class Excess:
    """Which limit is exceeded, as metrics name it, and the text for the pod."""

    limit: str
    message: str


def excess(pod: core_v1_pb2.Pod, usage: stats.PodStats, layout: thresholds.Layout) -> Excess | None:
    """The first limit that a pod exceeds."""
    return _empty_dir(pod, usage) or _pod(pod, usage) or _container(pod, usage, layout)


def _empty_dir(pod: core_v1_pb2.Pod, usage: stats.PodStats) -> Excess | None:
    used = {name: disk.used_bytes or 0 for name, disk in usage.volumes}
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        if volume.name in used and source.HasField("emptyDir") and source.emptyDir.HasField("sizeLimit"):
            limit = quantities.parse(source.emptyDir.sizeLimit.string)
            if limit.nano > 0 and used[volume.name] * quantities.NANO > limit.nano:
                return Excess(EMPTY_DIR_LIMIT, eviction_messages.empty_dir(volume.name, limit))
    return None


def _pod(pod: core_v1_pb2.Pod, usage: stats.PodStats) -> Excess | None:
    limit = storage_limits.pod_limit(pod.spec)
    if limit is None or (usage.ephemeral_storage_bytes or 0) * quantities.NANO <= limit.nano:
        return None
    return Excess(POD_LIMIT, eviction_messages.pod_ephemeral_storage(limit))


def _container(pod: core_v1_pb2.Pod, usage: stats.PodStats, layout: thresholds.Layout) -> Excess | None:
    limits = {one.name: storage_limits.of(one.resources.limits) for one in pod.spec.containers}
    for container in usage.containers:
        limit = limits.get(container.name)
        if limit is None or limit.nano == 0:
            continue
        used = _bytes(container.logs)
        if not layout.dedicated_imagefs:
            used += _bytes(container.rootfs)
        if used * quantities.NANO > limit.nano:
            return Excess(CONTAINER_LIMIT, eviction_messages.container_ephemeral_storage(container.name, limit))
    return None


def _bytes(disk: stats.Disk | None) -> int:
    return 0 if disk is None else disk.used_bytes or 0
