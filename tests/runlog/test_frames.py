"""The run log: what was written is read, and damage is named with its place."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.errors import LogCutWarning, RunLogError
from kemu.runtime.runlog import frames
from kemu.runtime.runlog.frames import CUT, MAGIC, Entry, Reader, Writer

DATA = st.dictionaries(st.text(max_size=8), st.one_of(st.integers(-(2**63), 2**63), st.binary(max_size=16), st.none()))
EVENTS = st.lists(st.tuples(st.integers(0, 2**60), st.text(max_size=8), st.text(max_size=8), DATA), max_size=20)


def write(path: Path, events: list) -> str:
    writer = Writer(path, {"seed": 1})
    for event in events:
        writer.append(*event)
    return writer.close()


@given(events=EVENTS)
@settings(max_examples=50, deadline=None)
def test_reads_what_was_written(tmp_path_factory: pytest.TempPathFactory, events: list) -> None:
    path = tmp_path_factory.mktemp("log") / "run.kemu"
    digest = write(path, events)
    with Reader(path) as reader:
        assert reader.header == {"seed": 1}
        assert list(reader) == [Entry(*event) for event in events]
    written = path.read_bytes()[len(MAGIC) :]
    header_bytes = 8 + int.from_bytes(written[:4], "little")
    assert hashlib.sha256(written[header_bytes:]).hexdigest() == digest


def test_the_digest_does_not_depend_on_the_header_or_the_buffer(tmp_path: Path) -> None:
    events = [(n, "a", "k", {"n": n}) for n in range(100)]
    first = write(tmp_path / "first", events)
    writer = Writer(tmp_path / "second", {"seed": 2, "more": "words"}, buffer_bytes=7)
    for event in events:
        writer.append(*event)
    assert writer.close() == first
    assert write(tmp_path / "third", events[:-1]) != first


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "run.kemu"
    write(path, [(n, "actor", "kind", {"n": n}) for n in range(3)])
    intact = path.read_bytes()
    for offset in range(len(intact)):
        damaged = bytearray(intact)
        damaged[offset] ^= 0x40
        path.write_bytes(damaged)
        # The length of the last frame: as if the file had been cut off.
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
    whole = path.read_bytes()
    path.write_bytes(_flipped(whole, found[30][0] + 20))
    with Reader(path) as reader, pytest.raises(RunLogError, match="checksum mismatch") as caught:
        list(reader)
    assert f"{path}: offset {found[30][0]}: checksum mismatch" in str(caught.value)


def test_a_file_that_ends_within_a_frame_is_read_up_to_its_last_whole_one(tmp_path: Path) -> None:
    """As a full disk or SIGKILL leaves it, wherever it was cut; what is lost is told as an event and as a warning."""
    path = tmp_path / "run.kemu"
    writer = Writer(path, {})
    events = [Entry(1000 * number, "a", "kind", {"text": "x" * number}) for number in range(300)]
    for event in events:
        writer.append(*event)
    writer.close()
    with Reader(path) as reader:
        places = [reader.offset for _ in reader]
    whole = path.read_bytes()
    for lost in range(1, len(whole) - places[-2]):
        path.write_bytes(whole[:-lost])
        kept = 299 if len(whole) - lost >= places[-1] else 298
        left = len(whole) - lost - places[kept]
        if not left:
            with Reader(path) as reader:
                assert list(reader) == events[:kept], "it ends between two frames"
            continue
        cut = Entry(events[kept - 1].time_ns, "run.kemu", CUT, {"bytes": left})
        text = f"offset {places[kept]}: the log is cut off: its last {left} bytes"
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
