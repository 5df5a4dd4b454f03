"""The segment file in which a cell keeps its run-log events until the driver has them, and after.

An event is in the file as soon as ``append`` returns, without a system call: the file is mapped into memory, and what
a process wrote there outlives its SIGKILL (though not a crash of the machine). So the driver can read from the file
what a killed cell had not sent yet.

The file is the magic line, then frames ``length (u32 LE) | crc32 (u32 LE) | payload``, then zeros; a payload is a
msgpack ``[time_ns, actor, kind, data]`` as in the run log (docs/runs.md).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack

MAGIC = b"kemu-segment/1\n"
_FRAME = struct.Struct("<II")
_GROWTH_BYTES = 4 << 20


class Segment:
    """The writing side, in the cell."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        self._size = 0
        self._map: mmap.mmap | None = None
        self._grow(len(MAGIC))
        self._view[0 : len(MAGIC)] = MAGIC
        self._end = len(MAGIC)
        self._pack = msgpack.Packer(use_bin_type=True).pack
        self.events = 0
        # Where the last reader stopped: the next one mostly goes on there.
        self._cursor = (0, self._end)

    @property
    def _view(self) -> mmap.mmap:
        assert self._map is not None, "the segment is closed"
        return self._map

    def _grow(self, needed_bytes: int) -> None:
        size = self._size + max(_GROWTH_BYTES, needed_bytes)
        # Reserve the blocks: a full disk is then an OSError here, and not a SIGBUS at some later assignment.
        try:
            os.posix_fallocate(self._fd, self._size, size - self._size)
        except OSError as error:
            error.filename = str(self.path)
            raise
        if self._map is not None:
            self._map.close()
        self._map = mmap.mmap(self._fd, size)
        self._size = size

    def append(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        payload = self._pack((time_ns, actor, kind, data))
        start = self._end + _FRAME.size
        end = start + len(payload)
        if end > self._size:
            self._grow(end - self._size)
        view = self._view
        view[start:end] = payload
        _FRAME.pack_into(view, self._end, len(payload), zlib.crc32(payload))
        self._end = end
        self.events += 1

    def read(self, offset: int, max_bytes: int) -> list[bytes]:
        """Payloads from the ``offset``-th event on, about ``max_bytes`` of them."""
        count, position = self._cursor if self._cursor[0] <= offset else (0, len(MAGIC))
        view = self._view
        payloads: list[bytes] = []
        size = 0
        while position < self._end and size < max_bytes:
            length, _ = _FRAME.unpack_from(view, position)
            position += _FRAME.size
            if count >= offset:
                payloads.append(view[position : position + length])
                size += length
            position += length
            count += 1
        self._cursor = (count, position)
        return payloads

    def fileno(self) -> int:
        return self._fd

    def sync(self) -> None:
        """Have it on the disk, in case the machine crashes. May be called in another thread."""
        with contextlib.suppress(OSError):  # closed meanwhile; or a disk fails, of which its users tell
            os.fdatasync(self._fd)

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
            os.ftruncate(self._fd, self._end)
            os.close(self._fd)


class DamagedSegment(Exception):
    """A segment file does not hold what was written to it."""


def read_segment(path: Path, offset: int = 0) -> Iterator[bytes]:
    """The payloads of a segment file from the ``offset``-th on, up to where its writer died.

    Raises FileNotFoundError, and DamagedSegment after the last payload that is intact.
    """
    data = path.read_bytes()
    position = len(MAGIC)
    if data[:position] != MAGIC:
        raise DamagedSegment("it does not begin as a segment does")
    count = 0
    while position + _FRAME.size <= len(data):
        length, crc = _FRAME.unpack_from(data, position)
        position += _FRAME.size
        payload = data[position : position + length]
        # An event is at least a msgpack array: length 0 is the untouched end. A frame is written when its payload is
        # there, so that of a writer that died none is torn.
        if length == 0:
            break
        if len(payload) < length or zlib.crc32(payload) != crc:
            raise DamagedSegment(f"event {count} is not what was written")
        if count >= offset:
            yield payload
        position += length
        count += 1
    if count < offset:
        raise DamagedSegment(f"it ends after {count} events, of which {offset} are known already")
