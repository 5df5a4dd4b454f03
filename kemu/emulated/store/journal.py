"""The journal: every transaction is on disk before it is acknowledged, and recovered from there after a crash.

Files, in the flat directory of one actor (:class:`kemu.runtime.env.Disk`):

* ``journal-<revision>``: a segment, from that revision on. The magic line, then frames
  ``length (u32 LE) | crc32 (u32 LE) | payload``; a payload is the msgpack of a list of records, those that were
  committed together. A record is ``[revision, [key, value, key, value, …]]``, value nil for a deletion, or
  ``[revision, nil]`` for a compaction.
* ``snapshot-<revision>``: the state at a compacted revision, in frames as well: first
  ``[revision, number of entries, entries that this revision changed]``, then lists of entries
  ``[key, value, create revision, modification revision, version]``. Segments with nothing newer are then removed, so
  recovery reads no more than the store keeps as history.

**What a crash can leave.** A frame is written by one append, and with ``fsync: always`` or ``batch`` the next one only
after this one has been fsynced. New files appear whole, by rename. So a crash can only damage the last frame of the
last segment, which was not acknowledged: it is cut off. That frame may be short or, because disks write sectors in any
order, have sectors that still read as zeros. Any other damage is an error with file and offset: in an older segment, in
a snapshot, before an intact frame, and in a last frame that has all of its bytes but the wrong checksum and no sector
of zeros. Damage that shortens the last frame, or hits a last frame with a sector of zeros, cannot be told from a torn
write. With ``fsync: none`` all this holds for crashes of the process; a crash of the machine may lose acknowledged
transactions, and may leave damage that is an error.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgpack

from kemu.emulated.store.mvcc import Entry
from kemu.errors import JournalCorrupt
from kemu.runtime.env import Disk

FSYNC = ("always", "batch", "none")
SEGMENT_BYTES = 4 << 20
"""Size at which a new segment is begun, by default."""

_SEGMENT = "journal-"
_SNAPSHOT = "snapshot-"
_SEGMENT_MAGIC = b"kemu-journal/1\n"
_SNAPSHOT_MAGIC = b"kemu-snapshot/1\n"
_FRAME = struct.Struct("<II")
_SECTOR_BYTES = 512
_ENTRIES_IN_FRAME = 1_000
_PROBE = "probe"
_PROBE_BYTES = 64 << 10

Record = tuple[int, Sequence[bytes | None] | None]
"""A revision and its changes: keys and values in turn, None as the value of a deleted key. Changes None: the store
was compacted to that revision."""


class Snapshot(NamedTuple):
    revision: int
    entries: list[Entry]
    """All entries, by key."""
    changes: list[Entry]
    """What that revision did."""


class Recovery(NamedTuple):
    """The result of reading the journal."""

    snapshot: Snapshot | None
    records: list[Record]
    """Since the snapshot, in their order."""
    torn_bytes: int
    """Bytes cut off the end."""
    was_empty: bool
    """There was no journal."""


class _Segment:
    __slots__ = ("first", "name", "size")

    def __init__(self, first: int, size: int) -> None:
        self.first = first
        """Revision of the first transaction that it has, or will have."""
        self.name = f"{_SEGMENT}{first:020d}"
        self.size = size


class Journal:
    """Call ``recover`` first, then ``append``."""

    def __init__(self, disk: Disk, fsync: str = "batch", segment_bytes: int = SEGMENT_BYTES) -> None:
        """``fsync``: ``always`` and ``batch`` fsync each append, ``none`` never does."""
        if fsync not in FSYNC:
            raise ValueError(f"fsync: {fsync!r} is none of {', '.join(FSYNC)}")
        self._disk = disk
        self._fsyncs = fsync != "none"
        self._segment_bytes = segment_bytes
        self._pack = msgpack.Packer(use_bin_type=True).pack
        self._segments: list[_Segment] = []
        """Oldest first. The last one is written to."""
        self._snapshots: list[str] = []
        self.is_full = False
        """The last segment had its size after the last append: it is time to :meth:`roll`."""

    # Writing

    def append(self, records: Sequence[Record]) -> None:
        """Write one frame, which is durable after the next ``sync``. Raises OSError, and then nothing was written."""
        payload: bytes = self._pack(records)
        segment = self._segments[-1]
        try:
            self._disk.append(segment.name, _FRAME.pack(len(payload), zlib.crc32(payload)) + payload)
        except OSError:
            # Some of it may be there. Behind it nothing could be appended: damage before an intact frame is corruption.
            self._disk.truncate(segment.name, segment.size)
            raise
        segment.size += _FRAME.size + len(payload)
        self.is_full = segment.size >= self._segment_bytes

    async def sync(self) -> None:
        """When this returns, what was appended is as durable as the fsync policy says. Raises OSError."""
        if self._fsyncs:
            await self._disk.sync(self._segments[-1].name)

    async def roll(self, next_revision: int) -> None:
        """Begin a new segment if the last one has its size. Call it when everything appended has been synced.

        ``next_revision``: of the transaction that will be appended next. Raises OSError.
        """
        segment = self._segments[-1]
        if segment.size < self._segment_bytes or next_revision <= segment.first:
            return
        # Damage to a segment that is not the last one counts as corruption, so it must not be torn by a crash.
        if not self._fsyncs:
            await self._disk.sync(segment.name)
        self._begin_segment(next_revision)

    def _begin_segment(self, first: int) -> None:
        segment = _Segment(first, len(_SEGMENT_MAGIC))
        self._disk.write(segment.name, _SEGMENT_MAGIC)
        self._segments.append(segment)
        self.is_full = segment.size >= self._segment_bytes

    def has_room(self) -> bool:
        """Whether something can be written."""
        try:
            self._disk.write(_PROBE, bytes(_PROBE_BYTES))
            self._disk.remove(_PROBE)
        except OSError:
            return False
        return True

    def obsolete_bytes(self, revision: int) -> int:
        """Size of the segments that a snapshot at that revision would replace."""
        return sum(segment.size for segment in self._obsolete(revision))

    def _obsolete(self, revision: int) -> list[_Segment]:
        segments = self._segments
        return [old for old, successor in itertools.pairwise(segments) if successor.first <= revision + 1]

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Write the state at a compacted revision, and remove the segments that it replaces. Raises OSError."""
        name = f"{_SNAPSHOT}{snapshot.revision:020d}"
        pieces = [_SNAPSHOT_MAGIC]

        def add(content: object) -> None:
            payload = self._pack(content)
            pieces.append(_FRAME.pack(len(payload), zlib.crc32(payload)))
            pieces.append(payload)

        entries = snapshot.entries
        add((snapshot.revision, len(entries), [_pack_entry(entry) for entry in snapshot.changes]))
        for i in range(0, len(entries), _ENTRIES_IN_FRAME):
            add([_pack_entry(entry) for entry in entries[i : i + _ENTRIES_IN_FRAME]])
        self._disk.write(name, b"".join(pieces))
        self._remove_replaced(name, snapshot.revision)

    def _remove_replaced(self, snapshot: str, revision: int) -> None:
        for name in self._snapshots:
            if name != snapshot:
                self._disk.remove(name)
        self._snapshots = [snapshot]
        # The oldest first: a crash on the way leaves no gap.
        for segment in self._obsolete(revision):
            self._disk.remove(segment.name)
            self._segments.remove(segment)

    # Recovery

    def recover(self) -> Recovery:
        """Read everything, and make the journal ready for appending. Raises JournalCorrupt."""
        disk = self._disk
        names = disk.list()
        self._snapshots = [name for name in names if name.startswith(_SNAPSHOT)]
        snapshot = self._read_snapshot(self._snapshots[-1]) if self._snapshots else None
        contents: list[tuple[_Segment, bytes]] = []
        for name in names:
            if name.startswith(_SEGMENT):
                content = disk.read(name)
                contents.append((_Segment(_number(name, _SEGMENT), len(content)), content))
        self._segments = [segment for segment, _ in contents]
        if not contents:
            if snapshot is not None:
                raise JournalCorrupt(self._snapshots[-1], 0, "there is no journal that goes on from this snapshot")
            self._begin_segment(2)
            return Recovery(None, [], 0, True)

        records: list[Record] = []
        torn_bytes = 0
        revision = contents[0][0].first - 1
        if revision > (1 if snapshot is None else snapshot.revision):
            raise JournalCorrupt(contents[0][0].name, 0, f"revision {revision} and what was before it is missing")
        for segment, content in contents:
            is_last = segment is self._segments[-1]
            if segment.first != revision + 1:
                raise JournalCorrupt(segment.name, 0, f"the segment before it ends with revision {revision}")
            if not content.startswith(_SEGMENT_MAGIC):
                if not (is_last and _SEGMENT_MAGIC.startswith(content)):
                    raise JournalCorrupt(segment.name, 0, "not a journal")
                torn_bytes = len(content)
                disk.write(segment.name, _SEGMENT_MAGIC)
                segment.size = len(_SEGMENT_MAGIC)
                continue
            offset = len(_SEGMENT_MAGIC)
            while offset < len(content):
                payload = _payload_at(content, offset)
                if payload is None:
                    damage = _damage(content, offset) if is_last else "the frame is damaged"
                    if damage:
                        raise JournalCorrupt(segment.name, offset, damage)
                    torn_bytes = len(content) - offset
                    disk.truncate(segment.name, offset)
                    segment.size = offset
                    break
                for number, changes in _unpack(payload, segment.name, offset):
                    if changes is not None:
                        revision += 1
                        if number != revision:
                            raise JournalCorrupt(segment.name, offset, f"revision {number} where {revision} is due")
                    if snapshot is None or number > snapshot.revision:
                        records.append((number, changes))
                offset += _FRAME.size + len(payload)
        if snapshot is not None and revision < snapshot.revision:
            last = self._segments[-1]
            what = f"the journal ends with revision {revision}, before the snapshot {self._snapshots[-1]}"
            raise JournalCorrupt(last.name, last.size, what)
        # What is recovered will be seen and built upon: from here on it must not get lost.
        disk.fsync(self._segments[-1].name)
        if snapshot is not None:
            self._remove_replaced(self._snapshots[-1], snapshot.revision)
        return Recovery(snapshot, records, torn_bytes, False)

    def _read_snapshot(self, name: str) -> Snapshot:
        content = self._disk.read(name)
        if not content.startswith(_SNAPSHOT_MAGIC):
            raise JournalCorrupt(name, 0, "not a snapshot")
        offset = len(_SNAPSHOT_MAGIC)
        frames: list[Any] = []
        while offset < len(content):
            payload = _payload_at(content, offset)
            if payload is None:
                raise JournalCorrupt(name, offset, "the frame is damaged")
            frames.append(_unpack(payload, name, offset))
            offset += _FRAME.size + len(payload)
        if not frames:
            raise JournalCorrupt(name, offset, "the snapshot is empty")
        revision, count, changes = frames[0]
        entries = [_unpack_entry(packed) for frame in frames[1:] for packed in frame]
        if len(entries) != count:
            raise JournalCorrupt(name, offset, f"the snapshot has {len(entries)} entries instead of {count}")
        return Snapshot(revision, entries, [_unpack_entry(packed) for packed in changes])


