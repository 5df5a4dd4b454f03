"""The bytes of objects as clients get them, and their digests, without serialising anything again.

The store holds objects without a resource version: the revision of the last change of the key is the resource version.
Parsers merge a repeated message field into the first one, so a second piece of ``metadata`` (field 1) that holds
nothing but ``resourceVersion`` (its field 6) is appended to the bytes.
"""

from __future__ import annotations

import zlib

from kemu.emulated.objects import heartbeats
from kemu.emulated.objects.wire import envelopes

VERSION_TAGS = tuple(b"\x0a%c\x32%c" % (length + 2, length) for length in range(21))
"""What stands before a resource version of so many digits: tags and lengths of ``metadata`` and ``resourceVersion``."""


def version_suffix(revision: int) -> bytes:
    """What follows the bytes in the store where clients get the object."""
    digits = b"%d" % revision
    return VERSION_TAGS[len(digits)] + digits


def of_real(raw: bytes) -> tuple[bytes, int]:
    """An object as a real API server shows it, in the form that kemu's clients get: its bytes in etcd and the suffix;
    and its resource version. So both have one digest. Raises ValueError."""
    value, revision = envelopes.as_stored(raw)
    if revision:
        return value + version_suffix(revision), revision
    return raw, envelopes.resource_version(raw)  # of an API server of kemu's: it is in that form already


def states_heartbeats(wire: bytes) -> bool:
    """Whether it is a Lease or Node that reads show with the heartbeats of the moment (:func:`heartbeats.show`)."""
    return heartbeats.MARK in wire


def standing_digest(name: str, resource_version: str) -> int:
    """Standing digest of an object that states its heartbeats: the rest of it depends on the time of the read."""
    return zlib.crc32(f"{name}@{resource_version}".encode())


def digest(value: bytes, revision: int) -> int:
    """Digest of the object as clients get it; ``value``: as it is stored."""
    return zlib.crc32(version_suffix(revision), zlib.crc32(value))


def versioned_digest(crc: int, revision: int) -> int:
    """The same, of a value with that CRC-32."""
    return zlib.crc32(version_suffix(revision), crc)


def entry_digest(key: bytes, object_digest: int) -> int:
    """Entry digest of one entry of the store. The sum of them is the digest of all, whatever their order: modulo
    2⁶⁴."""
    return zlib.crc32(key, object_digest)


SUM_MASK = (1 << 64) - 1
