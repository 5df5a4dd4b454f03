"""Backups of the disks of actors, for the fault ``restore``.

Role: beside ``runtime``, which takes one when the fault begins and puts it in place when it ends.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kemu.runtime.host import files

ATTEMPTS = 10
"""A store that compacts its journal removes files while they are copied."""


class Backups:
    """Each fault has those of its own; all lie on the driver's machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._taken: dict[str, dict[str, Path]] = {}
        """By fault and actor."""

    def take(self, fault: str, names: Sequence[str]) -> None:
        """Take backups of actors that may be writing: as a disk would be found after a crash at this time."""
        taken = self._taken[fault] = {}
        for name in names:
            taken[name] = _copy(files.directory_of(self._directory, name))

    def are_of(self, fault: str) -> bool:
        return fault in self._taken

    def put_back(self, fault: str) -> list[str]:
        """The actors must not be running. Returns them."""
        taken = self._taken.pop(fault)
        for name, backup in taken.items():
            directory = files.directory_of(self._directory, name)
            shutil.rmtree(directory, ignore_errors=True)
            shutil.move(backup, directory)
        return list(taken)

    def end(self) -> None:
        """Remove those that were not put back."""
        for taken in self._taken.values():
            for backup in taken.values():
                shutil.rmtree(backup, ignore_errors=True)
        self._taken.clear()


def _copy(directory: Path) -> Path:
    """The files that there are now, with what has been appended to them."""
    backup = Path(tempfile.mkdtemp(prefix="kemu-backup-"))
    for attempt in range(1, ATTEMPTS + 1):
        try:
            names = [path.name for path in directory.iterdir() if path.is_file() and not path.name.startswith(".")]
            for name in sorted(names):
                shutil.copyfile(directory / name, backup / name)
        except FileNotFoundError:
            for path in backup.iterdir():
                path.unlink()
            if attempt == ATTEMPTS:
                raise
        else:
            break
    return backup
