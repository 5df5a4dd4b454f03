"""The file of a run log: the frames of its events in compressed blocks.

It is a series of Zstandard frames; ``zstd -dc run.kemu`` writes the frames of the events, whose SHA-256 is the digest.

    a skippable frame      the magic line, then the frame of the header
    for each block
      a skippable frame    how many bytes the block has here, and how many when it is unpacked (u32 LE)
      a Zstandard frame    whole frames of events, with a checksum

So a block is found and read without the others, and what a process that was killed has left is read up to its last
whole block. Earlier versions of kemu wrote the frames as they are; such files are read, too (:class:`Plain`).

A position in a log, of either kind, is a number that grows from frame to frame: that of a block and the place in it.
Neighbour: :mod:`frames`, which knows what a frame is.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO, Protocol

import zstandard

from kemu.errors import RunLogError

MAGIC = b"kemu-run-log/2\n"
PLAIN_MAGIC = b"kemu-run-log/1\n"
"""That of earlier versions, of frames that are not compressed."""
BLOCK_BYTES = 1 << 18
"""Of what is compressed at once, about: larger ones are hardly smaller together, and take longer to look one event
up."""
MOST_BYTES = 1 << 29
"""Of a block, unpacked or not; more is damage."""
_LEVEL = 1
"""A ninth of the size at over 1 GB/s; level 3 makes a 3 % smaller file at two thirds of that."""
_SKIPPABLE = struct.Struct("<II")
_SKIPPABLE_MAGIC = 0x184D2A50
_HEAD = struct.Struct("<IIII")
"""Of a block: the skippable frame."""
_LENGTHS = 8
_HEAD_BEGIN = _SKIPPABLE.pack(_SKIPPABLE_MAGIC, _LENGTHS)
_PLACE_BITS = 22
_PLACE_MASK = (1 << _PLACE_BITS) - 1


def beginning(header: bytes) -> bytes:
    """How a file begins. ``header``: its frame."""
    return _SKIPPABLE.pack(_SKIPPABLE_MAGIC, len(MAGIC) + len(header)) + MAGIC + header


def magic_of(begin: bytes) -> bytes:
    """The magic line, of the first bytes of a file; of a file that is no run log, anything else."""
    if len(begin) >= _SKIPPABLE.size and _SKIPPABLE.unpack_from(begin)[0] == _SKIPPABLE_MAGIC:
        begin = begin[_SKIPPABLE.size :]
    return begin[: len(MAGIC)]


BEGIN_BYTES = _SKIPPABLE.size + len(MAGIC)
"""What :func:`magic_of` needs."""


class Packer:
    """Makes blocks."""

    def __init__(self) -> None:
        self._compress = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress

    def block(self, frames: bytes) -> bytes:
        packed = self._compress(frames)
        return _HEAD.pack(_SKIPPABLE_MAGIC, _LENGTHS, len(packed), len(frames)) + packed


class Source(Protocol):
    """What frames are read from."""

    def read(self, size: int) -> bytes:
        """The next bytes, at most so many and none of another block; empty where there are no more."""

    def tell(self) -> int:
        """The position of what is read next."""

    def seek(self, position: int) -> None: ...

    def close(self) -> None: ...

    def size_bytes(self) -> int:
        """Of the file, now."""

    def where(self, position: int) -> str:
        """In words: which offset of the file."""

    def file_offset(self, position: int) -> int:
        """The offset in the file, or that of its block."""

    def unpacked_bytes(self) -> int:
        """About how large the file would be if it were not compressed."""

    def torn_bytes(self) -> int:
        """At the end of the file, when all was read: how many bytes are no whole block. Raises RunLogError where they
        are damaged rather than cut off."""

    def must_be_whole(self) -> bool:
        """What was read last ends where a frame ends, also in a file that is still being written."""


def opened(path: Path) -> tuple[Source, bytes]:
    """A source that stands behind the magic line, and that line. Raises OSError; RunLogError where the
    file is damaged before its header."""
    file = path.open("rb")
    try:
        begin = file.read(BEGIN_BYTES)
        magic = magic_of(begin)
        if magic != MAGIC:
            file.seek(len(magic))
            return Plain(file), magic
        size = _SKIPPABLE.unpack_from(begin)[1]
        if size > MOST_BYTES:
            raise RunLogError(f"{path}: offset 0: a header of {size} bytes: the length is damaged")
        return Blocks(file, path, _SKIPPABLE.size + size), magic
    except BaseException:
        file.close()
        raise


class Plain:
    """Frames that are not compressed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.read = file.read
        self.tell = file.tell
        self.close = file.close

    def seek(self, position: int) -> None:
        self._file.seek(position)

    def size_bytes(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def where(self, position: int) -> str:
        return f"offset {position}"

    def file_offset(self, position: int) -> int:
        return position

    def unpacked_bytes(self) -> int:
        return self.size_bytes()

    def torn_bytes(self) -> int:
        return 0

    def must_be_whole(self) -> bool:
        return False


class Blocks:
    """Frames in blocks. Keeps the block that was read last."""

    def __init__(self, file: BinaryIO, path: Path, begin: int) -> None:
        """``file`` stands at the header; ``begin``: the offset of the first block."""
        self._file = file
        self._path = path
        self._begin = begin
        self._decompress = zstandard.ZstdDecompressor().decompress
        self._at, self._place = 0, file.tell()
        """The offset of a block, and the place in it; the header is one that is not compressed."""
        self._kept_at, self._kept, self._next = -1, b"", 0

    def read(self, size: int) -> bytes:
        if self._at != self._kept_at and not self._load(self._at):
            return b""
        block, place = self._kept, self._place
        end = place + size
        if place >= len(block):
            raise RunLogError(f"{self._path}: {self.where(self.tell())}: no event begins there")
        if end < len(block):
            self._place = end
        else:
            self._at, self._place = self._next, 0
        return block[place:end]

    def tell(self) -> int:
        return self._at << _PLACE_BITS | self._place

    def seek(self, position: int) -> None:
        self._at, self._place = position >> _PLACE_BITS, position & _PLACE_MASK

    def close(self) -> None:
        self._file.close()

    def size_bytes(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def where(self, position: int) -> str:
        at, place = position >> _PLACE_BITS, position & _PLACE_MASK
        return f"offset {at}: at {place} of its block" if place and at else f"offset {at or place}"

    def file_offset(self, position: int) -> int:
        return position >> _PLACE_BITS

    def must_be_whole(self) -> bool:
        return self._place == 0

    def unpacked_bytes(self) -> int:
        at, total = self._begin, 0
        while True:
            self._file.seek(at)
            lengths = self._lengths(at)
            if lengths is None:
                return total
            at += _HEAD.size + lengths[0]
            total += lengths[1]

    def torn_bytes(self) -> int:
        self._file.seek(self._at)
        rest = self._file.read(max(0, min(self.size_bytes() - self._at, _HEAD.size + MOST_BYTES)))
        at = rest.find(_HEAD_BEGIN, 1)
        while at >= 0:
            packed = int.from_bytes(rest[at + len(_HEAD_BEGIN) : at + len(_HEAD_BEGIN) + 4], "little")
            if at + _HEAD.size + packed <= len(rest):
                raise RunLogError(f"{self._path}: offset {self._at}: the length of a block is damaged")
            at = rest.find(_HEAD_BEGIN, at + 1)
        return len(rest)

    def _lengths(self, at: int) -> tuple[int, int] | None:
        """Of the block there, packed and unpacked; the file stands behind its head. None where not even that is
        whole."""
        head = self._file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        magic, size, packed, length = _HEAD.unpack(head)
        if magic != _SKIPPABLE_MAGIC or size != _LENGTHS or packed > MOST_BYTES or not 0 < length <= MOST_BYTES:
            raise RunLogError(f"{self._path}: offset {at}: no block of events begins here: the file is damaged")
        return packed, length

    def _load(self, at: int) -> bool:
        """Whether there is a whole block."""
        self._file.seek(at)
        if at == 0:
            self._kept, self._next = self._file.read(self._begin), self._begin
        else:
            lengths = self._lengths(at)
            if lengths is None:
                return False
            if at + _HEAD.size + lengths[0] > self.size_bytes():
                return False
            packed = self._file.read(lengths[0])
            self._kept, self._next = self._unpacked(at, packed, lengths[1]), self._file.tell()
        self._kept_at = at
        return True

    def _unpacked(self, at: int, packed: bytes, length: int) -> bytes:
        try:
            if zstandard.frame_content_size(packed) == length:
                block = self._decompress(packed, allow_extra_data=False)
                if len(block) == length:
                    return block
        except zstandard.ZstdError:
            pass
        raise RunLogError(f"{self._path}: offset {at}: checksum mismatch: the block is damaged")
