"""The envelope of Kubernetes' protobuf: four bytes, then a ``runtime.Unknown`` with type and message."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kemu.emulated.objects.caches import text_cache
from kemu.errors import BadRequest

MAGIC = b"k8s\x00"
_MOST_FIELDS = 100
"""Most fields of an envelope, which has four."""


def pack(api_version: str, kind: str, message: bytes) -> bytes:
    return b"".join((_begin(api_version, kind), _head(2, len(message)), message, b"\x1a\x00\x22\x00"))


@text_cache(1024)
def _begin(api_version: str, kind: str) -> bytes:
    """Up to the message."""
    types = field(1, api_version.encode()) + field(2, kind.encode())
    return MAGIC + field(1, types)


def unpack(data: bytes) -> tuple[str, str, bytes]:
    """API version, kind and message. Raises :class:`kemu.errors.BadRequest`."""
    if not data.startswith(MAGIC):
        raise BadRequest("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    types, message = b"", b""
    for count, (number, value) in enumerate(fields(data, len(MAGIC))):
        if count >= _MOST_FIELDS:
            raise BadRequest(f"the envelope of a protobuf message has more than {_MOST_FIELDS} fields")
        if number == 1:
            types = value
        elif number == 2:
            message = value
    return *_names(types), message


@text_cache(1024)
def _names(types: bytes) -> tuple[str, str]:
    """API version and kind. Raises :class:`kemu.errors.BadRequest`."""
    names = {1: "", 2: ""}
    for number, value in fields(types, 0):
        if number in names:
            try:
                names[number] = value.decode()
            except UnicodeDecodeError:
                raise BadRequest("the type of a protobuf message is no text") from None
    return names[1], names[2]


def list_of(api_version: str, kind: str, metadata: bytes, items: list[bytes]) -> list[bytes]:
    """The pieces of an envelope around a list."""
    size = len(metadata) + len(_head(1, len(metadata)))
    pieces = [field(1, metadata)]
    for item in items:
        head = _head(2, len(item))
        size += len(head) + len(item)
        pieces.append(head)
        pieces.append(item)
    return [_begin(api_version, kind), _head(2, size), *pieces, b"\x1a\x00\x22\x00"]


def watch_frame(event: str, wrapped: bytes) -> bytes:
    """A length, and a ``WatchEvent`` around an object in its envelope."""
    inner = field(1, wrapped)
    frame = b"".join((_kind_of_event(event), _head(2, len(inner)), inner))
    return len(frame).to_bytes(4, "big") + frame


def watch_messages(frames: bytes) -> Iterator[bytes]:
    """The messages of whole frames, without their lengths."""
    begin = 0
    while begin < len(frames):
        end = begin + 4 + int.from_bytes(frames[begin : begin + 4], "big")
        yield frames[begin + 4 : end]
        begin = end


@lru_cache(16)
def _kind_of_event(event: str) -> bytes:
    return field(1, event.encode())


def field(number: int, value: bytes) -> bytes:
    """A field of a message with so many bytes."""
    return _head(number, len(value)) + value


@lru_cache(4096)
def _head(number: int, size: int) -> bytes:
    """Head of a field with so many bytes."""
    out = bytearray((number << 3 | 2,))
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)


def fields(data: bytes, at: int) -> list[tuple[int, bytes]]:
    """Number and value of the fields that have a length; an envelope has no others."""
    found = []
    while at < len(data):
        tag, at = (data[at], at + 1) if data[at] < 0x80 else _varint(data, at)
        if tag & 7 != 2:
            raise BadRequest("the envelope of a protobuf message is damaged")
        size, at = (data[at], at + 1) if at < len(data) and data[at] < 0x80 else _varint(data, at)
        if size > len(data) - at:
            raise BadRequest("unexpected EOF")
        found.append((tag >> 3, data[at : at + size]))
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise BadRequest("unexpected EOF")
