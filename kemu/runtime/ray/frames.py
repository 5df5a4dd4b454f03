"""Messages between a driver and its broker: length (u32 LE), then msgpack."""

from __future__ import annotations

import struct
from typing import Any

import msgpack

LENGTH = struct.Struct("<I")


class RayFailed(Exception):
    """Ray refused; the text is Ray's."""


class ClusterLost(Exception):
    """The Ray cluster, or the broker, is gone. The text says what has happened to it."""


class TaskLost(Exception):
    """The process or the machine that carried out a call is gone, or was ended."""


class NodeLost(TaskLost):
    """The machine: whatever was called there had no part in it."""


class OutOfMemory(TaskLost):
    """Ray has ended the process, because the memory of its machine ran out."""


ERRORS = {error.__name__: error for error in (RayFailed, ClusterLost, TaskLost, NodeLost, OutOfMemory)}
"""That an answer may stand for; whatever else happens in the broker is RayFailed."""


def packed(message: object) -> bytes:
    body: bytes = msgpack.packb(message, use_bin_type=True)
    return LENGTH.pack(len(body)) + body


def unpacked(body: bytes) -> Any:
    return msgpack.unpackb(body, raw=False, strict_map_key=False)
