"""Disks in memory, and what a crash does to them. Implements ``env.Disk``; ``ray.cell.files`` has real files.

A crash keeps everything that was fsynced. Of what was appended after that, the seed decides how much survives from the
front: nothing, all, or torn at any byte. A file that was never fsynced may be missing altogether. Truncating, renaming
and removing are durable at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from kemu.runtime import file_names


class _File:
    __slots__ = ("content", "durable", "synced")

    def __init__(self) -> None:
        self.content = bytearray()
        self.synced = 0
        """How many bytes survive a crash, from the front."""
        self.durable = False
        """The file itself survives."""


class MemoryDisk:
    """The disk of one incarnation of an actor; ``crash()`` makes that of the next."""

    __slots__ = ("_files", "_gone", "pace")

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._gone = False
        self.pace: Callable[[], Awaitable[None]] | None = None
        """Waits as long as an fsync takes; None: it takes no time."""

    def list(self) -> list[str]:
        return sorted(self._open())

    def read(self, name: str) -> bytes:
        return bytes(self._file(name).content)

    def append(self, name: str, data: bytes) -> None:
        files = self._open()
        file = files.get(name)
        if file is None:
            file = files[file_names.check(name)] = _File()
        file.content += data

    def write(self, name: str, data: bytes) -> None:
        file = _File()
        file.content += data
        file.synced = len(data)
        file.durable = True
        self._open()[file_names.check(name)] = file

    def truncate(self, name: str, size: int) -> None:
        file = self._file(name)
        if not 0 <= size <= len(file.content):
            raise ValueError(f"{name}: cannot truncate {len(file.content)} bytes to {size}")
        del file.content[size:]
        file.synced = min(file.synced, size)

    def fsync(self, name: str) -> None:
        file = self._file(name)
        file.synced = len(file.content)
        file.durable = True

    async def sync(self, name: str) -> None:
        pace = self.pace
        if pace is None:
            self.fsync(name)
            return
        file = self._file(name)
        size = len(file.content)
        await pace()
        self._open()
        file.synced = max(file.synced, min(size, len(file.content)))
        file.durable = True

    def remove(self, name: str) -> None:
        self._file(name)
        del self._files[name]

    def crash(self, stream: random.Random) -> MemoryDisk:
        """The disk as it is found after a crash. This one can no longer be used."""
        survivor = MemoryDisk()
        for name in self.list():
            file = self._files[name]
            unsynced = len(file.content) - file.synced
            if unsynced or not file.durable:
                fate = stream.choice(("lost", "kept", "torn"))
                keep = {"lost": 0, "kept": unsynced, "torn": stream.randint(0, unsynced)}[fate]
                if fate == "lost" and not file.durable:
                    continue
                del file.content[file.synced + keep :]
            file.synced = len(file.content)
            file.durable = True
            survivor._files[name] = file
        self.close()
        return survivor

    def hand_over(self) -> MemoryDisk:
        """The disk for the next incarnation after an orderly stop: nothing is lost."""
        survivor = MemoryDisk()
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