def _number(name: str, prefix: str) -> int:
    try:
        return int(name.removeprefix(prefix))
    except ValueError:
        raise JournalCorrupt(name, 0, "the name does not say from which revision on") from None


def _payload_at(content: bytes, offset: int) -> bytes | None:
    """None: there is no intact frame."""
    start = offset + _FRAME.size
    if start > len(content):
        return None
    length, crc = _FRAME.unpack_from(content, offset)
    if length == 0 or start + length > len(content):
        return None
    payload = content[start : start + length]
    return payload if zlib.crc32(payload) == crc else None


def _damage(content: bytes, offset: int) -> str:
    """What happened to the frame at the end of the journal that is not intact; empty if a crash explains it."""
    start = offset + _FRAME.size
    if start > len(content):
        return ""
    for later in range(offset + 1, len(content) - _FRAME.size):
        # Every payload is a msgpack array; the rest of the test is expensive.
        marker = content[later + _FRAME.size]
        if (0x90 <= marker <= 0x9F or 0xDC <= marker <= 0xDD) and _payload_at(content, later) is not None:
            return f"the frame is damaged, but one that was written after it is intact (offset {later})"
    if _has_empty_sector(content, offset):
        return ""
    length, crc = _FRAME.unpack_from(content, offset)
    if start < len(content) and zlib.crc32(content[start:]) == crc:
        return f"the length of the frame is damaged: it says {length} and there are {len(content) - start} bytes"
    if start + length > len(content):
        return ""
    return "the frame is complete but its checksum is wrong"


def _has_empty_sector(content: bytes, offset: int) -> bool:
    """Whether a sector from the offset on reads as if it had never been written."""
    while offset < len(content):
        end = min(len(content), (offset // _SECTOR_BYTES + 1) * _SECTOR_BYTES)
        if not any(content[offset:end]):
            return True
        offset = end
    return False


def _unpack(payload: bytes, name: str, offset: int) -> Any:
    try:
        return msgpack.unpackb(payload, raw=False, use_list=True)
    except (ValueError, msgpack.UnpackException):
        raise JournalCorrupt(name, offset, "the checksum is right but the frame cannot be understood") from None


def _pack_entry(entry: Entry) -> tuple[bytes, bytes | None, int, int, int]:
    return entry.key, entry.value, entry.create_revision, entry.mod_revision, entry.version


def _unpack_entry(packed: Iterable[Any]) -> Entry:
    return Entry(*packed)
