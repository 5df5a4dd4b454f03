"""What recovery keeps, what it cuts off and what it refuses."""

from __future__ import annotations

import asyncio
import random
import struct
import zlib
from collections.abc import Sequence

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.emulated.store.journal import Journal, Record, Snapshot
from kemu.emulated.store.mvcc import Entry
from kemu.errors import JournalCorrupt
from kemu.runtime.host.files import FileDisk
from kemu.runtime.sim.disks import MemoryDisk

Batch = list[Record]


def batches_of(sizes: Sequence[int], value_bytes: int = 20) -> list[Batch]:
    """Group commits of so many transactions each; every third transaction deletes."""
    batches: list[Batch] = []
    revision = 1
    for size in sizes:
        batch: Batch = []
        for _ in range(size):
            revision += 1
            key = b"/registry/pods/%d" % (revision % 7)
            value = None if revision % 3 == 0 else bytes(range(1, 1 + revision % 50)) + b"x" * value_bytes
            batch.append((revision, [key, value]))
        batches.append(batch)
    return batches


def write(journal: Journal, batches: Sequence[Batch]) -> None:
    for batch in batches:
        numbers = [number for number, changes in batch if changes is not None]
        journal.append(batch)
        asyncio.run(journal.sync())
        asyncio.run(journal.roll((numbers[-1] if numbers else 1) + 1))


def journaled(batches: Sequence[Batch], segment_bytes: int = 400, fsync: str = "batch") -> MemoryDisk:
    disk = MemoryDisk()
    journal = Journal(disk, fsync, segment_bytes)
    assert journal.recover().was_empty
    write(journal, batches)
    return disk


def plain(records: Sequence[Record]) -> list[tuple[int, list[bytes | None] | None]]:
    return [(revision, None if changes is None else list(changes)) for revision, changes in records]


def copy(disk: MemoryDisk) -> MemoryDisk:
    other = MemoryDisk()
    for name in disk.list():
        other.write(name, disk.read(name))
    return other


def flatten(batches: Sequence[Batch]) -> list[tuple[int, list[bytes | None] | None]]:
    return plain([record for batch in batches for record in batch])


def test_everything_comes_back_and_the_journal_goes_on() -> None:
    batches = batches_of([1, 3, 2, 5, 1, 1, 8, 2])
    disk = journaled(batches)
    assert len(disk.list()) > 2
    for _ in range(2):
        recovery = Journal(disk, "batch", 400).recover()
        assert plain(recovery.records) == flatten(batches)
        assert recovery.torn_bytes == 0
        assert recovery.snapshot is None
        assert not recovery.was_empty
    journal = Journal(disk, "none", 400)
    last = journal.recover().records[-1][0]
    more: list[Batch] = [[(last + 1, [b"k", b"v"])], [(last + 2, [b"k", None]), (last + 1, None)]]
    write(journal, more)
    assert plain(Journal(disk).recover().records) == flatten([*batches, *more])


def test_on_real_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    batches = batches_of([1, 3, 2, 5])
    disk = FileDisk(tmp_path)
    journal = Journal(disk, "always", 300)
    journal.recover()
    write(journal, batches)
    disk.close()
    with open(tmp_path / sorted(path.name for path in tmp_path.iterdir())[-1], "ab") as file:
        file.write(b"\x40\0\0")
    disk = FileDisk(tmp_path)
    recovery = Journal(disk).recover()
    assert plain(recovery.records) == flatten(batches)
    assert recovery.torn_bytes == 3
    disk.close()


