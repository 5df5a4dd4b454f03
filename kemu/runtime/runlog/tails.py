"""Follows a run log that is still being written, from any place where a frame begins.

    tail = Tail(folder / FILE_NAME)
    for event in tail.read():
        ...
    cursor = tail.cursor  # a later Tail goes on there: without a gap, without an event twice

The file itself is what a slow reader waits in: nothing is kept in memory for it. Neighbour: :mod:`frames`.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from kemu.errors import RunLogError
from kemu.runtime.runlog import blocks, frames
from kemu.runtime.runlog.frames import Entry

READ_BYTES = 1 << 18
"""At once."""


class Cursor(NamedTuple):
    """Between two events of a run log."""

    place: int
    """Number of the next event, from 0."""
    offset: int
    """The position of its frame."""


class Tail:
    def __init__(self, path: Path, cursor: Cursor | None = None) -> None:
        """``cursor``: where to go on, of an earlier one; None: at the beginning. Raises RunLogError where the file is
        not a run log."""
        self.path = path
        with frames.Reader(path) as reader:
            self.header = reader.header
            begin = reader.next_offset
        self.cursor = cursor or Cursor(0, begin)
        self._file, _ = blocks.opened(path)
        if self.cursor.offset < begin:
            self.close()
            raise RunLogError(f"{path}: {self._file.where(self.cursor.offset)}: no event begins there")

    def behind(self) -> int:
        """How many bytes of the file are still to be read."""
        return self._file.size_bytes() - self._file.file_offset(self.cursor.offset)

    def read(self, most: int = 1 << 30) -> list[tuple[int, Entry]]:
        """Some of the next events that are whole, with their places; none where the file has no more of them yet.

        Raises RunLogError where a frame is damaged, or none begins at the cursor.
        """
        file = self._file
        file.seek(self.cursor.offset)
        buffer, at = b"", 0
        place, offset = self.cursor
        found: list[tuple[int, Entry]] = []
        taken = 0
        while len(found) < most:
            if at == len(buffer) and taken < READ_BYTES:  # the next block
                offset = file.tell()
                buffer, at = file.read(READ_BYTES), 0
            length = frames.length_at(buffer, at)
            if length > frames.MAX_PAYLOAD_BYTES:
                raise RunLogError(f"{self._where(offset)}: a frame of {length} bytes: the length is damaged")
            if length < 0 or length > len(buffer) - at:
                if at < len(buffer) and file.must_be_whole():
                    raise RunLogError(f"{self._where(offset)}: no event begins there")
                more = file.read(max(READ_BYTES, length)) if not found else b""
                if not more:
                    break
                buffer, at = buffer[at:] + more, 0
                continue
            found.append((place, frames.event_at(buffer, at, self._where, offset)))
            place, offset, at, taken = place + 1, offset + length, at + length, taken + length
        self.cursor = Cursor(place, file.tell() if at == len(buffer) else offset)
        return found

    def _where(self, offset: int) -> str:
        return f"{self.path}: {self._file.where(offset)}"

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
