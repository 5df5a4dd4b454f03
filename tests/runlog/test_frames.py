"""The run log: what was written is read, and damage is named with its place."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import msgpack
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.errors import LogCutWarning, RunLogError
from kemu.runtime.runlog import blocks, frames
from kemu.runtime.runlog.frames import CUT, Entry, Reader, Writer

DATA = st.dictionaries(st.text(max_size=8), st.one_of(st.integers(-(2**63), 2**63), st.binary(max_size=16), st.none()))
EVENTS = st.lists(st.tuples(st.integers(0, 2**60), st.text(max_size=8), st.text(max_size=8), DATA), max_size=20)


def write(path: Path, events: list) -> str:
    writer = Writer(path, {"seed": 1})
    for event in events:
        writer.append(*event)
    return writer.close()


def write_plain(path: Path, events: list) -> None:
    """As earlier versions did."""
    payloads = [msgpack.packb(each) for each in ({"seed": 1}, *map(list, events))]
    path.write_bytes(blocks.PLAIN_MAGIC + b"".join(map(frames.framed, payloads)))


def unpacked(path: Path) -> bytes:
    """What ``zstd -dc`` writes."""
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


@pytest.fixture(params=[1 << 8, 1 << 18], ids=["small blocks", "one block"])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", request.param)
    return int(request.param)


@given(events=EVENTS)
@settings(max_examples=50, deadline=None)
def test_reads_what_was_written(tmp_path_factory: pytest.TempPathFactory, events: list) -> None:
    path = tmp_path_factory.mktemp("log") / "run.kemu"
    digest = write(path, events)
    with Reader(path) as reader:
        assert reader.header == {"seed": 1}
        assert list(reader) == [Entry(*event) for event in events]
    assert hashlib.sha256(unpacked(path)).hexdigest() == digest


def test_logs_of_earlier_versions_are_read(tmp_path: Path) -> None:
    events = [Entry(n**6, f"actor/{n}", f"kind.{n % 3}", {"n": n, "text": "y" * n * 11}) for n in range(60)]
    path, packed = tmp_path / "plain", tmp_path / "packed"
    write_plain(path, events)
    write(packed, events)
    for log in (path, packed):
        with Reader(log) as reader:
            assert reader.header == {"seed": 1}
            found = [(reader.offset, event) for event in reader]
            assert [event for _, event in found] == events
            assert [reader.at(offset) for offset, _ in reversed(found)] == events[::-1]
        assert frames.is_log(log)
    with Reader(path) as plain, Reader(packed) as reader:
        assert plain.unpacked_bytes - plain.next_offset == reader.unpacked_bytes == len(unpacked(packed))


def test_a_log_takes_a_fraction_of_its_events(tmp_path: Path) -> None:
    write(tmp_path / "log", [(n, "scheduler/a/0", "sched.bind", {"pod": f"default/pod-{n}"}) for n in range(10_000)])
    assert (tmp_path / "log").stat().st_size * 4 < len(unpacked(tmp_path / "log"))


def test_the_header_is_dated_in_its_place(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "log", {"epoch_unix_s": 1_700_000_000})
    writer.append(1, "a", "k", {})
    writer.flush()
    writer.date(1_800_000_000)
    writer.append(2, "a", "k", {})
    writer.close()
    with Reader(tmp_path / "log") as reader:
        assert reader.header == {"epoch_unix_s": 1_800_000_000}
        assert [event.time_ns for event in reader] == [1, 2]


def test_the_digest_does_not_depend_on_the_header_or_the_buffer(tmp_path: Path) -> None:
    events = [(n, "a", "k", {"n": n}) for n in range(100)]
    first = write(tmp_path / "first", events)
    writer = Writer(tmp_path / "second", {"seed": 2, "more": "words"}, buffer_bytes=7)
    for event in events:
        writer.append(*event)
    assert writer.close() == first
    assert write(tmp_path / "third", events[:-1]) != first


@pytest.mark.parametrize("to", [write, write_plain])
def test_every_flipped_byte_is_noticed(
    to: Callable[[Path, list], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 40)
    path = tmp_path / "run.kemu"
    to(path, [(n, "actor", "kind", {"n": n}) for n in range(8)])
    intact = path.read_bytes()
    for offset in range(len(intact)):
        for bit in (0x01, 0x40):
            damaged = bytearray(intact)
            damaged[offset] ^= bit
            path.write_bytes(damaged)
            # The length of the last frame or block: as if the file had been cut off.
            with pytest.raises((RunLogError, LogCutWarning), match=r"offset \d+"), Reader(path) as reader:
                list(reader)


def test_a_missing_log_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(RunLogError, match="nothing"):
        Reader(tmp_path / "nothing")


@pytest.mark.parametrize("buffer_bytes", [1, 7, 100, 1 << 20])
def test_frames_are_found_wherever_a_buffer_ends(
    buffer_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "BUFFER_BYTES", buffer_bytes)
    path = tmp_path / "run.kemu"
    writer = Writer(path, {})
    events = [Entry(n**6, f"actor/{'x' * n}", f"kind.{n % 3}", {"n": n, "text": "y" * n * 11}) for n in range(60)]
    for event in events:
        writer.append(*event)
    writer.close()
    with Reader(path) as reader:
        found = [(reader.offset, event) for event in reader]
    assert [event for _, event in found] == events
    with Reader(path) as reader:
        assert [reader.at(offset) for offset, _ in reversed(found)] == events[::-1]
    with Reader(path) as reader:
        assert list(reader.but("kind.1", "kind.2")) == events[::3]
    with Reader(path) as reader:
        assert list(reader.but()) == events


def test_damage_is_named_with_its_place(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "run.kemu"
    events = [Entry(n, "a", "k", {"bytes": random.Random(n).randbytes(40)}) for n in range(60)]
    write(path, events)
    with Reader(path) as reader:
        places = [reader._file.file_offset(reader.offset) for _ in reader]
    assert (len(set(places)) > 8) == (block_bytes < 1000)
    path.write_bytes(_flipped(path.read_bytes(), places[30] + 60))
    with Reader(path) as reader, pytest.raises(RunLogError, match="checksum mismatch") as caught:
        list(reader)
    assert f"{path}: offset {places[30]}: checksum mismatch" in str(caught.value)
    write_plain(path, events)
    with Reader(path) as reader:
        places = [reader.offset for _ in reader]
    path.write_bytes(_flipped(path.read_bytes(), places[30] + 20))
    with Reader(path) as reader, pytest.raises(RunLogError, match="checksum mismatch") as caught:
        list(reader)
    assert f"{path}: offset {places[30]}: checksum mismatch" in str(caught.value)


def test_a_frame_within_a_block_has_a_checksum_of_its_own(tmp_path: Path) -> None:
    """As what a faulty machine has packed."""
    path = tmp_path / "run.kemu"
    write(path, [])
    good = frames.framed(msgpack.packb([1, "a", "k", {}]))
    path.write_bytes(path.read_bytes() + blocks.Packer().block(good + _flipped(good, 10) + good))
    with Reader(path) as reader, pytest.raises(RunLogError, match=f"at {len(good)} of its block: checksum mismatch"):
        list(reader)


@pytest.mark.parametrize("to", [write, write_plain])
def test_a_file_that_ends_early_is_read_up_to_its_last_whole_part(
    to: Callable[[Path, list], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a full disk or SIGKILL leaves it, wherever it was cut; what is lost is told as an event and as a warning."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1000)
    path = tmp_path / "run.kemu"
    events = [Entry(1000 * number, "a", "kind", {"text": "x" * number}) for number in range(300)]
    to(path, events)
    whole = path.read_bytes()
    with Reader(path) as reader:
        places = [reader._file.file_offset(reader.offset) for _ in reader]
    ends = [*sorted(set(places))[-2:], len(whole)]
    assert len(set(places)) > 10
    for size in range(ends[0] + 1, len(whole)):
        path.write_bytes(whole[:size])
        end = max(each for each in ends if each <= size)
        kept = sum(place < end for place in places)
        if size == end:
            with Reader(path) as reader:
                assert list(reader) == events[:kept], "it ends between two"
            continue
        cut = Entry(events[kept - 1].time_ns, "run.kemu", CUT, {"bytes": size - end})
        text = f"offset {end}: the log is cut off: its last {size - end} bytes"
        with Reader(path) as reader, pytest.warns(LogCutWarning, match=text):
            assert list(reader) == [*events[:kept], cut]
        with Reader(path) as reader, pytest.warns(LogCutWarning):
            assert list(reader.but("kind")) == [cut]


def _flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_events_without_some_kinds_whatever_their_times_and_actors(tmp_path: Path) -> None:
    """Times and names of actors have several lengths."""
    path = tmp_path / "run.kemu"
    writer = Writer(path, {})
    times = (0, 127, 128, 255, 256, 65_535, 65_536, 1 << 32, 1 << 62)
    actors = ("", "a", "b" * 31, "c" * 32, "d" * 200)
    events = [Entry(time_ns, actor, kind, {}) for time_ns in times for actor in actors for kind in ("no", "yes", "nos")]
    for event in events:
        writer.append(*event)
    writer.close()
    with Reader(path) as reader:
        assert list(reader.but("no")) == [event for event in events if event.kind != "no"]
