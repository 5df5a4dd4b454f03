"""What a kubelet notes on its disk for its next start, as JSON with a checksum: disks rot."""

from __future__ import annotations

import json
import zlib
from typing import Any

from kemu.runtime.env import Disk

_SUM = 8
"""Hexadecimal digits of the CRC-32 at the end."""


def read(disk: Disk, name: str) -> Any:  # noqa: ANN401  # JSON
    """None: nothing was noted. Raises ValueError where the note has rotted."""
    if name not in disk.list():
        return None
    data = disk.read(name)
    text = data[:-_SUM]
    if _sum(text) != data[-_SUM:]:
        raise ValueError(f"{name} has rotted")
    return json.loads(text)


def read_if_sound(disk: Disk, name: str) -> Any:  # noqa: ANN401  # JSON
    """The same; None also where it has rotted."""
    try:
        return read(disk, name)
    except ValueError:
        return None


def write(disk: Disk, name: str, data: object, *, durably: bool = True) -> None:
    """Raises OSError where the disk is full, or fails."""
    text = json.dumps(data, separators=(",", ":")).encode()
    disk.write(name, text + _sum(text), durably=durably)


def _sum(text: bytes) -> bytes:
    return f"{zlib.crc32(text):0{_SUM}x}".encode()