@pytest.mark.parametrize("sizes", [[1, 2, 1, 3, 1], [2], [6, 1]])
def test_cut_at_any_byte_it_recovers_every_frame_that_is_whole(sizes: list[int]) -> None:
    """All cut points of the whole journal: what follows the cut is not there, segments included."""
    batches = batches_of(sizes)
    disk = MemoryDisk()
    journal = Journal(disk, "batch", 150)
    journal.recover()
    ends: list[tuple[str, int, int]] = []
    """File, its size after a batch, and how many records there are by then."""
    count = 0
    for batch in batches:
        name = disk.list()[-1]
        write(journal, [batch])
        count += len(batch)
        ends.append((name, len(disk.read(name)), count))
    names = disk.list()
    records = flatten(batches)
    for i, name in enumerate(names):
        for cut in range(len(disk.read(name)) + 1):
            torn = copy(disk)
            torn.truncate(name, cut)
            for later in names[i + 1 :]:
                torn.remove(later)
            acknowledged = max((n for file, size, n in ends if (file, size) <= (name, cut)), default=0)
            recovery = Journal(torn, "batch", 150).recover()
            assert plain(recovery.records) == records[:acknowledged], (name, cut)
            # And so it does once more, and can be written to.
            again = Journal(torn, "batch", 150)
            assert plain(again.recover().records) == records[:acknowledged]
            again.append([(acknowledged + 2, [b"new", b"v"])])
            assert len(Journal(torn).recover().records) == acknowledged + 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(60, 2_000), st.data())
def test_cut_anywhere_with_any_sizes(sizes: list[int], segment_bytes: int, data: st.DataObject) -> None:
    batches = batches_of(sizes, data.draw(st.integers(0, 700)))
    disk = journaled(batches[:-1], segment_bytes)
    journal = Journal(disk, "batch", segment_bytes)
    journal.recover()
    name = disk.list()[-1]
    before = len(disk.read(name))
    write(journal, batches[-1:])
    for later in disk.list():
        if later > name:
            disk.remove(later)
    cut = data.draw(st.integers(before, len(disk.read(name))))
    whole = cut == len(disk.read(name))
    disk.truncate(name, cut)
    recovery = Journal(disk, "batch", segment_bytes).recover()
    assert plain(recovery.records) == flatten(batches if whole else batches[:-1])
    assert recovery.torn_bytes == (0 if whole else cut - before)


def frames_of(content: bytes) -> list[tuple[int, int]]:
    """Offset and end of each frame of a segment."""
    frames = []
    offset = content.index(b"\n") + 1
    while offset < len(content):
        length = struct.unpack_from("<I", content, offset)[0]
        frames.append((offset, offset + 8 + length))
        offset += 8 + length
    return frames


def flip(disk: MemoryDisk, name: str, offset: int, mask: int) -> MemoryDisk:
    damaged = copy(disk)
    content = bytearray(disk.read(name))
    content[offset] ^= mask
    damaged.write(name, bytes(content))
    return damaged


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_a_flipped_byte_anywhere_is_refused_with_file_and_offset(mask: int) -> None:
    """In the last frame too, since all of it is there and none of its sectors is empty."""
    batches = batches_of([1, 2, 1, 3, 1, 2])
    disk = journaled(batches, 150)
    names = disk.list()
    assert len(names) >= 3
    for name in names:
        content = disk.read(name)
        frames = frames_of(content)
        for offset in range(len(content)):
            start = next((begin for begin, end in frames if begin <= offset < end), 0)
            with pytest.raises(JournalCorrupt) as caught:
                Journal(flip(disk, name, offset, mask)).recover()
            assert caught.value.file == name
            assert caught.value.offset == start
            assert name in str(caught.value)
            assert str(start) in str(caught.value)


def test_a_frame_that_was_never_written_is_cut_off() -> None:
    """The file has grown, but its new sectors are zeros."""
    batches = batches_of([2, 2])
    disk = journaled(batches[:1], 10_000)
    name = disk.list()[0]
    for zeros in (1, 7, 8, 9, 600, 4_096):
        torn = copy(disk)
        torn.append(name, bytes(zeros))
        recovery = Journal(torn).recover()
        assert plain(recovery.records) == flatten(batches[:1])
        assert recovery.torn_bytes == zeros


