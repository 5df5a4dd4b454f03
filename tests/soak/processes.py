"""The processes of one run and what they use: memory, ports, shared memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from kemu.runtime.ray.processes import psutil as find_psutil

psutil = find_psutil()
DRIVER = "driver"
"""It keeps its events in a file, too, and is not attacked."""
SHARED_MEMORY = "/dev/shm/"
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """From now on a process whose parent dies is a child of this one, however deep below it was: none gets lost."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def below(apart: Container[int]) -> list[Any]:
    """All processes that this one has started, directly or not, but for those ``apart``; not zombies."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.pid not in apart and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def cells(folder: Path) -> dict[str, int]:
    """The pid of the present process of each cell, by its name: as the files say in which they keep their events."""
    latest: dict[str, tuple[int, int]] = {}
    for path in (folder / "cells" / "logs").glob("*.segment"):
        name, pid, began = path.stem.rsplit("-", 2)
        if name != DRIVER:
            latest[name] = max(latest.get(name, (0, 0)), (int(began), int(pid)))
    # A pid of one that died may be somebody else's by now.
    mine = {process.pid for process in below(())}
    return {name: pid for name, (_, pid) in sorted(latest.items()) if pid in mine}


def own_memory_bytes(pid: int) -> int | None:
    """Memory that is not backed by a file: event segments are files. None: it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    kib = next((line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")), None)
    return int(kib) << 10 if kib is not None else None


def _cpu_s(pid: int) -> float | None:
    """None: it has ended."""
    try:
        used = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return float(used.user + used.system)


class Traces:
    """What the processes of a run have used so far, to look for when they are gone."""

    def __init__(self, apart: Container[int]) -> None:
        """``apart``: processes of the soak itself."""
        self._apart = apart
        self._shared: dict[str, None] = {}
        self._memory: dict[str, dict[int, list[tuple[float, float, int]]]] = {}
        """By process name and pid: when, how many seconds of CPU it had taken, and how many bytes it had."""

    def look(self, now_s: float, names: Mapping[str, int]) -> None:
        """``names``: of processes whose memory counts, and their pids."""
        for process in below(self._apart):
            with contextlib.suppress(psutil.Error, OSError):
                for mapped in process.memory_maps():
                    if mapped.path.startswith(SHARED_MEMORY):
                        self._shared[mapped.path.removesuffix(" (deleted)")] = None
        for name, pid in names.items():
            memory, cpu_s = own_memory_bytes(pid), _cpu_s(pid)
            if memory is not None and cpu_s is not None:
                self._memory.setdefault(name, {}).setdefault(pid, []).append((now_s, cpu_s, memory))

    def left_behind(self) -> list[str]:
        """What of it is still there."""
        processes = [f"process {process.pid}: {' '.join(process.cmdline())[:80]}" for process in below(self._apart)]
        shared = [f"shared memory {path}" for path in self._shared if os.path.exists(path)]
        pids = {process.pid for process in below(self._apart)}
        listening = [found for found in psutil.net_connections("tcp") if found.status == psutil.CONN_LISTEN]
        ports = [f"port {found.laddr.port}" for found in listening if found.pid in pids]
        return processes + ports + shared

    def growth(self, warm_s: float, warm_cpu_s: float) -> dict[str, float]:
        """MiB a minute by name: the slope within each life of a process, over all of its lives together. Each counts
        from ``warm_s`` after its beginning on, once it has taken ``warm_cpu_s`` of CPU: on a busy machine caches fill
        slowly. Without those that were never observed for ``warm_s`` then."""
        found = {}
        for name, lives in self._memory.items():
            above = below = longest = 0.0
            for samples in lives.values():
                began_s = samples[0][0]
                kept = [
                    (when, memory)
                    for when, cpu_s, memory in samples
                    if when - began_s >= warm_s and cpu_s >= warm_cpu_s
                ]
                if len(kept) < 3:
                    continue
                longest = max(longest, kept[-1][0] - kept[0][0])
                mean_s = sum(when for when, _ in kept) / len(kept)
                mean = sum(memory for _, memory in kept) / len(kept)
                above += sum((when - mean_s) * (memory - mean) for when, memory in kept)
                below += sum((when - mean_s) ** 2 for when, _ in kept)
            if longest >= warm_s:
                found[name] = above / below * 60 / (1 << 20)
        return found

    def most_bytes(self) -> dict[str, int]:
        return {
            name: max(memory for samples in lives.values() for *_, memory in samples)
            for name, lives in self._memory.items()
        }
