"""The frames of a run log.

A log is frames ``length (u32 LE) | crc32 (u32 LE) | payload``. The first frame is the header (a map), every other one
an event ``[time_ns, actor, kind, data]``. The digest of a run is the SHA-256 of the frames of all events: it covers
what happened, and not which machine wrote it when. In the file they stand in compressed blocks (:mod:`blocks`).

A process that is killed, or a disk that fills, can leave a file that ends within a block. It is read up to its last
whole one; an event of kind ``log.cut`` at its end, and a :class:`kemu.errors.LogCutWarning`, say what is lost.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from sys import intern
from typing import Any, BinaryIO, NamedTuple

import msgpack

from kemu.errors import LogCutWarning, RunLogError
from kemu.runtime.runlog import blocks, events

FILE_NAME = "run.kemu"
CUT = events.LogCut.KIND
"""Kind of the event that a reader adds where the file was cut off."""
_FRAME = struct.Struct("<II")
MAX_PAYLOAD_BYTES = 256 * 1024 * 1024
_MAGIC_NAME = blocks.MAGIC.partition(b"/")[0] + b"/"


class Entry(NamedTuple):
    """One entry of a run log."""

    time_ns: int
    """Virtual time."""
    actor: str
    kind: str
    data: events.Event


BUFFER_BYTES = 1 << 20

_NUMBERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
"""Bytes of an unsigned integer by the byte before it (msgpack); smaller ones are that byte."""


def _place_of_kind(payload: bytes) -> int:
    """Where the kind of a packed event begins; of bytes that are none, anywhere."""
    actor = 2 + _NUMBERS.get(payload[1], 0) if len(payload) > 1 else 0
    if len(payload) < actor + 2:
        return 0
    first = payload[actor]
    return actor + 1 + (first & 0x1F) if first >> 5 == 0b101 else actor + 2 + payload[actor + 1]


def time_of(payload: bytes) -> int:
    """The time of a packed event."""
    size = _NUMBERS.get(payload[1], 0)
    return int.from_bytes(payload[2 : 2 + size], "big") if size else payload[1]


def unpack_event(payload: bytes) -> Entry:
    time_ns, actor, kind, data = msgpack.unpackb(payload, raw=False, strict_map_key=False)
    # Who keeps events of a long log keeps each name once.
    for key, value in data.items():
        if type(value) is str:
            data[key] = intern(value)
    return Entry(time_ns, intern(actor), kind, events.typed(kind, data))


def framed(payload: bytes) -> bytes:
    """One frame."""
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def read_frame(file: BinaryIO) -> bytes | None:
    """The payload of the next frame; None at the end, or where the frame is incomplete or damaged."""
    prefix = file.read(_FRAME.size)
    if len(prefix) < _FRAME.size:
        return None
    length, crc = _FRAME.unpack(prefix)
    payload = file.read(length) if length <= MAX_PAYLOAD_BYTES else b""
    return payload if len(payload) == length and zlib.crc32(payload) == crc else None


def length_at(buffer: bytes, at: int) -> int:
    """Length of the frame that begins there, with its prefix; -1 where not even that is whole."""
    return _FRAME.size + int(_FRAME.unpack_from(buffer, at)[0]) if len(buffer) - at >= _FRAME.size else -1


def event_at(buffer: bytes, at: int, where: Callable[[int], str], position: int) -> Entry:
    """Event of a frame that is whole. ``where`` a position is, in words: for RunLogError."""
    length, crc = _FRAME.unpack_from(buffer, at)
    payload = buffer[at + _FRAME.size : at + _FRAME.size + length]
    if zlib.crc32(payload) != crc:
        raise RunLogError(f"{where(position)}: checksum mismatch: the frame is damaged")
    try:
        return unpack_event(payload)
    except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
        raise RunLogError(f"{where(position)}: not an event of a run") from None


def is_log(file: Path) -> bool:
    """Whether it begins as a run log does, of whatever version."""
    try:
        with file.open("rb") as opened:
            return blocks.magic_of(opened.read(blocks.BEGIN_BYTES)).startswith(_MAGIC_NAME)
    except OSError:
        return False


class Digester:
    """Packs events into frames, and computes the digest of the run log that they make."""

    def __init__(self, *, buffer_bytes: int = 1 << 20) -> None:
        self._hash = hashlib.sha256()
        self._payloads: list[bytes] = []
        """Not framed yet: that is done for many at once."""
        self._size = 0
        self._buffer_bytes = buffer_bytes
        self._pack = msgpack.Packer(use_bin_type=True).pack
        self.events = 0
        self.is_busy = False
        """Frames are just being written: a signal handler must not close it."""

    def append(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        payload = self._pack((time_ns, actor, kind, data))
        self._payloads.append(payload)
        self._size += len(payload)
        self.events += 1
        if self._size >= self._buffer_bytes:
            self.flush()

    def extend(self, payloads: list[bytes]) -> None:
        """The same for events that are packed already, in one list that becomes the digester's own."""
        self.flush()
        self._payloads, self._size = payloads, sum(map(len, payloads))
        self.events += len(payloads)
        self.flush()

    def flush(self) -> None:
        payloads = self._payloads
        if payloads:
            self.is_busy = True
            frame, crc32 = _FRAME.pack, zlib.crc32
            count = -(-len(payloads) // max(1, self._size // blocks.BLOCK_BYTES))
            self._payloads, self._size = [], 0
            for begin in range(0, len(payloads), count):
                some = payloads[begin : begin + count]
                data = b"".join([piece for one in some for piece in (frame(len(one), crc32(one)), one)])
                self._hash.update(data)
                self._take(data)
            self.is_busy = False

    def _take(self, frames: bytes) -> None:
        """Complete frames, about as many as make a block, for a subclass that keeps them."""

    def digest(self) -> str:
        """Hexadecimal SHA-256 of all events so far."""
        self.flush()
        return self._hash.hexdigest()


class Writer(Digester):
    """Writes a run log, and computes its digest on the way.

    Frames are gathered in memory and written in pieces of about ``buffer_bytes``.
    """

    def __init__(
        self, path: Path, header: Mapping[str, Any], *, buffer_bytes: int = 1 << 20, flush_every_s: float = 0.0
    ) -> None:
        """``flush_every_s``: real time for which events stay in memory at most, as long as others come; 0: as long as
        there is room."""
        super().__init__(buffer_bytes=buffer_bytes)
        self._flush_every_s = flush_every_s
        self._flush_at = time.monotonic() + flush_every_s
        if flush_every_s:
            self.append = self._append_in_time  # type: ignore[method-assign]
        self.written_bytes = 0
        """Bytes of events, before they are compressed."""
        self._path = path
        self._block = blocks.Packer().block
        self._file: BinaryIO = path.open("wb")
        self._header = dict(header)
        self._file.write(blocks.beginning(framed(msgpack.packb(self._header))))
        self._file.flush()  # so that even a run that is killed at once leaves a run log

    def date(self, epoch_unix_s: int) -> None:
        """Say in the header when virtual time 0 was, which is known only after set-up: as many bytes as before."""
        self._header["epoch_unix_s"] = epoch_unix_s
        self._file.seek(0)
        self._file.write(blocks.beginning(framed(msgpack.packb(self._header))))
        self._file.seek(0, os.SEEK_END)
        self._file.flush()

    def _append_in_time(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        super().append(time_ns, actor, kind, data)
        now = time.monotonic()
        if now >= self._flush_at:
            self._flush_at = now + self._flush_every_s
            self.flush()

    def _take(self, frames: bytes) -> None:
        try:
            self._file.write(self._block(frames))
            self._file.flush()
            self.written_bytes += len(frames)
        except OSError as error:
            error.filename = str(self._path)  # a write tells of none
            raise

    @property
    def position(self) -> int:
        """The length of the file."""
        return self._file.tell()

    def reopen(self) -> None:
        """Go on in another file of this name, a copy: in a process that was forked from the one that has begun it."""
        self._file.close()
        self._file = self._path.open("r+b")
        self._file.seek(0, os.SEEK_END)

    def go_back(self, position: int) -> None:
        """Drop what another process, which had forked from this one, has written behind the position. Raises
        RunLogError where the file is no longer that of this run."""
        here = os.fstat(self._file.fileno())
        try:
            there = os.stat(self._path)
        except OSError as error:
            raise RunLogError(f"{self._path}: {error.strerror}") from None
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) or here.st_size < position:
            raise RunLogError(f"{self._path}: is no longer the log of this run: it was replaced or cut")
        self._file.seek(position)
        self._file.truncate()

    def close(self) -> str:
        """Returns the digest."""
        digest = self.digest()
        self._file.close()
        return digest


class Verifier(Writer):
    """Writes the log of a run that is made again, and compares it with what is left of the first one.

    That stays in its own file until all of it has come again.
    """

    def __init__(
        self, path: Path, header: Mapping[str, Any], before: Path, on_difference: Callable[[], object]
    ) -> None:
        """``before``: the log that is left. ``on_difference``: called once, when an event is another than there."""
        super().__init__(path, header)
        self.before = before
        self.differs = False
        self.is_verified = False
        """All that was left has come again, and its file is gone."""
        self._on_difference = on_difference
        self._source, _ = blocks.opened(before)
        with Reader(before) as reader:
            self._source.seek(reader.next_offset)
        self._rest = b""
        """Of a block that is compared: what is still to come."""

    def _take(self, frames: bytes) -> None:
        super()._take(frames)
        while frames and not self.is_verified and not self.differs:
            try:
                self._rest = self._rest or self._source.read(blocks.MOST_BYTES)
            except RunLogError:  # who looks for the difference finds the damage
                self._rest = b"\0"
            if not self._rest:
                self._end()
                return
            size = min(len(frames), len(self._rest))
            if frames[:size] != self._rest[:size]:
                self.differs = True
                self._on_difference()
                return
            frames, self._rest = frames[size:], self._rest[size:]

    def _end(self) -> None:
        self.is_verified = True
        self._source.close()
        self.before.unlink(missing_ok=True)

    def go_back(self, position: int) -> None:
        super().go_back(position)
        if not self.is_verified:
            # The other process has read from the same open file; what it has verified to the end is gone.
            place = self._source.tell()
            self._source.close()
            try:
                self._source, _ = blocks.opened(self.before)
            except FileNotFoundError:
                self.is_verified = True
                return
            self._source.seek(place)

    def close(self) -> str:
        digest = super().close()
        if not self.is_verified and not self.differs:
            self.differs = bool(self._rest or self._source.read(blocks.MOST_BYTES))
            if not self.differs:
                self._end()
        return digest


_EVENT = b"\x94"
"""How the payload of an event begins: an array of four (msgpack)."""


def _has_event(rest: bytes) -> bool:
    """Whether a whole frame stands behind the beginning: then it is the length of the first that is damaged."""
    at = rest.find(_EVENT, _FRAME.size + 1)
    while at >= 0:
        length, crc = _FRAME.unpack_from(rest, at - _FRAME.size)
        if length <= len(rest) - at and zlib.crc32(rest[at : at + length]) == crc:
            return True
        at = rest.find(_EVENT, at + 1)
    return False


def _cut_text(path: Path, where: str, count: int) -> str:
    return f"{path}: {where}: the log is cut off: its last {count} bytes are no whole event and are left out"


class Reader:
    """Reads a run log frame by frame; raises RunLogError with file and offset where it is damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        """The position of the last frame that was read: grows from one to the next, and is what :meth:`at` takes."""
        self.cut_bytes = 0
        """At the end of the file, bytes that are no whole frame; known when all frames have been read."""
        try:
            self._file, magic = blocks.opened(path)
        except OSError as error:
            raise RunLogError(f"{path}: {error.strerror}") from None
        self.is_plain = magic == blocks.PLAIN_MAGIC
        """Not compressed, as before the first release."""
        try:
            self.header: dict[str, Any] = self._header(magic)
        except BaseException:
            self._file.close()
            raise
        self.next_offset = self._file.tell()
        """The position of the first event."""

    @property
    def read_bytes(self) -> int:
        """How much of the file has been read, about."""
        return self._file.file_offset(self.offset)

    @property
    def unpacked_bytes(self) -> int:
        """About how large the file would be if it were not compressed."""
        return self._file.unpacked_bytes()

    def _header(self, magic: bytes) -> dict[str, Any]:
        path = self.path
        if magic not in (blocks.MAGIC, blocks.PLAIN_MAGIC):
            if magic.startswith(_MAGIC_NAME):
                found = magic.removeprefix(_MAGIC_NAME).strip().decode("ascii", "replace")
                own = blocks.MAGIC.removeprefix(_MAGIC_NAME).strip().decode()
                text = f"a run log of format {found}, by another version of kemu; this one reads formats up to {own}"
                raise RunLogError(f"{path}: offset 0: {text}: run the scenario again")
            what = "not a kemu run log" if magic else "the file is empty: its run was killed before it began"
            raise RunLogError(f"{path}: offset 0: {what}")
        header = self._frame(expect=True)
        assert header is not None
        try:
            if magic == blocks.PLAIN_MAGIC or self._file.must_be_whole():
                return dict(msgpack.unpackb(header, raw=False))
        except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
            pass
        raise RunLogError(f"{path}: {self._file.where(self.offset)}: the header is damaged")

    def _error(self, what: str) -> RunLogError:
        """About the frame that was read last."""
        return RunLogError(f"{self.path}: {self._file.where(self.offset)}: {what}")

    def _frame(self, *, expect: bool = False, check: bool = True) -> bytes | None:
        self.offset = self._file.tell()
        prefix = self._file.read(_FRAME.size)
        if not prefix and not expect:
            return None
        if len(prefix) < _FRAME.size:
            raise self._error("the file ends within a frame")
        length, crc = _FRAME.unpack(prefix)
        if length > MAX_PAYLOAD_BYTES:
            raise self._error(f"a frame of {length} bytes: the length is damaged")
        payload = self._file.read(length)
        if len(payload) < length:
            raise self._error("the file ends within a frame")
        if check and zlib.crc32(payload) != crc:
            raise self._error("checksum mismatch: the frame is damaged")
        return payload

    def payloads(self, *, check: bool = True) -> Iterator[bytes]:
        """The packed events. ``check=False`` passes on frames whose checksum does not match, to compare them."""
        unpack, crc32 = _FRAME.unpack_from, zlib.crc32
        buffer, place = b"", 0
        begin = 0
        """The position of the buffer."""
        while True:
            left = len(buffer) - place - _FRAME.size
            length, crc = unpack(buffer, place) if left >= 0 else (0, 0)
            if 0 <= length <= left:
                payload = buffer[place + _FRAME.size : place + _FRAME.size + length]
                if not check or crc32(payload) == crc:
                    self.offset = begin + place
                    place += _FRAME.size + length
                    yield payload
                    continue
            elif length <= MAX_PAYLOAD_BYTES:
                there = self._file.tell()
                more = self._file.read(max(BUFFER_BYTES, length))
                if more:
                    rest = buffer[place:]
                    begin, buffer, place = begin + place if rest else there, rest + more, 0
                    continue
            # The end, or damage: it says which.
            rest = buffer[place:]
            if not rest:
                self.offset, self.cut_bytes = self._file.tell(), self._file.torn_bytes()
            elif (left < 0 or left < length <= MAX_PAYLOAD_BYTES) and not _has_event(rest):
                self.offset, self.cut_bytes = begin + place, len(rest)
            else:
                self._file.seek(begin + place)
                if self._frame() is None:
                    return
                continue
            if self.cut_bytes:
                where = self._file.where(self.offset)
                warnings.warn(LogCutWarning(_cut_text(self.path, where, self.cut_bytes)), stacklevel=2)
            return

    def but(self, *kinds: str) -> Iterator[Entry]:
        """All events but those of these kinds, which are not unpacked."""
        marks = tuple(msgpack.packb(kind) for kind in kinds)
        last = b""
        for payload in self.payloads():
            last = payload
            if not payload.startswith(marks, _place_of_kind(payload)):
                yield self._event(payload)
        yield from self._cut(last)

    def __iter__(self) -> Iterator[Entry]:
        last = b""
        for payload in self.payloads():
            last = payload
            yield self._event(payload)
        yield from self._cut(last)

    def _cut(self, last: bytes) -> Iterator[Entry]:
        """What says that the file ends within a frame. ``last``: the last whole one."""
        if self.cut_bytes:
            yield Entry(time_of(last) if last else 0, self.path.name, CUT, events.LogCut(cut_bytes=self.cut_bytes))

    def at(self, offset: int) -> Entry:
        """The event whose frame begins there."""
        self._file.seek(offset)
        payload = self._frame(expect=True)
        assert payload is not None
        return self._event(payload)

    def _event(self, payload: bytes) -> Entry:
        try:
            return unpack_event(payload)
        except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
            raise self._error("not an event of a run") from None

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
