"""The faults of one actor's disk that are in force, as the disks of all runtimes ask for them.

Role: held by ``sim.disks`` and ``ray.cell.files`` while there is such a fault, and only then.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Mapping
from typing import NoReturn

BLOCK_BYTES = 4096
"""What a file system allocates at once."""
SECTOR_BYTES = 512
"""What a drive writes, and loses, at once."""

MID_WRITE = "mid-write"
"""The step at which ``tornWrite`` crashes an actor."""

Strike = Callable[[str], None]
"""Told the id of a fault that has just hit."""


class DiskFaults:
    """The ids of the faults in force, by kind. The disk calls a method here before each operation."""

    def __init__(
        self, strike: Strike, tear: Callable[[], NoReturn], may_tear: Callable[[], bool] = lambda: True
    ) -> None:
        """``tear`` crashes the actor in the middle of a write, and raises; ``may_tear``: whether it can do so now."""
        self._strike = strike
        self._tear = tear
        self._may_tear = may_tear
        self.full: dict[str, None] = {}
        self.failing: dict[str, None] = {}
        self.slow: dict[str, Callable[[], float]] = {}
        """And what draws the seconds that an fsync takes."""
        self.torn: dict[str, random.Random] = {}
        """And what chooses how much of the write is there."""
        self.renames: dict[str, None] = {}

    @property
    def any(self) -> bool:
        return bool(self.full or self.failing or self.slow or self.torn or self.renames)

    def end(self, fault: str) -> None:
        for ids in (self.full, self.failing, self.slow, self.torn, self.renames):
            ids.pop(fault, None)

    def before_append(self, size: int, data: bytes, append: Callable[[bytes], None]) -> None:
        """``size``: of the file; ``append`` appends without faults. Raises OSError, or crashes the actor."""
        for fault, stream in list(self.torn.items()) if self._may_tear() else ():
            del self.torn[fault]
            append(data[: 1 + stream.randrange(max(1, len(data) - 1))])
            self._strike(fault)
            self._tear()
        for fault in self.full:
            self._strike(fault)
            # The last block of the file is there, and what fits into it is written before the call fails.
            room = -size % BLOCK_BYTES
            if room < len(data):
                append(data[:room])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def before_write(self) -> None:
        """Before a whole file is written aside. Raises OSError, or crashes the actor; the file under that name is not
        touched."""
        for fault in list(self.torn) if self._may_tear() else ():
            del self.torn[fault]
            self._strike(fault)
            self._tear()
        for fault in self.full:
            self._strike(fault)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.before_fsync()

    def before_fsync(self) -> None:
        """Raises OSError."""
        for fault in self.failing:
            self._strike(fault)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def fsync_s(self) -> float | None:
        """How long an fsync takes; None: as usual."""
        seconds = None
        for fault, draw in self.slow.items():
            self._strike(fault)
            seconds = max(seconds or 0.0, draw())
        return seconds

    def loses_renames(self) -> bool:
        for fault in self.renames:
            self._strike(fault)
        return bool(self.renames)


def rotten(content: bytes, stream: random.Random) -> bytes:
    """With one bit flipped, somewhere; ``content`` must not be empty."""
    changed = bytearray(content)
    changed[stream.randrange(len(content))] ^= 1 << stream.randrange(8)
    return bytes(changed)


def without_sectors(content: bytes, count: int, stream: random.Random) -> bytes:
    """With that many sectors, one after the other, of zeros, from somewhere on."""
    first = stream.randrange(-(-len(content) // SECTOR_BYTES)) * SECTOR_BYTES
    last = min(len(content), first + count * SECTOR_BYTES)
    return content[:first] + bytes(last - first) + content[last:]


def victim_file(sizes: Mapping[str, int], stream: random.Random) -> str | None:
    """Which file a fault of the medium hits: the larger, the more often. None: there is none with content."""
    names = [name for name, size in sizes.items() if size]
    return stream.choices(names, [sizes[name] for name in names])[0] if names else None
