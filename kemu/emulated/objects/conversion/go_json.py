"""JSON whose values have no Go type, as Go keeps and writes it: sorted keys; numbers are int64 or float64.

Objects of custom kinds and the free values of schemas are such JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any

from kemu.emulated.objects.plain import Json

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False).encode
_INT64 = 1 << 63
_DOUBTFUL = re.compile(r"[0-9](?:\.[0-9]|[eE][-+0-9]|[0-9]{18})")
"""What a text has where a float64, or an integer beyond int64, is in it, and a few others."""
_EXACT = 1e21
"""From here on Go writes an exponent."""


def number(value: float) -> int | float:
    """A float64 as Go writes it: without a fraction where it has none."""
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def plain(value: Json) -> Any:
    """A copy in which equal numbers look the same. An integer beyond int64 becomes a float64, as in Go."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if type(value) is float:
        return number(value)
    if type(value) is int and not -_INT64 <= value < _INT64:
        return number(float(value))
    return value


def encode(value: Json) -> bytes:
    """Equal values give equal bytes. Raises ValueError for numbers that JSON does not have."""
    text = _encode(value)
    if _DOUBTFUL.search(text):
        text = _encode(plain(value))
    return text.encode()
