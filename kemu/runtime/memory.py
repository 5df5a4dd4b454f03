"""Memory of this machine and of its processes, as Linux tells it. What it does not tell is 0."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_RESET_PEAK = "5"
"""To ``clear_refs``: VmHWM begins anew at what is resident now (proc(5))."""


@dataclass(frozen=True)
class Machine:
    """What this process may use: what the machine has, or less by the limit of a cgroup that it is in."""

    proc: Path = Path("/proc")
    cgroups: Path = Path("/sys/fs/cgroup")

    def total_bytes(self) -> int:
        return min([self._meminfo("MemTotal"), *(limit for limit, _ in self._limited())])

    def free_bytes(self) -> int:
        """Without swapping. File pages that a cgroup can drop are free, as they are for the whole machine."""
        return min([self._meminfo("MemAvailable"), *(max(0, limit - used) for limit, used in self._limited())])

    def kills(self) -> int:
        """How many processes the kernel has killed since it started because a cgroup had no memory left."""
        return int(_field(self.proc / "vmstat", "oom_kill"))

    def _meminfo(self, name: str) -> int:
        return int(_field(self.proc / "meminfo", f"{name}:")) * 1024

    def _limited(self) -> Iterator[tuple[int, int]]:
        """Limit and use of each cgroup around this process that has a limit."""
        for line in _text(self.proc / "self/cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                root, limit, used, droppable = self.cgroups, "memory.max", "memory.current", "inactive_file"
            elif "memory" in controllers.split(","):
                root, limit, used = self.cgroups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
                droppable = "total_inactive_file"
            else:
                continue
            folder = root / path.lstrip("/")
            # Inside a container the path is that of the host: what is mounted is the container's own cgroup.
            for each in (folder, *folder.parents):
                if each.is_relative_to(root) and (stated := _text(each / limit).strip()).isdigit():
                    in_use = int(_text(each / used) or 0) - int(_field(each / "memory.stat", droppable))
                    yield int(stated), max(0, in_use)


def resident_bytes(pid: int | str = "self") -> int:
    words = _text(Path(f"/proc/{pid}/statm")).split()
    return int(words[1]) * _PAGE_BYTES if len(words) > 1 else 0


def begin_peak() -> None:
    """From here on :func:`peak_bytes` counts. Where the kernel refuses, it counts from the start of the process."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK)


def peak_bytes() -> int:
    """The most that was resident of this process."""
    return int(_field(Path("/proc/self/status"), "VmHWM:")) * 1024


def told(size_bytes: float) -> str:
    """``3.2 GiB``, ``512 MiB``."""
    return f"{size_bytes / 2**30:.1f} GiB" if size_bytes >= 2**30 else f"{size_bytes / 2**20:.0f} MiB"


def _field(path: Path, name: str) -> str:
    """The number behind this name, ``0`` if it is not there."""
    for line in _text(path).splitlines():
        words = line.split()
        if words and words[0] == name:
            return words[1]
    return "0"


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