def test_a_frame_whose_length_alone_was_not_written_is_cut_off() -> None:
    """It stands at the end of a sector; the checksum and all that follows is in the next one, and right."""
    disk = journaled(batches_of([1]), 100_000)
    journal = Journal(disk, "batch", 100_000)
    journal.recover()
    name = disk.list()[0]
    fill = 512 - 4 - len(disk.read(name)) - 8
    pad = next(size for size in range(fill) if len(msgpack.packb([(3, [b"k", b"x" * size])])) == fill)
    journal.append([(3, [b"k", b"x" * pad])])
    assert len(disk.read(name)) == 508
    journal.append([(4, [b"k", b"y" * 300])])
    content = disk.read(name)
    disk.write(name, content[:508] + bytes(4) + content[512:])
    recovery = Journal(disk, "batch", 100_000).recover()
    assert [number for number, _ in recovery.records] == [2, 3]
    assert recovery.torn_bytes == len(content) - 508


def test_a_frame_whose_sectors_were_written_out_of_order_is_cut_off() -> None:
    batches = batches_of([3])
    disk = journaled(batches, 100_000)
    name = disk.list()[0]
    before = len(disk.read(name))
    journal = Journal(disk, "batch", 100_000)
    journal.recover()
    journal.append([(5, [b"k", b"x" * 3_000])])
    content = disk.read(name)
    for sector in range(before // 512, len(content) // 512 + 1):
        first, last = max(before, sector * 512), min(len(content), sector * 512 + 512)
        if first >= last:
            continue
        torn = copy(disk)
        torn.write(name, content[:first] + bytes(last - first) + content[last:])
        recovery = Journal(torn).recover()
        assert plain(recovery.records) == flatten(batches)
        assert recovery.torn_bytes == len(content) - before


def test_a_length_that_was_made_longer_or_shorter_is_not_a_torn_tail() -> None:
    batches = batches_of([1, 1, 1])
    disk = journaled(batches, 10_000)
    name = disk.list()[0]
    content = bytearray(disk.read(name))
    for begin, end in frames_of(bytes(content)):
        for length in (1, end - begin - 9, end - begin - 7, 1 << 30):
            damaged = bytearray(content)
            struct.pack_into("<I", damaged, begin, length)
            other = copy(disk)
            other.write(name, bytes(damaged))
            with pytest.raises(JournalCorrupt) as caught:
                Journal(other).recover()
            assert caught.value.offset == begin


def test_missing_and_foreign_files_are_refused() -> None:
    disk = journaled(batches_of([4, 4, 4, 4]), 100)
    names = disk.list()
    assert len(names) >= 4
    for missing in names[:-1]:
        other = copy(disk)
        other.remove(missing)
        with pytest.raises(JournalCorrupt):
            Journal(other).recover()
    other = copy(disk)
    other.write(names[1], b"something else")
    with pytest.raises(JournalCorrupt, match="not a journal"):
        Journal(other).recover()
    other = copy(disk)
    other.write("journal-backup", b"")
    with pytest.raises(JournalCorrupt, match="the name does not say"):
        Journal(other).recover()


def test_a_valid_frame_with_the_wrong_revision_is_refused() -> None:
    disk = journaled(batches_of([2]), 10_000)
    name = disk.list()[0]
    frame = disk.read(name)[len(b"kemu-journal/1\n") :]
    disk.append(name, frame)
    with pytest.raises(JournalCorrupt, match="revision 2 where 4 is due"):
        Journal(disk).recover()
    payload = b"\xc1"
    disk.truncate(name, disk.read(name).index(frame) + len(frame))
    disk.append(name, struct.pack("<II", len(payload), zlib.crc32(payload)) + payload)
    with pytest.raises(JournalCorrupt, match="cannot be understood"):
        Journal(disk).recover()


def test_a_crash_keeps_what_was_acknowledged() -> None:
    """On the simulated disk, with every fate that it knows for what was not fsynced."""
    for seed in range(30):
        for fsync in ("always", "batch", "none"):
            batches = batches_of([1, 3, 2, 5, 1])
            disk = journaled(batches, 300, fsync)
            recovery = Journal(disk.crash(random.Random(seed)), fsync, 300).recover()
            records = plain(recovery.records)
            assert records == flatten(batches)[: len(records)]
            if fsync != "none":
                assert records == flatten(batches)


# Snapshots


def entry(revision: int, value: bytes | None = b"v") -> Entry:
    return Entry(b"k%d" % revision, value, revision, revision, 1)


def snapshot_at(revision: int) -> Snapshot:
    return Snapshot(revision, [entry(i) for i in range(2, revision + 1)], [entry(revision), entry(1, None)])


def test_a_snapshot_takes_the_place_of_older_segments() -> None:
    disk = MemoryDisk()
    journal = Journal(disk, "batch", 200)
    journal.recover()
    batches = batches_of([3, 3, 3, 3, 3])
    write(journal, batches)
    segments = disk.list()
    obsolete = journal.obsolete_bytes(9)
    assert 0 < obsolete < sum(len(disk.read(name)) for name in segments)
    journal.write_snapshot(snapshot_at(9))
    assert journal.obsolete_bytes(9) == 0
    left = [name for name in disk.list() if name.startswith("journal")]
    assert len(left) < len(segments)
    recovery = Journal(disk).recover()
    assert recovery.snapshot is not None
    assert recovery.snapshot.revision == 9
    assert [(e.key, e.value, e.version) for e in recovery.snapshot.entries] == [
        (b"k%d" % i, b"v", 1) for i in range(2, 10)
    ]
    assert [(e.key, e.value) for e in recovery.snapshot.changes] == [(b"k9", b"v"), (b"k1", None)]
    assert plain(recovery.records) == [record for record in flatten(batches) if record[0] > 9]
    # The next one takes the place of this one, too.
    journal.write_snapshot(snapshot_at(12))
    assert [name for name in disk.list() if name.startswith("snapshot")] == [f"snapshot-{12:020d}"]


def test_a_crash_between_a_snapshot_and_what_it_removes() -> None:
    disk = MemoryDisk()
    journal = Journal(disk, "batch", 200)
    journal.recover()
    write(journal, batches_of([3, 3, 3, 3, 3]))
    before = copy(disk)
    journal.write_snapshot(snapshot_at(9))
    both = copy(before)
    name = f"snapshot-{9:020d}"
    both.write(name, disk.read(name))
    recovery = Journal(both).recover()
    assert recovery.snapshot is not None
    assert [number for number, _ in recovery.records] == list(range(10, 17))
    assert both.list() == disk.list()


def test_a_damaged_snapshot_is_refused() -> None:
    disk = MemoryDisk()
    journal = Journal(disk, "batch", 200)
    journal.recover()
    write(journal, batches_of([3, 3, 3]))
    journal.write_snapshot(snapshot_at(6))
    name = f"snapshot-{6:020d}"
    for offset in range(len(disk.read(name))):
        with pytest.raises(JournalCorrupt) as caught:
            Journal(flip(disk, name, offset, 0x10)).recover()
        assert caught.value.file == name
    for size in range(len(disk.read(name))):
        other = copy(disk)
        other.truncate(name, size)
        with pytest.raises(JournalCorrupt):
            Journal(other).recover()
    for segment in [found for found in disk.list() if found.startswith("journal")]:
        disk.remove(segment)
    with pytest.raises(JournalCorrupt, match="no journal that goes on"):
        Journal(disk).recover()


def test_a_journal_that_ends_before_its_snapshot_is_refused() -> None:
    disk = MemoryDisk()
    journal = Journal(disk, "batch", 100_000)
    journal.recover()
    batches = batches_of([3, 3])
    write(journal, batches[:1])
    name = disk.list()[0]
    size = len(disk.read(name))
    write(journal, batches[1:])
    journal.write_snapshot(snapshot_at(7))
    disk.truncate(name, size)
    with pytest.raises(JournalCorrupt, match="before the snapshot"):
        Journal(disk).recover()


def test_settings() -> None:
    with pytest.raises(ValueError, match="sometimes"):
        Journal(MemoryDisk(), "sometimes")
