"""The frames of a run log on disk.

A file is the magic line, then frames ``length (u32 LE) | crc32 (u32 LE) | payload``. The first frame is the header (a
map), every other one an event ``[time_ns, actor, kind, data]``. The digest of a run is the SHA-256 of the frames of all
events: it covers what happened, and not which machine wrote it when.

A process that is killed, or a disk that fills, can leave a file that ends within a frame. It is read up to its last
whole frame; an event of kind ``log.cut`` at its end, and a :class:`kemu.errors.LogCutWarning`, say what is lost.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgpack

from kemu.errors import LogCutWarning, RunLogError
from kemu.runtime.runlog import events

MAGIC = b"kemu-run-log/1\n"
FILE_NAME = "run.kemu"
CUT = events.LogCut.KIND
"""Kind of the event that a reader adds where the file ends within a frame."""
_FRAME = struct.Struct("<II")
MAX_PAYLOAD_BYTES = 256 * 1024 * 1024


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
    return Entry(time_ns, actor, kind, events.typed(kind, data))


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


def event_at(buffer: bytes, at: int, path: Path, offset: int) -> Entry:
    """Event of a frame that is whole. ``path`` and ``offset``: where it stands, for RunLogError."""
    length, crc = _FRAME.unpack_from(buffer, at)
    payload = buffer[at + _FRAME.size : at + _FRAME.size + length]
    if zlib.crc32(payload) != crc:
        raise RunLogError(f"{path}: offset {offset}: checksum mismatch: the frame is damaged")
    try:
        return unpack_event(payload)
    except (ValueError, TypeError, msgpack.UnpackException):
        raise RunLogError(f"{path}: offset {offset}: not an event of a run") from None


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

    def flush(self) -> None:
        if self._payloads:
            self.is_busy = True
            frame, crc32 = _FRAME.pack, zlib.crc32
            pieces = [piece for one in self._payloads for piece in (frame(len(one), crc32(one)), one)]
            data = b"".join(pieces)
            self._hash.update(data)
            self._payloads.clear()
            self._size = 0
            self._take(data)
            self.is_busy = False

    def _take(self, frames: bytes) -> None:
        """Complete frames, for a subclass that keeps them."""

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
        """Bytes of events."""
        self._path = path
        self._file: BinaryIO = path.open("wb")
        self._file.write(MAGIC)
        self._header = dict(header)
        self._file.write(framed(msgpack.packb(self._header)))
        self._file.flush()  # so that even a run that is killed at once leaves a run log

    def date(self, epoch_unix_s: int) -> None:
        """Say in the header when virtual time 0 was, which is known only after set-up: as many bytes as before."""
        self._header["epoch_unix_s"] = epoch_unix_s
        self._file.seek(len(MAGIC))
        self._file.write(framed(msgpack.packb(self._header)))
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
            self._file.write(frames)
            self._file.flush()
            self.written_bytes += len(frames)
        except OSError as error:
            error.filename = str(self._path)  # a write tells of none
            raise

    def close(self) -> str:
        """Returns the digest."""
        digest = self.digest()
        self._file.close()
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


def _cut_text(path: Path, offset: int, count: int) -> str:
    return f"{path}: offset {offset}: the log is cut off: its last {count} bytes are no whole event and are left out"


class Reader:
    """Reads a run log frame by frame; raises RunLogError with file and offset where it is damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        """Where the last frame that was read begins."""
        self.cut_bytes = 0
        """At the end of the file, bytes that are no whole frame; known when all frames have been read."""
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise RunLogError(f"{path}: {error.strerror}") from None
        try:
            self.header: dict[str, Any] = self._header()
        except BaseException:
            self._file.close()
            raise

    @property
    def next_offset(self) -> int:
        """Where the next frame begins, of a reader that has read nothing but the header."""
        return self._file.tell()

    def _header(self) -> dict[str, Any]:
        path = self.path
        begin = self._file.read(len(MAGIC))
        if begin != MAGIC:
            name, _, version = MAGIC.partition(b"/")
            if begin.startswith(name + b"/"):
                found = begin.partition(b"/")[2].strip().decode("ascii", "replace")
                text = f"a run log of format {found}, by another version of kemu; this one reads format"
                raise RunLogError(f"{path}: offset 0: {text} {version.strip().decode()}: run the scenario again")
            what = "not a kemu run log" if begin else "the file is empty: its run was killed before it began"
            raise RunLogError(f"{path}: offset 0: {what}")
        header = self._frame(expect=True)
        assert header is not None
        try:
            return dict(msgpack.unpackb(header, raw=False))
        except (ValueError, TypeError, msgpack.UnpackException):
            raise RunLogError(f"{path}: offset {len(MAGIC)}: the header is damaged") from None

    def _frame(self, *, expect: bool = False, check: bool = True) -> bytes | None:
        offset = self.offset = self._file.tell()
        prefix = self._file.read(_FRAME.size)
        if not prefix and not expect:
            return None
        if len(prefix) < _FRAME.size:
            raise RunLogError(f"{self.path}: offset {offset}: the file ends within a frame")
        length, crc = _FRAME.unpack(prefix)
        if length > MAX_PAYLOAD_BYTES:
            raise RunLogError(f"{self.path}: offset {offset}: a frame of {length} bytes: the length is damaged")
        payload = self._file.read(length)
        if len(payload) < length:
            raise RunLogError(f"{self.path}: offset {offset}: the file ends within a frame")
        if check and zlib.crc32(payload) != crc:
            raise RunLogError(f"{self.path}: offset {offset}: checksum mismatch: the frame is damaged")
        return payload

    def payloads(self, *, check: bool = True) -> Iterator[bytes]:
        """The packed events. ``check=False`` passes on frames whose checksum does not match, to compare them."""
        unpack, crc32 = _FRAME.unpack_from, zlib.crc32
        buffer, place = b"", 0
        begin = self._file.tell()
        """Where the buffer stands in the file."""
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
                more = self._file.read(max(BUFFER_BYTES, length))
                if more:
                    begin, buffer, place = begin + place, buffer[place:] + more, 0
                    continue
            # The end, or damage: it says which.
            rest = buffer[place:]
            if rest and (left < 0 or left < length <= MAX_PAYLOAD_BYTES) and not _has_event(rest):
                self.offset, self.cut_bytes = begin + place, len(rest)
                warnings.warn(LogCutWarning(_cut_text(self.path, self.offset, self.cut_bytes)), stacklevel=2)
                return
            self._file.seek(begin + place)
            if self._frame() is None:
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
        except (ValueError, TypeError, msgpack.UnpackException):
            end = self.offset + _FRAME.size + len(payload)
            text = f"{self.path}: before offset {end}: not an event of a run"
            raise RunLogError(text) from None

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
