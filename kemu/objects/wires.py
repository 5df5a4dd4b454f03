"""The bytes of objects as clients get them, and their digests, without serialising anything again.

The store holds objects without a resource version: the revision of the last change of the key is the resource version.
Parsers merge a repeated message field into the first one, so a second piece of ``metadata`` (field 1) that holds
nothing but ``resourceVersion`` (its field 6) is appended to the bytes.
"""

from __future__ import annotations

import zlib

from kemu.objects import heartbeats

VERSION_TAGS = tuple(b"\x0a%c\x32%c" % (length + 2, length) for length in range(21))
"""What stands before a resource version of so many digits: tags and lengths of ``metadata`` and ``resourceVersion``."""


def version_suffix(revision: int) -> bytes:
    """What follows the bytes in the store where clients get the object."""
    digits = b"%d" % revision
    return VERSION_TAGS[len(digits)] + digits


def states_heartbeats(wire: bytes) -> bool:
    """Whether it is a Lease or Node that reads show with the heartbeats of the moment (:func:`heartbeats.show`)."""
    return heartbeats.MARK in wire


def standing_digest(name: str, resource_version: str) -> int:
    """Of an object that states its heartbeats: the rest of it depends on the time of the read."""
    return zlib.crc32(f"{name}@{resource_version}".encode())
