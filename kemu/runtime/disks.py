"""Disks: in memory, with what a crash does to them, and on real files.

Both implement ``env.Disk``. In memory, a crash keeps everything that was fsynced and, of what was appended since, a
part from the front that the seed decides: nothing, all, or torn at any byte. A file that was never fsynced may be
missing altogether. Truncating, renaming and removing are durable at once.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import BinaryIO


def check_name(name: str) -> str:
    """Names are flat. Raises ValueError."""
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise ValueError(f"not a file name: {name!r}")
    return name


class _File:
    __slots__ = ("content", "durable", "synced")

    def __init__(self) -> None:
        self.content = bytearray()
        self.synced = 0
        """Bytes from the front that survive a crash."""
        self.durable = False
        """The file itself survives."""


class MemoryDisk:
    """The disk of one incarnation of an actor; ``crash()`` makes that of the next."""

    __slots__ = ("_files", "_gone")

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._gone = False

    def list(self) -> list[str]:
        return sorted(self._open())

    def read(self, name: str) -> bytes:
        return bytes(self._file(name).content)

    def append(self, name: str, data: bytes) -> None:
        files = self._open()
        file = files.get(name)
        if file is None:
            file = files[check_name(name)] = _File()
        file.content += data

    def write(self, name: str, data: bytes) -> None:
        file = _File()
        file.content += data
        file.synced = len(data)
        file.durable = True
        self._open()[check_name(name)] = file

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


class FileDisk:
    """Real files in one directory, which is created."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._handles: dict[str, BinaryIO] = {}
        """Unbuffered, in append mode."""

    def list(self) -> list[str]:
        return sorted(
            entry.name for entry in os.scandir(self._directory) if entry.is_file() and not entry.name.startswith(".")
        )

    def read(self, name: str) -> bytes:
        return self._path(name).read_bytes()

    def append(self, name: str, data: bytes) -> None:
        handle = self._handles.get(name)
        if handle is None:
            path = self._path(name)
            is_new = not path.exists()
            handle = self._handles[name] = open(path, "ab", buffering=0)  # noqa: SIM115
            if is_new:
                self._fsync_directory()
        view = memoryview(data)
        while view:
            view = view[handle.write(view) :]

    def write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        self._forget(name)
        aside = self._directory / f".{name}.new"
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        self._fsync_directory()

    def truncate(self, name: str, size: int) -> None:
        path = self._path(name)
        length = path.stat().st_size
        if not 0 <= size <= length:
            raise ValueError(f"{name}: cannot truncate {length} bytes to {size}")
        os.truncate(path, size)
        self.fsync(name)

    def fsync(self, name: str) -> None:
        handle = self._handles.get(name)
        if handle is not None:
            os.fsync(handle.fileno())
            return
        descriptor = os.open(self._path(name), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, name: str) -> None:
        self._forget(name)
        self._path(name).unlink()
        self._fsync_directory()

    def close(self) -> None:
        for name in list(self._handles):
            self._forget(name)

    def _path(self, name: str) -> Path:
        return self._directory / check_name(name)

    def _forget(self, name: str) -> None:
        handle = self._handles.pop(name, None)
        if handle is not None:
            handle.close()

    def _fsync_directory(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
