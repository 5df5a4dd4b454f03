"""Messages of processes to each other: pickles behind their length."""

from __future__ import annotations

import pickle
import struct
from typing import Any, BinaryIO

LENGTH = struct.Struct("<Q")


def receive(stream: BinaryIO) -> Any:
    """None at the end."""
    prefix = stream.read(LENGTH.size)
    if len(prefix) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(prefix)
    data = stream.read(length)
    return None if len(data) < length else pickle.loads(data)


def send(stream: BinaryIO, message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()
