"""A run log that is read while it is written: each event once, whenever and wherever somebody looks."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest

from kemu.errors import RunLogError
from kemu.runtime.runlog import blocks
from kemu.runtime.runlog.frames import Reader, Writer, framed
from kemu.runtime.runlog.tails import Cursor, Tail


def written(path: Path, count: int, size: int = 10) -> Writer:
    writer = Writer(path, {"scenario": "s"})
    for number in range(count):
        writer.append(number, "a", "note", {"number": number, "text": "x" * size})
    return writer


def numbers(tail: Tail, most: int = 1 << 30) -> list[int]:
    found = tail.read(most)
    assert all(place == event.data["number"] for place, event in found)
    return [place for place, _ in found]


def test_what_is_flushed_is_read_once_and_what_is_not_later(tmp_path: Path) -> None:
    path = tmp_path / "run.kemu"
    writer = written(path, 3)
    with Tail(path) as tail:
        assert tail.header == {"scenario": "s"}
        assert numbers(tail) == []
        writer.flush()
        assert numbers(tail) == [0, 1, 2]
        writer.append(3, "a", "note", {"number": 3})
        assert numbers(tail) == []
        writer.close()
        assert (numbers(tail), numbers(tail), tail.behind()) == ([3], [], 0)


@pytest.mark.parametrize("is_plain", [False, True])
def test_what_is_torn_is_read_when_it_is_whole(is_plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a reader meets it that looks while the writer writes."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100)
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    written(whole, 40).close()
    if is_plain:
        with Reader(whole) as reader:
            payloads = [msgpack.packb(reader.header), *reader.payloads()]
        whole.write_bytes(blocks.PLAIN_MAGIC + b"".join(map(framed, payloads)))
    data = whole.read_bytes()
    with Tail(whole) as tail:
        begin = tail.cursor.offset
    torn.write_bytes(data[:begin])
    with Tail(torn) as tail:
        found = []
        for end in range(begin, len(data) + 1, 7):
            torn.write_bytes(data[:end])
            while new := numbers(tail):
                found += new
        torn.write_bytes(data)
        while new := numbers(tail):
            found += new
        assert found == list(range(40))
        assert tail.behind() == 0


@pytest.mark.parametrize("size", [10, 300_000])
def test_another_one_goes_on_at_any_cursor(tmp_path: Path, size: int) -> None:
    """Also with events that are longer than what is read at once."""
    path = tmp_path / "run.kemu"
    written(path, 25, size).close()
    found: list[int] = []
    cursor: Cursor | None = None
    for turn in range(25):
        most = 1 + turn % 5
        with Tail(path, cursor) as tail:
            found += numbers(tail, most)
            cursor = tail.cursor
    assert found == list(range(25))


@pytest.mark.parametrize("shift", [1, -1, 5, 1 << 21, 5 << 22])
def test_a_cursor_between_frames_of_another_log_is_an_error(tmp_path: Path, shift: int) -> None:
    path = tmp_path / "run.kemu"
    written(path, 5).close()
    with Tail(path) as tail:
        begin = tail.cursor
    with pytest.raises(RunLogError), Tail(path, Cursor(0, begin.offset + shift)) as tail:
        tail.read()
