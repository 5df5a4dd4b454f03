"""What a kubelet measures on its node: the numbers of the summary API (``stats/v1alpha1``), as far as evictions use
them.

:mod:`kemu.emulated.kubelet.pressure.ranking` and :mod:`kemu.emulated.kubelet.pressure.eviction` decide by these. None
stands for a number that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.objects import times
from kemu.emulated.objects.amounts import quantities

_BYTES = quantities.Format.BINARY_SI
_COUNT = quantities.Format.DECIMAL_SI


@dataclass(frozen=True, slots=True)
class Disk:
    """What something uses of a file system."""

    used_bytes: int | None = None
    inodes_used: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerStats:
    name: str
    working_set_bytes: int | None = None
    rootfs: Disk | None = None
    """The writable layer."""
    logs: Disk | None = None


@dataclass(frozen=True, slots=True)
class PodStats:
    uid: str
    working_set_bytes: int | None = None
    processes: int | None = None
    ephemeral_storage_bytes: int | None = None
    containers: tuple[ContainerStats, ...] = ()
    volumes: tuple[tuple[str, Disk], ...] = ()
    """By name."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Observation of one eviction signal. In bytes, inodes or processes."""

    available: int
    capacity: int
    time_ns: int | None = None
    """When it was measured (any origin); None: not known."""
    form: quantities.Format = _BYTES
    """How the amount is written in messages."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One look at the whole node."""

    observations: Mapping[str, Observation]
    """By signal; one whose numbers are incomplete is missing."""
    pods: Mapping[str, PodStats]
    """By uid."""


def read_summary(node: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> Summary:
    """From the JSON of the summary API."""
    read = (read_pod(pod) for pod in pods)
    return Summary(_observations(node), {one.uid: one for one in read})


def read_pod(pod: Mapping[str, Any]) -> PodStats:
    return PodStats(
        uid=(pod.get("podRef") or {}).get("uid", ""),
        # An entry without its number counts as 0 (memoryUsage), even in messages; no entry is another matter there.
        working_set_bytes=None if (memory := pod.get("memory")) is None else memory.get("workingSetBytes", 0),
        processes=_number(pod, "process_stats", "process_count"),
        ephemeral_storage_bytes=_number(pod, "ephemeral-storage", "usedBytes"),
        containers=tuple(
            ContainerStats(
                container.get("name", ""),
                _number(container, "memory", "workingSetBytes"),
                _disk(container.get("rootfs")),
                _disk(container.get("logs")),
            )
            for container in pod.get("containers") or ()
        ),
        volumes=tuple((volume.get("name", ""), _disk(volume) or Disk()) for volume in pod.get("volume") or ()),
    )


def _disk(data: Mapping[str, Any] | None) -> Disk | None:
    return None if data is None else Disk(data.get("usedBytes"), data.get("inodesUsed"))


def _number(data: Mapping[str, Any], part: str, name: str) -> int | None:
    found: int | None = (data.get(part) or {}).get(name)
    return found


def _observations(node: Mapping[str, Any]) -> dict[str, Observation]:
    found: dict[str, Observation] = {}
    _observe_memory(thresholds.MEMORY, node.get("memory"), found)
    for container in node.get("systemContainers") or ():
        if container.get("name") == "pods":
            _observe_memory(thresholds.ALLOCATABLE_MEMORY, container.get("memory"), found)
            break
    runtime = node.get("runtime") or {}
    for signal, inodes_signal, disk in (
        (thresholds.NODEFS, thresholds.NODEFS_INODES, node.get("fs")),
        (thresholds.IMAGEFS, thresholds.IMAGEFS_INODES, runtime.get("imageFs")),
        (thresholds.CONTAINERFS, thresholds.CONTAINERFS_INODES, runtime.get("containerFs")),
    ):
        if disk is not None:
            time_ns = _time_ns(disk)
            _observe(signal, disk.get("availableBytes"), disk.get("capacityBytes"), time_ns, _BYTES, found)
            _observe(inodes_signal, disk.get("inodesFree"), disk.get("inodes"), time_ns, _COUNT, found)
    limits = node.get("rlimit")
    if limits is not None:
        most, running = limits.get("maxpid"), limits.get("curproc")
        if most is not None and running is not None:
            _observe(thresholds.PIDS, most - running, most, _time_ns(limits), _COUNT, found)
    return found


def _observe_memory(signal: str, memory: Mapping[str, Any] | None, found: dict[str, Observation]) -> None:
    if memory is not None:
        available, used = memory.get("availableBytes"), memory.get("workingSetBytes")
        if available is not None and used is not None:
            _observe(signal, available, available + used, _time_ns(memory), _BYTES, found)


def _observe(
    signal: str,
    available: int | None,
    capacity: int | None,
    time_ns: int | None,
    form: quantities.Format,
    found: dict[str, Observation],
) -> None:
    if available is not None and capacity is not None:
        found[signal] = Observation(available, capacity, time_ns, form)


def _time_ns(data: Mapping[str, Any]) -> int | None:
    text = data.get("time")
    return times.parse_time(text) if text else None
