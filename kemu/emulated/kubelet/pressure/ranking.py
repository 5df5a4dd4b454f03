"""In which order pods are evicted from a node under pressure.

Mirrors ``pkg/kubelet/eviction`` (``rankMemoryPressure``, ``rankPIDPressure``, ``rankDiskPressureFunc``). There are two
other orders to compare it with (``evictionRanking`` in the ``policy`` of a node), for memory and disk. Processes and
inodes cannot be requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.usage import stats
from kemu.emulated.objects.amounts import quantities, requests
from kemu.messages.k8s import core_v1_pb2

MEMORY, EPHEMERAL_STORAGE, INODES, PIDS = "memory", "ephemeral-storage", "inodes", "pids"

RESOURCE_OF = {
    thresholds.MEMORY: MEMORY,
    thresholds.ALLOCATABLE_MEMORY: MEMORY,
    thresholds.NODEFS: EPHEMERAL_STORAGE,
    thresholds.IMAGEFS: EPHEMERAL_STORAGE,
    thresholds.CONTAINERFS: EPHEMERAL_STORAGE,
    thresholds.NODEFS_INODES: INODES,
    thresholds.IMAGEFS_INODES: INODES,
    thresholds.CONTAINERFS_INODES: INODES,
    thresholds.PIDS: PIDS,
}
"""What runs short when a signal is met."""

Stats = Mapping[str, stats.PodStats]
"""By uid of the pod."""

CURRENT, PERCENTAGE, PRIORITY_FIRST = "current", "percentage", "priority-first"
"""Today's order: pods that exceed their request come first, then those of low priority, then those that exceed it by
most bytes. With PERCENTAGE the share of the request that a pod uses takes the place of the bytes. PRIORITY_FIRST is the
order of the pod preemption design: "when pods with the same priority are considered for eviction, the one with the
highest percentage of usage over requests is the one that is evicted first"."""

_Key = tuple[int, ...]
_WRITABLE, _LOGS, _VOLUMES = "writable layers", "logs", "local volumes"
_UNKNOWN, _EXCEEDS, _WITHIN = range(3)
_MILLION = 1_000_000


def rank(
    pods: Iterable[core_v1_pb2.Pod], measured: Stats, signal: str, layout: thresholds.Layout, order: str = CURRENT
) -> list[core_v1_pb2.Pod]:
    """First the one to be evicted first; pods that compare equal stay in their order."""
    return sorted(pods, key=_key_of(measured, signal, layout, order))


def _key_of(measured: Stats, signal: str, layout: thresholds.Layout, order: str) -> Callable[[Any], _Key]:
    resource = RESOURCE_OF[signal]
    if resource == PIDS:
        return lambda pod: _pid_key(pod, measured.get(pod.metadata.uid))
    if resource == MEMORY:
        return lambda pod: _memory_key(pod, measured.get(pod.metadata.uid), order)
    parts = _measured_parts(signal, layout)
    return lambda pod: _disk_key(pod, measured.get(pod.metadata.uid), parts, resource, order)


def _memory_key(pod: core_v1_pb2.Pod, usage: stats.PodStats | None, order: str) -> _Key:
    if usage is None:
        return _UNKNOWN, pod.spec.priority, 0
    used = (usage.working_set_bytes or 0) * quantities.NANO
    request = requests.ranking_request_nano(pod, requests.MEMORY)
    return _key(pod, used, request, used > request, order)


def _key(pod: core_v1_pb2.Pod, used: int, request: int, exceeds: bool, order: str) -> _Key:
    group = _EXCEEDS if exceeds else _WITHIN
    if order == CURRENT:
        return group, pod.spec.priority, request - used
    # Any use of what was not requested is more than any percentage.
    share = (1, -(used * _MILLION // request)) if request else (0, -used)
    if order == PERCENTAGE:
        return group, pod.spec.priority, *share
    return _EXCEEDS, pod.spec.priority, *share


def _pid_key(pod: core_v1_pb2.Pod, usage: stats.PodStats | None) -> _Key:
    if usage is None:
        return pod.spec.priority, _UNKNOWN, 0
    return pod.spec.priority, _EXCEEDS, -(usage.processes or 0)


def _disk_key(
    pod: core_v1_pb2.Pod, usage: stats.PodStats | None, parts: tuple[str, ...], resource: str, order: str
) -> _Key:
    if usage is None:
        return _UNKNOWN, pod.spec.priority, 0
    used = _disk_usage(pod, usage, parts, resource) * quantities.NANO
    request = requests.ranking_request_nano(pod, requests.EPHEMERAL_STORAGE)
    # Inodes cannot be requested; yet the request of bytes is what the real kubelet subtracts from their number.
    exceeds = used > (request if resource == EPHEMERAL_STORAGE else 0)
    return _key(pod, used, request, exceeds, order if resource == EPHEMERAL_STORAGE else CURRENT)


def _measured_parts(signal: str, layout: thresholds.Layout) -> tuple[str, ...]:
    """What lies on the file system of the signal."""
    is_imagefs = signal in (thresholds.IMAGEFS, thresholds.IMAGEFS_INODES)
    if layout.split:
        return () if is_imagefs else (_WRITABLE, _LOGS, _VOLUMES)
    if not layout.dedicated_imagefs:
        return _WRITABLE, _LOGS, _VOLUMES
    is_nodefs = signal in (thresholds.NODEFS, thresholds.NODEFS_INODES)
    return (_LOGS, _VOLUMES) if is_nodefs else (_WRITABLE,)


def _disk_usage(pod: core_v1_pb2.Pod, usage: stats.PodStats, parts: tuple[str, ...], resource: str) -> int:
    """In bytes or inodes."""
    disks: list[stats.Disk | None] = []
    for container in usage.containers:
        if _WRITABLE in parts:
            disks.append(container.rootfs)
        if _LOGS in parts:
            disks.append(container.logs)
    if _VOLUMES in parts:
        first = dict(reversed(usage.volumes))
        disks += [first.get(volume.name) for volume in pod.spec.volumes if is_local(volume)]
    used = (
        None if disk is None else disk.used_bytes if resource == EPHEMERAL_STORAGE else disk.inodes_used
        for disk in disks
    )
    return sum(amount or 0 for amount in used)


def is_local(volume: core_v1_pb2.Volume) -> bool:
    """Whether a volume takes room on the node's disk."""
    source = volume.volumeSource
    if source.HasField("emptyDir"):
        return not source.emptyDir.medium
    return any(source.HasField(kind) for kind in ("hostPath", "configMap", "gitRepo"))
