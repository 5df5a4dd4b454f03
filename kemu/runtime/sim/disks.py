"""Disks in memory, and what a crash does to them. Implements ``env.Disk``; ``ray.cell.files`` has real files.

A crash keeps everything that was fsynced. Of what was appended after that, the seed decides how much survives: nothing,
all, a part from the front, torn at any byte, or all but some sectors of the last write, because drives write sectors in
any order. A file that was never fsynced may be missing altogether. Truncating, renaming and removing are
durable at once, unless a fault says otherwise (``kemu.runtime.faults.disks``).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import zstandard

from kemu.runtime import file_names
from kemu.runtime.faults.disks import SECTOR_BYTES, DiskFaults, rotten, victim_file, without_sectors

PACKED_BYTES = 1 << 16
"""Of a file: as much is compressed at once, or more. Journals of large clusters have gigabytes, and are read after
crashes alone."""
_MOST_PACKED_BYTES = 1 << 20
_PACK = zstandard.ZstdCompressor(level=1).compress
_UNPACK = zstandard.ZstdDecompressor().decompress


class _File:
    __slots__ = ("_packed", "durable", "last", "lost", "packed_bytes", "synced", "tail")

    def __init__(self, content: bytes = b"", synced: int = 0, durable: bool = False) -> None:
        self._packed: list[bytes] = []
        """The front of the content, compressed: what survives a crash, and nobody has looked at lately."""
        self.packed_bytes = 0
        """How many bytes that is."""
        self.tail = bytearray(content)
        """The rest of the content."""
        self.synced = synced
        """How many bytes survive a crash, from the front."""
        self.durable = durable
        """The file itself survives."""
        self.last = 0
        """Where the last append began."""
        self.lost: list[tuple[int, int]] = []
        """From where to where a failed fsync has dropped what was to be written: no later one writes it."""

    @property
    def size(self) -> int:
        return self.packed_bytes + len(self.tail)

    @property
    def content(self) -> bytearray:
        """All of it, to be changed."""
        if self._packed:
            self.tail = bytearray(self.read())
            self._packed.clear()
            self.packed_bytes = 0
        return self.tail

    def read(self) -> bytes:
        return b"".join((*map(_UNPACK, self._packed), self.tail))

    def pack(self) -> None:
        """Compress what survives a crash, where that is much."""
        while (size := min(self.synced, self.size) - self.packed_bytes) >= PACKED_BYTES:
            size = min(size, _MOST_PACKED_BYTES)
            # A copy: what the compressor returns takes as much memory as the worst case would.
            self._packed.append(bytes(memoryview(_PACK(self.tail[:size]))))
            self.packed_bytes += size
            del self.tail[:size]

    def append(self, data: bytes) -> None:
        """A part of a write, which the medium has."""
        self.tail += data
        self.synced = self.size
        self.durable = True


class MemoryDisk:
    """The disk of one incarnation of an actor; ``crash()`` makes that of the next."""

    __slots__ = ("_files", "_gone", "_undo", "faults", "sleep", "usual_s")

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._gone = False
        self._undo: list[tuple[str, _File | None]] = []
        """Renames and removals that a crash may take back: names, and the files that they had, oldest first."""
        self.usual_s: Callable[[], float] | None = None
        """Draws how long an fsync takes; None: no time."""
        self.sleep: Callable[[float], Awaitable[None]] | None = None
        """By the clock of the actor."""
        self.faults: DiskFaults | None = None
        """Those in force, if there are any."""

    def list(self) -> list[str]:
        return sorted(self._open())

    def read(self, name: str) -> bytes:
        return self._file(name).read()

    def append(self, name: str, data: bytes) -> None:
        file = self._files.get(name)
        if file is None:
            file = self._open()[file_names.check(name)] = _File()
        if self.faults is not None:
            self.faults.before_append(file.size, data, file.append)
        file.last = file.packed_bytes + len(file.tail)
        file.tail += data

    def write(self, name: str, data: bytes, *, durably: bool = True) -> None:
        files = self._open()
        file_names.check(name)
        if self.faults is not None:
            self.faults.before_write()
            if self.faults.loses_renames():
                self._undo.append((name, files.get(name)))
        file = files[name] = _File(data, len(data), True)
        file.pack()

    def truncate(self, name: str, size: int) -> None:
        file = self._file(name)
        if not 0 <= size <= file.size:
            raise ValueError(f"{name}: cannot truncate {file.size} bytes to {size}")
        del file.content[size:]
        file.synced = min(file.synced, size)
        file.lost = [(first, min(last, size)) for first, last in file.lost if first < size]

    def fsync(self, name: str) -> None:
        file = self._files.get(name) or self._file(name)
        if self.faults is not None:
            self._check_fsync(file)
        file.synced = file.packed_bytes + len(file.tail)
        file.durable = True
        if len(file.tail) >= PACKED_BYTES:
            file.pack()

    async def sync(self, name: str) -> None:
        seconds = None if self.faults is None else self.faults.fsync_s()
        if seconds is None and self.usual_s is not None:
            seconds = self.usual_s()
        if not seconds or self.sleep is None:
            self.fsync(name)
            return
        file = self._files.get(name) or self._file(name)
        size = file.packed_bytes + len(file.tail)
        await self.sleep(seconds)
        if self._gone:
            self._open()
        if self.faults is not None:
            self._check_fsync(file)
        file.synced = max(file.synced, min(size, file.packed_bytes + len(file.tail)))
        file.durable = True
        file.pack()

    def _check_fsync(self, file: _File) -> None:
        if self.faults is not None:
            try:
                self.faults.before_fsync()
            except OSError:
                # As Linux does: the pages count as clean, so that another fsync succeeds and writes nothing.
                if file.synced < file.size:
                    file.lost.append((file.synced, file.size))
                raise

    def remove(self, name: str) -> None:
        file = self._file(name)
        if self.faults is not None and self.faults.loses_renames():
            self._undo.append((name, file))
        del self._files[name]

    # What the runtime does to it

    def settle(self) -> None:
        """Renames and removals are durable from now on."""
        self._undo.clear()

    def rot(self, stream: random.Random) -> bool:
        """Flip a bit of what is durable. Returns whether there was one."""
        return self._damage(stream, lambda durable: rotten(durable, stream))

    def lose_sectors(self, count: int, stream: random.Random) -> bool:
        """Zero sectors of what is durable. Returns whether there was something."""
        return self._damage(stream, lambda durable: without_sectors(durable, count, stream))

    def _damage(self, stream: random.Random, damage: Callable[[bytes], bytes]) -> bool:
        name = victim_file({name: self._files[name].synced for name in self.list()}, stream)
        if name is None:
            return False
        file = self._files[name]
        file.content[: file.synced] = damage(bytes(file.content[: file.synced]))
        return True

    def backup(self) -> MemoryDisk:
        """A copy of what can be read, durable in all its parts."""
        copy = MemoryDisk()
        copy._files = {name: _File(self.read(name), self._files[name].size, True) for name in self.list()}
        return copy

    def crash(self, stream: random.Random) -> MemoryDisk:
        """The disk as it is found after a crash. This one can no longer be used."""
        survivor = MemoryDisk()
        survivor.faults = self.faults
        self._take_back(stream)
        for name in self.list():
            file = self._files[name]
            for first, last in file.lost:
                if last <= file.synced:
                    file.content[first:last] = bytes(last - first)
                else:
                    del file.content[first:]
            file.lost.clear()
            unsynced = file.size - file.synced
            if unsynced or not file.durable:
                fate = stream.choice(("lost", "kept", "torn", "holes"))
                if fate == "lost" and not file.durable:
                    continue
                if fate == "holes":
                    self._punch(file, stream)
                else:
                    keep = {"lost": 0, "kept": unsynced, "torn": stream.randint(0, unsynced)}[fate]
                    del file.content[file.synced + keep :]
            file.synced = file.size
            file.durable = True
            survivor._files[name] = file
        self.close()
        return survivor

    def _punch(self, file: _File, stream: random.Random) -> None:
        """Some sectors of the last write were never written."""
        content = file.content
        start = max(file.synced, file.last)
        for first in range(start - start % SECTOR_BYTES, len(content), SECTOR_BYTES):
            if stream.random() < 0.5:
                begin, end = max(first, start), min(first + SECTOR_BYTES, len(content))
                content[begin:end] = bytes(end - begin)

    def _take_back(self, stream: random.Random) -> None:
        if self._undo:
            kept = stream.randrange(len(self._undo))
            for name, file in reversed(self._undo[kept:]):
                if file is None:
                    self._files.pop(name, None)
                else:
                    self._files[name] = file
            self._undo.clear()

    def hand_over(self) -> MemoryDisk:
        """The disk for the next incarnation after an orderly stop: nothing is lost."""
        survivor = MemoryDisk()
        survivor.faults = self.faults
        survivor._undo = self._undo
        survivor._files = self._open()
        self.close()
        return survivor

    def close(self) -> None:
        self._files = {}
        self._gone = True

    def _open(self) -> dict[str, _File]:
        if self._gone:
            raise asyncio.CancelledError("the actor of this disk is no more")
        return self._files

    def _file(self, name: str) -> _File:
        file = self._open().get(name)
        if file is None:
            raise FileNotFoundError(name)
        return file
