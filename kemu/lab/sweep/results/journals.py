"""The journal of a sweep: the cells that are over, in the order in which they ended.

A file of frames as run logs have them: a header, then one frame for each cell. A sweep that was stopped, or whose
process died, goes on from there: what the journal holds is not run again. The last frame may be half of one: it is cut
off, and its cell runs again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgpack

import kemu
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError
from kemu.lab.sweep.cells import Cell, CellRecord, CellRows
from kemu.runtime.runlog import folders, frames

MAGIC = b"kemu-sweep/1\n"

Key = tuple[int, int]
"""A cell: index of its variant, and seed."""


class OtherSweep(KemuError):
    """The journal is of another sweep, or of another version of kemu."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(
            f"{folder} holds another sweep: {why}; nothing of it was changed. "
            "Choose another folder with --out, or replace it with --force"
        )
        self.why = why


class Journal:
    """Journal of one folder; no other process may write it meanwhile."""

    def __init__(self, folder: Path, identity: Mapping[str, Any], begun: Mapping[str, str] | None = None) -> None:
        """``identity``: of the experiment; ``begun``: what a new journal remembers of its sweep besides. Raises
        KemuError where the folder holds a sweep of another one, or another process is at work there. A journal that is
        refused stays as it is."""
        self.path = folder / folders.CELLS_FILE
        self._places: dict[Key, int] = {}
        """Where the frame of each cell begins."""
        folder.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = self.path.open("a+b")
        try:
            self._lock()
            wanted = {"kemu": kemu.__version__, **identity}
            header = {**wanted, "begun": dict(begun or {})}
            if os.fstat(self._file.fileno()).st_size:
                self._read(wanted, header)
            else:
                self._write(MAGIC + frames.framed(_pack(header)))
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise KemuError(f"{self.path.parent}: another kemu sweep is at work there") from None

    def _read(self, wanted: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """``new``: the header, if there is none yet."""
        file = self._file
        file.seek(0)
        begin = file.read(len(MAGIC))
        if begin != MAGIC:
            if MAGIC.startswith(begin):
                self._begin_anew(new)  # its process died at once
                return
            raise KemuError(f"{self.path}: not the journal of a sweep, or one of another version of kemu")
        header = frames.read_frame(file)
        if header is None:
            self._begin_anew(new)
            return
        self._compare(msgpack.unpackb(header, strict_map_key=False), wanted)
        end = file.tell()
        for key, place in _frames(file):
            self._places.setdefault(key, place)
            end = file.tell()
        file.truncate(end)

    def _begin_anew(self, header: Mapping[str, Any]) -> None:
        self._file.truncate(0)
        self._write(MAGIC + frames.framed(_pack(header)))

    def _compare(self, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        wanted = msgpack.unpackb(_pack(wanted), strict_map_key=False)
        differs = [key for key in wanted if found.get(key) != wanted[key]]
        if differs:
            told = " and ".join(_difference(key, found.get(key), wanted[key]) for key in differs)
            raise OtherSweep(self.path.parent, told)

    def append(self, record: CellRecord) -> None:
        """Raises OSError where the disk is full."""
        key = record.cell.index, record.cell.seed
        assert key not in self._places, "a cell is run once"
        place = self._file.seek(0, os.SEEK_END)
        self._write(frames.framed(_packed(record)))
        self._places[key] = place

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()

    def __contains__(self, key: Key) -> bool:
        return key in self._places

    def records(self, keys: Iterator[Key] | None = None) -> Iterator[CellRecord]:
        """Records of all its cells, or of these, in the order of variants and seeds."""
        for key in sorted(self._places if keys is None else keys):
            self._file.seek(self._places[key])
            payload = frames.read_frame(self._file)
            assert payload is not None, "it was read or written before"
            yield _unpacked(payload)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def keys_in(folder: Path) -> list[Key]:
    """Keys of the cells that are over, in the order in which they ended; also while another process is at work."""
    try:
        with (folder / folders.CELLS_FILE).open("rb") as file:
            file.seek(len(MAGIC))
            return [key for key, _ in _frames(file)] if frames.read_frame(file) is not None else []
    except FileNotFoundError:
        return []


def begun_in(folder: Path) -> Mapping[str, str]:
    """What the journal remembers of how its sweep was begun; empty where it has no header."""
    with (folder / folders.CELLS_FILE).open("rb") as file:
        file.seek(len(MAGIC))
        header = frames.read_frame(file)
    found: Mapping[str, str] = {} if header is None else msgpack.unpackb(header, strict_map_key=False).get("begun", {})
    return found


def _frames(file: BinaryIO) -> Iterator[tuple[Key, int]]:
    """Each cell that is complete, and where its frame begins."""
    while True:
        place = file.tell()
        payload = frames.read_frame(file)
        if payload is None:
            return
        yield _key(payload), place


def _difference(key: str, found: Json, wanted: Json) -> str:
    if key == "scenario":
        return "its scenario differs"
    if key == "tables":
        return "its rows were kept by another version of kemu"
    shown, now = (json.dumps(each, ensure_ascii=False) for each in (found, wanted))
    return f"its {key} differs" if len(shown) + len(now) > 120 else f"its {key} is {shown}, not {now}"


def _pack(data: object) -> bytes:
    packed: bytes = msgpack.packb(data, use_bin_type=True)
    return packed


def _packed(record: CellRecord) -> bytes:
    cell, rows = record.cell, record.rows
    kept = None if rows is None else [dict(rows.run), rows.tables]
    used = [record.seconds, record.cpu_s, record.peak_bytes]
    return _pack([cell.index, cell.seed, dict(cell.variant), record.status, record.detail, used, kept])


def _unpacked(payload: bytes) -> CellRecord:
    index, seed, variant, status, detail, used, kept = msgpack.unpackb(payload, strict_map_key=False)
    rows = None if kept is None else CellRows(*kept)
    # Until memory was measured, there were only the seconds.
    return CellRecord(Cell(variant, index, seed), status, detail, rows, *(used if isinstance(used, list) else [used]))


def _key(payload: bytes) -> Key:
    unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(payload) + 1)
    unpacker.feed(payload)
    unpacker.read_array_header()
    return unpacker.unpack(), unpacker.unpack()
