"""How many values an object that clients send may have, whatever its bytes: each costs time at many places."""

from __future__ import annotations

import re

from google.protobuf.message import Message

from kemu.emulated.objects.conversion import descriptors
from kemu.errors import RequestEntityTooLarge

MOST_VALUES = 100_000
"""Scalars, lists and mappings. An object that etcd takes (1.5 MiB) hardly has more."""

_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LEAST_BYTES = 2
"""That a value takes in protobuf."""


def too_many() -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: limit is {MOST_VALUES} values")


def check_json(data: bytes) -> None:
    """Raises RequestEntityTooLarge, without parsing. What is no JSON may have any number."""
    if _json_values(data) > MOST_VALUES and _json_values(_TEXTS.sub(b"", data)) > MOST_VALUES:
        raise too_many()


def _json_values(data: bytes) -> int:
    """At least as many as there are: each value follows a comma, or is the first one of its list or mapping."""
    return data.count(b",") + data.count(b"[") + data.count(b"{") + 1


def check_message(message: Message, size: int) -> None:
    """``size``: of it in bytes. Raises RequestEntityTooLarge."""
    if size <= _LEAST_BYTES * MOST_VALUES:
        return
    count = 0
    left = [message]
    while left:
        for field, value in left.pop().ListFields():
            entry = descriptors.map_value(field)
            count += len(value) if field.is_repeated else 1
            if count > MOST_VALUES:
                raise too_many()
            if entry is not None:
                if entry.message_type is not None:
                    left += value.values()
            elif field.message_type is not None:
                left += value if field.is_repeated else (value,)
