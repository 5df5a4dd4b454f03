"""Disks of real files. Implement ``env.Disk``; ``sim.disks`` has those of the simulation."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO

from kemu.runtime import file_names
from kemu.runtime.faults.disks import DiskFaults, victim_file


def directory_of(root: Path, actor: str) -> Path:
    """Where an actor's disk lies below the directory of a run."""
    return root / "disks" / file_names.of_actor(actor)


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

    def write(self, name: str, data: bytes, *, durably: bool = True) -> None:
        path = self._path(name)
        self._forget(name)
        aside = self._directory / f".{name}.new"
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            if durably:
                os.fsync(file.fileno())
        os.replace(aside, path)
        if durably:
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

    async def sync(self, name: str) -> None:
        handle = self._handles.get(name)
        if handle is None:
            self.fsync(name)
        else:
            # In a thread: a disk takes milliseconds, in which the process has other things to do.
            await asyncio.get_running_loop().run_in_executor(None, os.fsync, handle.fileno())

    def remove(self, name: str) -> None:
        self._forget(name)
        self._path(name).unlink()
        self._fsync_directory()

    def close(self) -> None:
        for name in list(self._handles):
            self._forget(name)

    def _path(self, name: str) -> Path:
        return self._directory / file_names.check(name)

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


class ActorDisk(FileDisk):
    """Real files, until the actor is gone, with the faults that are in force."""

    _closed = False

    def __init__(self, directory: str | Path) -> None:
        super().__init__(directory)
        self.faults: DiskFaults | None = None
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        """By the clock of the actor."""

    def append(self, name: str, data: bytes) -> None:
        if self.faults is not None:
            path = self._path(name)
            size = path.stat().st_size if path.exists() else 0
            self.faults.before_append(size, data, lambda part: FileDisk.append(self, name, part))
        super().append(name, data)

    def write(self, name: str, data: bytes, *, durably: bool = True) -> None:
        if self.faults is not None:
            self._path(name)
            self.faults.before_write()
        super().write(name, data, durably=durably)

    def fsync(self, name: str) -> None:
        if self.faults is not None:
            self.faults.before_fsync()
        super().fsync(name)

    async def sync(self, name: str) -> None:
        if self.faults is not None:
            await self.sleep(self.faults.fsync_s() or 0.0)
            if self.faults is not None:
                self.faults.before_fsync()
        await super().sync(name)

    def damage(self, stream: random.Random, change: Callable[[bytes], bytes]) -> bool:
        """Change what is in a file that the stream chooses. Returns whether there was one."""
        sizes = {name: self._path(name).stat().st_size for name in self.list()}
        name = victim_file(sizes, stream)
        if name is None:
            return False
        with open(self._path(name), "r+b") as file:
            changed = change(file.read())
            file.seek(0)
            file.write(changed)
        return True

    def close(self) -> None:
        self._closed = True
        super().close()

    def _path(self, name: str) -> Path:
        if self._closed:
            raise asyncio.CancelledError("the actor of this disk is no more")
        return super()._path(name)
