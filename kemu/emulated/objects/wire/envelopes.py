"""Kubernetes' protobuf media type: the envelope around each message, and the frames of a watch.

What the wire looks like is in ``k8s.io/apimachinery/pkg/runtime/serializer/protobuf`` (``unknown``, four bytes of
magic) and ``pkg/util/framer`` (the length before each event). kemu's messages have Kubernetes' field numbers, so their
bytes pass through unchanged; lists are split into the bytes of their items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"

_METADATA = b"\x0a"
"""How an object begins: the tag of its first field."""
_RESOURCE_VERSION = 6
"""Its field in ``metadata``."""
_NO_VERSION = b"\x32\x00"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Envelope(NamedTuple):
    """``runtime.Unknown``."""

    api_version: str
    kind: str
    raw: bytes
    """The message."""


def wrap(api_version: str, kind: str, raw: bytes) -> bytes:
    """The body of a request or answer that holds this message."""
    types = _field(1, api_version.encode()) + _field(2, kind.encode())
    return MAGIC + _field(1, types) + _field(2, raw)


def unwrap(data: bytes) -> Envelope:
    """Raises ValueError for a body that is none."""
    if not data.startswith(MAGIC):
        raise ValueError("the body does not begin as Kubernetes' protobuf does")
    api_version = kind = ""
    raw = b""
    for number, value in fields(data[len(MAGIC) :]):
        if number == 1:
            for inner, text in fields(value):
                if inner == 1:
                    api_version = text.decode()
                elif inner == 2:
                    kind = text.decode()
        elif number == 2:
            raw = value
    return Envelope(api_version, kind, raw)


def split_list(raw: bytes) -> tuple[bytes, list[bytes]]:
    """The ``ListMeta`` of a list of any kind, and the bytes of its items. Raises ValueError."""
    meta, items = b"", []
    for number, value in fields(raw):
        if number == 1:
            meta = value
        elif number == 2:
            items.append(value)
    return meta, items


def watch_event(frame: bytes) -> tuple[str, Envelope]:
    """The type and the object of one frame of a watch, without its length. Raises ValueError."""
    event, wrapped = "", b""
    for number, value in fields(frame):
        if number == 1:
            event = value.decode()
        elif number == 2:
            wrapped = dict(fields(value)).get(1, b"")
    return event, unwrap(wrapped)


def resource_version(raw: bytes) -> int:
    """``metadata.resourceVersion`` of an object; 0 without one. Raises ValueError."""
    version = b""
    for number, value in fields(raw):
        if number == 1:
            version = dict(fields(value)).get(_RESOURCE_VERSION, version)
    return int(version or 0)


def as_stored(raw: bytes) -> tuple[bytes, int]:
    """An object as a real API server shows it, with its resource version taken out, which is how it stands in etcd; and
    that version, 0 where it does not stand in its place. Raises ValueError.

    Go writes empty texts, too, so the field is there in etcd, without a value.
    """
    if not raw.startswith(_METADATA):
        return raw, 0
    length, begin = _varint(raw, 1)
    place, end = begin, begin + length
    while place < end:
        at = place
        tag, place = _varint(raw, place)
        if tag & 7 != _BYTES or tag >> 3 > _RESOURCE_VERSION:
            break
        size, place = _varint(raw, place)
        if tag >> 3 == _RESOURCE_VERSION:
            if not size:
                break
            metadata = raw[begin:at] + _NO_VERSION + raw[place + size : end]
            return _field(1, metadata) + raw[end:], int(raw[place : place + size])
        place += size
    return raw, 0


def with_text(raw: bytes, path: Sequence[int], text: bytes) -> bytes:
    """A message of Go's with this text in the field at ``path`` (numbers), unless there is one. Raises ValueError."""
    number, *inner = path
    at = place = 0
    while place < len(raw):
        at = place
        tag, value = _varint(raw, place)
        place = _after(raw, value, tag & 7)
        if tag >> 3 == number:
            if not inner:
                return raw
            _, value = _varint(raw, value)
            return raw[:at] + _field(number, with_text(raw[value:place], inner, text)) + raw[place:]
        if tag >> 3 > number:
            break
        at = place
    return raw[:at] + _field(number, with_text(b"", inner, text) if inner else text) + raw[at:]


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and values of the fields of a message that hold bytes, text or messages. Raises ValueError."""
    place, end = 0, len(data)
    while place < end:
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == _BYTES:
            length, place = _varint(data, place)
            if place + length > end:
                raise ValueError("a field is longer than its message")
            yield tag >> 3, data[place : place + length]
            place += length
        else:
            place = _after(data, place, kind)


def _after(data: bytes, place: int, kind: int) -> int:
    """Where a value of this wire type ends. Raises ValueError."""
    if kind == _BYTES:
        length, place = _varint(data, place)
        return place + length
    if kind == _VARINT:
        return _varint(data, place)[1]
    if kind not in (_FIXED64, _FIXED32):
        raise ValueError(f"a field has wire type {kind}")
    return place + (8 if kind == _FIXED64 else 4)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        try:
            byte = data[place]
        except IndexError:
            raise ValueError("a number is cut off") from None
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _field(number: int, value: bytes) -> bytes:
    length, size = bytearray(), len(value)
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes((number << 3 | _BYTES,)) + bytes(length) + value
